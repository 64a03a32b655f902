import type { DeadLetter as StoredDeadLetter } from '@gamenet/projector'
import { StepsHeld } from '@gamenet/projector/rebuild'
import { poll, shownInstant, topics } from '@gamenet/schemas'
import { z } from 'zod'
import { FailureError } from '../../config.js'
import { requireTopic } from '../gap/operation.js'
import { Flag, type OperationNeeds, operation } from '../operation.js'

/** Maximum number of dead letters in a list. */
export const DEAD_LETTER_LIST_MAX = 10_000
/** Maximum number of dead letters in a selection. */
export const DEAD_LETTER_CHOICE_MAX = 1000
/** A thousand positions take about 60 kB. */
const CHOICE_BYTES_MAX = 128 * 1024

/** Longest wait of a retry for the projections; more than another process needs to find the messages. */
const PROJECTED_MS_MAX = 30_000
const POLL_MS = 100

/** Position in its topic, written as `epoch/partition/offset`. */
const Position = z.object({
  epoch: z.int().min(0).max(65_535),
  partition: z.int().min(0).max(65_535),
  offset: z.int().min(0)
})
export type Position = z.infer<typeof Position>

const DeadLetterPosition = Position.extend({ topic: z.string() })
export type DeadLetterPosition = z.infer<typeof DeadLetterPosition>

const DeadLetter = DeadLetterPosition.extend({
  state: z.enum(['stored', 'dropped']),
  storedAt: z.string(),
  bytes: z.int(),
  reason: z.string()
})
type DeadLetter = z.infer<typeof DeadLetter>

const DeadLetterList = z.object({
  messages: z.array(DeadLetter),
  /** All matches, listed or not. */
  total: z.int()
})
export type DeadLetterList = z.infer<typeof DeadLetterList>

const DeadLetterContent = DeadLetter.extend({
  key: z.string(),
  headers: z.record(z.string(), z.string()),
  /** Base64. */
  value: z.string()
})
export type DeadLetterContent = z.infer<typeof DeadLetterContent>

const DeadLetterChoice = z.strictObject({
  topic: z.string(),
  /** `all`: every dead letter of the topic at the call. */
  positions: z.union([z.literal('all'), z.array(Position).min(1).max(DEAD_LETTER_CHOICE_MAX)])
})
export type DeadLetterChoice = z.infer<typeof DeadLetterChoice>

const RetryProgress = z.object({ retried: z.int(), passedOver: z.int(), refused: z.int() })
export type RetryProgress = z.infer<typeof RetryProgress>

const RetryReport = RetryProgress.extend({
  /** The first ones that are still unreadable, with the current reason. */
  refusals: z.array(DeadLetterPosition.extend({ reason: z.string() })),
  /** Projections that had not consumed the retried messages at the timeout. */
  behind: z.array(z.string())
})
export type RetryReport = z.infer<typeof RetryReport>

const choiceRule =
  'The body, as application/octet-stream, is the JSON {"topic": …, "positions": "all" or a list of ' +
  '{"epoch", "partition", "offset"}}'
const choiceBody = { as: 'json', bytesMax: CHOICE_BYTES_MAX } as const

export const listDeadLetters = operation({
  name: 'list of dead letters',
  route: 'GET /dead-letters',
  input: z.strictObject({
    topic: z.string().exactOptional(),
    limit: z.coerce.number().pipe(z.int().min(1).max(DEAD_LETTER_LIST_MAX)).default(100),
    /** Dropped ones instead of pending ones. */
    dropped: Flag.default(false)
  }),
  inputRule: `The query takes topic, limit (1 to ${DEAD_LETTER_LIST_MAX}) and dropped (true or false)`,
  result: DeadLetterList,
  run: async ({ engines }, { topic, limit, dropped }) => {
    if (topic !== undefined) requireTopic(topic)
    const { readDeadLetters } = await import('@gamenet/projector')
    const query = { state: dropped ? 'dropped' : 'stored', topic, limit } as const
    const { messages, total } = await engines.store.do(readDeadLetters, query)
    return { messages: messages.map(shown), total }
  }
})

export const showDeadLetter = operation({
  name: 'dead letter',
  route: 'GET /dead-letters/:topic/:epoch/:partition/:offset',
  input: z
    .strictObject({
      topic: z.string(),
      epoch: z.coerce.number(),
      partition: z.coerce.number(),
      offset: z.coerce.number()
    })
    .pipe(DeadLetterPosition),
  inputRule: 'A position is /dead-letters/<topic>/<epoch>/<partition>/<offset>, in whole numbers',
  result: DeadLetterContent,
  run: async ({ engines }, position) => {
    requireTopic(position.topic)
    const { readDeadLetter } = await import('@gamenet/projector')
    const stored = await readDeadLetter(engines.store, position)
    if (stored === undefined) throw noneAt(position)
    const { key, headers, value } = stored
    return { ...shown(stored), key, headers, value: Buffer.from(value).toString('base64') }
  }
})

