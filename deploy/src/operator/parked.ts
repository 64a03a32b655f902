import { z } from 'zod'

/*
 * What operators ask of messages that could not be read. A position is the topic's own: `epoch/partition/offset`.
 */

/** Messages that a list shows at most. */
export const PARKED_LIST_MAX = 10_000
/** Messages that are named one by one at most. */
export const PARKED_CHOSEN_MAX = 1000

const Position = z.object({
  epoch: z.int().min(0).max(65_535),
  partition: z.int().min(0).max(65_535),
  offset: z.int().min(0)
})
export type Position = z.infer<typeof Position>

export const ParkedPosition = Position.extend({ topic: z.string() })
export type ParkedPosition = z.infer<typeof ParkedPosition>

export const ParkedAsked = z.object({
  topic: z.string().exactOptional(),
  limit: z.int().min(1).max(PARKED_LIST_MAX),
  /** Dropped ones instead of those that wait for a decision. */
  isDropped: z.boolean()
})
export type ParkedAsked = z.infer<typeof ParkedAsked>

export const ParkedMessage = ParkedPosition.extend({
  state: z.enum(['parked', 'dropped']),
  parkedAt: z.string(),
  bytes: z.int(),
  reason: z.string()
})
export type ParkedMessage = z.infer<typeof ParkedMessage>

export const ParkedList = z.object({
  messages: z.array(ParkedMessage),
  /** How many there are, shown or not. */
  total: z.int()
})
export type ParkedList = z.infer<typeof ParkedList>

export const ParkedContent = ParkedMessage.extend({
  key: z.string(),
  headers: z.record(z.string(), z.string()),
  /** Base64. */
  value: z.string()
})
export type ParkedContent = z.infer<typeof ParkedContent>

export const ParkedChoice = z.object({
  topic: z.string(),
  /** `all`: every message of the topic that is parked at the call. */
  positions: z.union([z.literal('all'), z.array(Position).min(1).max(PARKED_CHOSEN_MAX)])
})
export type ParkedChoice = z.infer<typeof ParkedChoice>

export const RetryProgress = z.object({ retried: z.int(), passedOver: z.int(), refused: z.int() })
export type RetryProgress = z.infer<typeof RetryProgress>

export const RetryReport = RetryProgress.extend({
  /** The first of those that could still not be read, with the reason of now. */
  refusals: z.array(ParkedPosition.extend({ reason: z.string() })),
  /** Projections that had not taken what was retried when the time was up; they do so by themselves. */
  behind: z.array(z.string())
})
export type RetryReport = z.infer<typeof RetryReport>

export const DropReport = z.object({ dropped: z.int() })
export type DropReport = z.infer<typeof DropReport>

/** Throw a `UsageError` for what there cannot be, a `FailureError` for what is not parked. */
export type ParkedOperations = {
  list(asked: ParkedAsked): Promise<ParkedList>
  show(position: ParkedPosition): Promise<ParkedContent>
  /** Judges them anew; resolves when what can be read now is in the answers, or half a minute later. */
  retry(choice: ParkedChoice, onProgress: (progress: RetryProgress) => void): Promise<RetryReport>
  drop(choice: ParkedChoice): Promise<DropReport>
}
