import { z } from 'zod'

/*
 * What operators ask of messages that could not be read. A position is the topic's own: `epoch/partition/offset`.
 */

/** Messages that a list shows at most. */
export const DEAD_LETTER_LIST_MAX = 10_000
/** Messages that are named one by one at most. */
export const DEAD_LETTER_CHOICE_MAX = 1000

const Position = z.object({
  epoch: z.int().min(0).max(65_535),
  partition: z.int().min(0).max(65_535),
  offset: z.int().min(0)
})
export type Position = z.infer<typeof Position>

export const DeadLetterPosition = Position.extend({ topic: z.string() })
export type DeadLetterPosition = z.infer<typeof DeadLetterPosition>

export const DeadLetterQuery = z.object({
  topic: z.string().exactOptional(),
  limit: z.int().min(1).max(DEAD_LETTER_LIST_MAX),
  /** Dropped ones instead of those that wait for a decision. */
  isDropped: z.boolean()
})
export type DeadLetterQuery = z.infer<typeof DeadLetterQuery>

export const DeadLetter = DeadLetterPosition.extend({
  state: z.enum(['parked', 'dropped']),
  parkedAt: z.string(),
  bytes: z.int(),
  reason: z.string()
})
export type DeadLetter = z.infer<typeof DeadLetter>

export const DeadLetterList = z.object({
  messages: z.array(DeadLetter),
  /** How many there are, shown or not. */
  total: z.int()
})
export type DeadLetterList = z.infer<typeof DeadLetterList>

export const DeadLetterContent = DeadLetter.extend({
  key: z.string(),
  headers: z.record(z.string(), z.string()),
  /** Base64. */
  value: z.string()
})
export type DeadLetterContent = z.infer<typeof DeadLetterContent>

export const DeadLetterChoice = z.object({
  topic: z.string(),
  /** `all`: every dead letter of the topic at the call. */
  positions: z.union([z.literal('all'), z.array(Position).min(1).max(DEAD_LETTER_CHOICE_MAX)])
})
export type DeadLetterChoice = z.infer<typeof DeadLetterChoice>

export const RetryProgress = z.object({ retried: z.int(), passedOver: z.int(), refused: z.int() })
export type RetryProgress = z.infer<typeof RetryProgress>

export const RetryReport = RetryProgress.extend({
  /** The first of those that could still not be read, with the reason of now. */
  refusals: z.array(DeadLetterPosition.extend({ reason: z.string() })),
  /** Projections that had not taken what was retried when the time was up; they do so by themselves. */
  behind: z.array(z.string())
})
export type RetryReport = z.infer<typeof RetryReport>

export const DropReport = z.object({ dropped: z.int() })
export type DropReport = z.infer<typeof DropReport>

/** Throw a `UsageError` for a topic that does not exist, a `FailureError` for a position without a dead letter. */
export type DeadLetterOperations = {
  list(asked: DeadLetterQuery): Promise<DeadLetterList>
  show(position: DeadLetterPosition): Promise<DeadLetterContent>
  /** Judges them anew; resolves when what can be read now is in the answers, or half a minute later. */
  retry(choice: DeadLetterChoice, onProgress: (progress: RetryProgress) => void): Promise<RetryReport>
  drop(choice: DeadLetterChoice): Promise<DropReport>
}
