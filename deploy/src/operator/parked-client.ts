import type { z } from 'zod'
import { DropReport, ParkedContent, ParkedList, type ParkedOperations, RetryProgress, RetryReport } from './parked.js'

type Ask = <Answer>(
  schema: z.ZodType<Answer>,
  method: 'GET' | 'POST',
  path: string,
  body?: Uint8Array
) => Promise<Answer>
type Follow = <Progress, Report>(
  path: string,
  body: Uint8Array,
  schemas: { readonly progress: z.ZodType<Progress>; readonly report: z.ZodType<Report> },
  onProgress: (progress: Progress) => void
) => Promise<Report>

/** The parked messages of a service that runs elsewhere. */
export function parkedClient(ask: Ask, follow: Follow): ParkedOperations {
  const bytesOf = (value: unknown) => Buffer.from(JSON.stringify(value))
  return {
    list: ({ topic, limit, isDropped }) => {
      const query = new URLSearchParams({ limit: String(limit), dropped: String(isDropped) })
      if (topic !== undefined) query.set('topic', topic)
      return ask(ParkedList, 'GET', `/parked?${query}`)
    },
    show: ({ topic, epoch, partition, offset }) =>
      ask(ParkedContent, 'GET', `/parked/${encodeURIComponent(topic)}/${epoch}/${partition}/${offset}`),
    drop: (choice) => ask(DropReport, 'POST', '/parked/drop', bytesOf(choice)),
    retry: (choice, onProgress) =>
      follow('/parked/retry', bytesOf(choice), { progress: RetryProgress, report: RetryReport }, onProgress)
  }
}
