import type { StallReport } from '@gamenet/projector'
import { topics } from '@gamenet/schemas'
import { z } from 'zod'
import { FailureError, UsageError } from '../../config.js'
import { Instant, NoInput, operation } from '../operation.js'

/** A stalled partition: the log no longer has the next offset to load. */
export const StallStatus = z.object({
  topic: z.string(),
  epoch: z.int(),
  partition: z.int(),
  /** The first offset that is not loaded. */
  loaded: z.int(),
  /** The oldest offset in the log. */
  first: z.int(),
  head: z.int(),
  /** When the last event before it was loaded. */
  loadedAt: Instant.nullable(),
  reason: z.string()
})
export type StallStatus = z.infer<typeof StallStatus>

export const Gaps = z.object({
  open: z.array(StallStatus),
  /** Accepted gaps: offsets from `first` to below `next` are lost. */
  accepted: z.array(
    z.object({
      topic: z.string(),
      epoch: z.int(),
      partition: z.int(),
      first: z.int(),
      next: z.int(),
      acceptedAt: Instant
    })
  )
})
export type Gaps = z.infer<typeof Gaps>

/** Stalled partitions and accepted gaps. */
export const listGaps = operation({
  name: 'list of gaps',
  route: 'GET /gaps',
  input: NoInput,
  result: Gaps,
  needsLog: true,
  run: async ({ engines: { store, log } }) => {
    const { acceptedGaps, readStalls } = await import('@gamenet/projector')
    return { open: (await readStalls({ store, log })).map(stallStatus), accepted: await acceptedGaps(store) }
  }
})

/** Continues loading of a topic after the lost events. */
export const acceptGap = operation({
  name: 'acceptance of a gap',
  route: 'POST /gaps/:topic/accept',
  input: z.strictObject({ topic: z.string() }),
  result: z.array(StallStatus),
  needsLog: true,
  run: async ({ engines: { store, log } }, { topic }) => {
    requireTopic(topic)
    const { acceptGaps, readStalls } = await import('@gamenet/projector')
    const stalled = await readStalls({ store, log }, topic)
    const accepted = await acceptGaps(store, stalled)
    const [other] = stalled.filter((each) => !accepted.includes(each))
    if (other !== undefined) throw new FailureError(`This is not a gap that can be accepted: ${other.reason}.`)
    return accepted.map(stallStatus)
  }
})

export function stallStatus(stall: StallReport): StallStatus {
  const { topic, epoch, partition, first, next, wanted, loadedAt, reason } = stall
  return { topic, epoch, partition, loaded: wanted, first, head: next, loadedAt, reason }
}

export function requireTopic(name: string): void {
  if (topics.some((topic) => topic.name === name)) return
  const names = topics.map((topic) => topic.name).join(', ')
  throw new UsageError(`There is no topic ${JSON.stringify(name)}; there are ${names}.`)
}
