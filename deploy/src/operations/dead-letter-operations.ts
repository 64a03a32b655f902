import { sealKeys } from '@gamenet/ingest'
import {
  deadLettersAt,
  dropAllDeadLetters,
  dropDeadLetters,
  listDeadLetters,
  notTaken,
  type Projector,
  readDeadLetter,
  retryDeadLetters,
  type DeadLetter as StoredMessage
} from '@gamenet/projector'
import { StepHeld } from '@gamenet/projector/rebuild'
import { pause, shownInstant, topics } from '@gamenet/schemas'
import { FailureError, UsageError } from '../config.js'
import type {
  DeadLetter,
  DeadLetterChoice,
  DeadLetterOperations,
  DeadLetterPosition,
  RetryReport
} from '../operator/dead-letters.js'
import type { Engines } from '../wiring/engines.js'

type Needs = {
  readonly engines: Pick<Engines, 'clickhouse' | 'writes'>
  readonly projector: Projector | undefined
  readonly inStep: Projector['inStep']
  readonly signal: AbortSignal
}

/** So long a retry waits until projections have taken what it stored: longer than another process takes to look for it. */
const TAKEN_MS = 30_000
const ASK_AGAIN_MS = 100

/** What operators do with messages that could not be read, whichever process they ask. */
export function deadLetterOperations(needs: Needs): DeadLetterOperations {
  const tables = needs.engines.clickhouse.control
  return {
    list: async ({ topic, limit, isDropped }) => {
      if (topic !== undefined) requireTopic(topic)
      const { messages, total } = await listDeadLetters(tables, {
        state: isDropped ? 'dropped' : 'parked',
        topic,
        limit
      })
      return { messages: messages.map(messageOf), total }
    },
    show: async (position) => {
      requireTopic(position.topic)
      const found = await readDeadLetter(tables, position)
      if (found === undefined) throw nothingAt(position)
      const { key, headers, value } = found
      return { ...messageOf(found), key, headers, value: Buffer.from(value).toString('base64') }
    },
    drop: async (choice) => {
      requireTopic(choice.topic)
      if (choice.positions === 'all') return { dropped: await dropAllDeadLetters(tables, choice.topic) }
      const deadLetters = (await chosen(needs, choice)).filter(({ state }) => state === 'parked')
      await dropDeadLetters(tables, deadLetters)
      return { dropped: deadLetters.length }
    },
    retry: async (choice, onProgress) => {
      requireTopic(choice.topic)
      const positions = choice.positions === 'all' ? 'all' : await chosen(needs, choice)
      const report = await retryDeadLetters(
        {
          tables,
          topics,
          withSealKeys: (people, use) => withSealKeys(needs, people, use),
          inStep: needs.inStep,
          onProgress: ({ retried, passedOver, refused }) => onProgress({ retried, passedOver, refused }),
          signal: needs.signal
        },
        choice.topic,
        positions
      ).catch((error: unknown) => {
        if (!(error instanceof StepHeld)) throw error
        throw new FailureError(
          `${error.message} The messages that were not retried are still dead letters; retry them later.`
        )
      })
      const { batches, refusals, ...counts } = report
      return { ...counts, refusals: [...refusals], behind: await untilTaken(needs, choice.topic, batches) }
    }
  }
}

/** The dead letters, dropped ones included, at the positions of a choice; throws where a position has none. */
async function chosen({ engines }: Needs, { topic, positions }: DeadLetterChoice): Promise<StoredMessage[]> {
  const asked = positions === 'all' ? [] : positions.map((each) => ({ topic, ...each }))
  const found = await deadLettersAt(engines.clickhouse.control, asked)
  const places = new Set(found.map(textOf))
  const missing = asked.find((each) => !places.has(textOf(each)))
  if (missing !== undefined) throw nothingAt(missing)
  return found
}

/**
 * Holds the people's rows until what was opened is stored: whoever forgets one of them waits, and then deletes what came of it.
 */
async function withSealKeys(
  { engines }: Needs,
  people: readonly number[],
  use: (keys: ReadonlyMap<number, Uint8Array>) => Promise<void>
): Promise<void> {
  if (people.length === 0) return await use(new Map())
  const writes = await engines.writes()
  await writes.transaction(async (transaction) => {
    await transaction.query('SELECT p.id FROM person AS p WHERE p.id = ANY ($1::bigint[]) ORDER BY p.id FOR SHARE', [
      people.map(String)
    ])
    await use(await sealKeys(transaction, people))
  })
}

async function untilTaken(
  { engines, projector, signal }: Needs,
  topic: string,
  batches: readonly string[]
): Promise<RetryReport['behind']> {
  if (batches.length === 0) return []
  projector?.wakeForLate()
  const begun = performance.now()
  for (;;) {
    const behind = await notTaken(engines.clickhouse.control, topic, batches)
    if (behind.length === 0 || performance.now() - begun > TAKEN_MS || signal.aborted) return behind
    await pause(ASK_AGAIN_MS, signal)
  }
}

function requireTopic(name: string): void {
  if (topics.some((topic) => topic.name === name)) return
  const names = topics.map((topic) => topic.name).join(', ')
  throw new UsageError(`There is no topic ${JSON.stringify(name)}; there are ${names}.`)
}

function nothingAt(position: DeadLetterPosition): FailureError {
  return new FailureError(
    `There is no dead letter at ${textOf(position)}, or it was retried; \`gamenet parked list\` lists those there are.`
  )
}

function textOf({ topic, epoch, partition, offset }: DeadLetterPosition): string {
  return `${topic} ${epoch}/${partition}/${offset}`
}

function messageOf({ topic, epoch, partition, offset, state, storedAtMs, bytes, reason }: StoredMessage): DeadLetter {
  return { topic, epoch, partition, offset, state, parkedAt: shownInstant(storedAtMs), bytes, reason }
}