export const dropDeadLetters = operation({
  name: 'drop of dead letters',
  route: 'POST /dead-letters/drop',
  input: DeadLetterChoice,
  inputRule: choiceRule,
  body: choiceBody,
  result: z.object({ dropped: z.int() }),
  run: async ({ engines }, choice) => {
    requireTopic(choice.topic)
    const { dropAllDeadLetters, dropDeadLetters } = await import('@gamenet/projector')
    const { store } = engines
    if (choice.positions === 'all') return { dropped: await dropAllDeadLetters(store, choice.topic) }
    const waiting = (await storedAt({ engines }, choice.topic, choice.positions)).filter(
      ({ state }) => state === 'stored'
    )
    await dropDeadLetters(store, waiting)
    return { dropped: waiting.length }
  }
})

/** Validates dead letters again. Resolves when the valid ones are in the answers, or after half a minute. */
export const retryDeadLetters = operation({
  name: 'retry',
  route: 'POST /dead-letters/retry',
  input: DeadLetterChoice,
  inputRule: choiceRule,
  body: choiceBody,
  progress: RetryProgress,
  result: RetryReport,
  run: async (needs, { topic, positions }, { onProgress }) => {
    requireTopic(topic)
    const { retryDeadLetters } = await import('@gamenet/projector')
    const report = await retryDeadLetters(
      {
        store: needs.engines.store,
        topics,
        withSealKeys: (people, use) => withSealKeys(needs, people, use),
        inStep: (step) => needs.steps.inStep(step),
        onProgress: ({ retried, passedOver, refused }) => onProgress({ retried, passedOver, refused }),
        signal: needs.stopping
      },
      topic,
      positions === 'all' ? 'all' : await storedAt(needs, topic, positions)
    ).catch((error: unknown) => {
      if (!(error instanceof StepsHeld)) throw error
      throw new FailureError(
        `${error.message} The messages that were not retried are still dead letters; retry them later.`
      )
    })
    const { batches, refusals, ...counts } = report
    return { ...counts, refusals: [...refusals], behind: await waitUntilProjected(needs, topic, batches) }
  }
})

/** Returns the dead letters at these positions, including dropped ones; throws if a position has none. */
async function storedAt(
  { engines }: Pick<OperationNeeds, 'engines'>,
  topic: string,
  positions: readonly Position[]
): Promise<StoredDeadLetter[]> {
  const { deadLettersAt } = await import('@gamenet/projector')
  const wanted = positions.map((each) => ({ topic, ...each }))
  const stored = await deadLettersAt(engines.store, wanted)
  const places = new Set(stored.map(textOf))
  const missing = wanted.find((each) => !places.has(textOf(each)))
  if (missing !== undefined) throw noneAt(missing)
  return stored
}

/** Locks the rows of the people until their events are stored: an erasure waits, and then deletes these events too. */
async function withSealKeys(
  { engines }: Pick<OperationNeeds, 'engines'>,
  people: readonly number[],
  use: (keys: ReadonlyMap<number, Uint8Array>) => Promise<void>
): Promise<void> {
  if (people.length === 0) return await use(new Map())
  const { sealKeys } = await import('@gamenet/ingest')
  const writes = await engines.writes()
  await writes.transaction(async (transaction) => {
    await transaction.query('SELECT p.id FROM person AS p WHERE p.id = ANY ($1::bigint[]) ORDER BY p.id FOR SHARE', [
      people.map(String)
    ])
    await use(await sealKeys(transaction, people))
  })
}

/** Returns the projections that have not consumed these batches at the timeout. */
async function waitUntilProjected(
  { engines, projector, stopping: signal }: OperationNeeds,
  topic: string,
  batches: readonly string[]
): Promise<string[]> {
  if (batches.length === 0) return []
  const { projectionsWithout } = await import('@gamenet/projector')
  projector?.wakeForLate()
  return await poll(
    () => projectionsWithout(engines.store, topic, batches),
    (behind) => behind.length === 0 || signal.aborted,
    { everyMs: POLL_MS, timeoutMs: PROJECTED_MS_MAX }
  )
}

function noneAt(position: DeadLetterPosition): FailureError {
  return new FailureError(
    `There is no dead letter at ${textOf(position)}, or it was retried; \`gamenet dead-letters list\` lists all.`
  )
}

function textOf({ topic, epoch, partition, offset }: DeadLetterPosition): string {
  return `${topic} ${epoch}/${partition}/${offset}`
}

function shown(stored: StoredDeadLetter): DeadLetter {
  const { topic, epoch, partition, offset, state, storedAtMs, bytes, reason } = stored
  return { topic, epoch, partition, offset, state, storedAt: shownInstant(storedAtMs), bytes, reason }
}
