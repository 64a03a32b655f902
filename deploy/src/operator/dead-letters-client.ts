import type { z } from 'zod'
import {
  DeadLetterContent,
  DeadLetterList,
  type DeadLetterOperations,
  DropReport,
  RetryProgress,
  RetryReport
} from './dead-letters.js'

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

/** The dead letters of a service that runs elsewhere. */
export function deadLetterClient(ask: Ask, follow: Follow): DeadLetterOperations {
  const bytesOf = (value: unknown) => Buffer.from(JSON.stringify(value))
  return {
    list: ({ topic, limit, isDropped }) => {
      const query = new URLSearchParams({ limit: String(limit), dropped: String(isDropped) })
      if (topic !== undefined) query.set('topic', topic)
      return ask(DeadLetterList, 'GET', `/parked?${query}`)
    },
    show: ({ topic, epoch, partition, offset }) =>
      ask(DeadLetterContent, 'GET', `/parked/${encodeURIComponent(topic)}/${epoch}/${partition}/${offset}`),
    drop: (choice) => ask(DropReport, 'POST', '/parked/drop', bytesOf(choice)),
    retry: (choice, onProgress) =>
      follow('/parked/retry', bytesOf(choice), { progress: RetryProgress, report: RetryReport }, onProgress)
  }
}
