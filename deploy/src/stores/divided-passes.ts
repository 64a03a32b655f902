import { randomInt } from 'node:crypto'
import type { Postgres } from '@gamenet/engines'
import { ALL_TOPICS, type Division, type OwnTopics, type Parts } from '@gamenet/projector'
import { Mutex, Refusal } from '@gamenet/schemas'

/** Interval of a projector's signs of life. */
const RENEW_MS = 5000
/** PostgreSQL ends a transaction that rests for so long: that of a stopped projector. */
const REST_MS = 15_000
/** A lock with a lower number is a topic, by its place among the parts; one from here on is a projector. */
const PROJECTORS_FROM = 1000

/** A transaction that holds the locks of one projector until its end. */
export type LockSession = {
  /** Returns the numbers of the locks that all projectors of the program hold. */
  held(): Promise<number[]>
  /** Takes those of these locks that are free, without waiting; returns their numbers. */
  take(numbers: readonly number[]): Promise<number[]>
  /** Releases all locks but the projector's own. */
  release(): Promise<void>
  /** Rejects when the transaction has ended, and its locks with it. */
  check(): Promise<void>
  end(): Promise<void>
}

/** Begins a transaction with the lock `projector`, among the locks of the program. */
export type BeginLocks = (program: number, projector: number) => Promise<LockSession>

/**
 * Divides topics evenly among the projectors that hold a lock: there and back again in the order of their events. All
 * compute the same from these locks and the checkpoints, so that none asks for a topic of another and nothing is
 * negotiated. A projector takes its topics
 * when they are free. While PostgreSQL is away, each runs all passes.
 */
export function dividedPasses(
  begin: BeginLocks,
  projector = randomInt(PROJECTORS_FROM, 2 ** 31)
): (parts: Parts) => Division {
  return ({ program, topics }) => {
    let session: LockSession | undefined
    const taken = new Set<number>()
    const end = async () => {
      const ending = session
      session = undefined
      taken.clear()
      await ending?.end()
    }
    const claim = async (events: (topic: string) => number): Promise<OwnTopics> => {
      session ??= await begin(program, projector)
      const { held, take, release, check } = session
      const projectors = (await held()).filter((number) => number >= PROJECTORS_FROM).sort((a, b) => a - b)
      const row = [...projectors, ...projectors.toReversed()]
      // Not exactly, so that the order seldom changes.
      const weight = (number: number) => Math.ceil(Math.log2(1 + events(topics[number] ?? '')))
      const byWeight = [...topics.keys()].sort((a, b) => weight(b) - weight(a))
      const own = byWeight.filter((_, at) => row[at % row.length] === projector)
      if ([...taken].some((number) => !own.includes(number))) {
        await release()
        taken.clear()
      }
      const wanted = own.filter((number) => !taken.has(number))
      if (wanted.length > 0) for (const number of await take(wanted)) taken.add(number)
      const names = new Set([...taken].map((number) => topics[number]))
      return { has: (topic) => names.has(topic), check }
    }
    const claimOrAll = async (...weights: Parameters<typeof claim>): Promise<OwnTopics> => {
      try {
        // After a stop the transaction has ended, and another one begins.
        return session === undefined
          ? await claim(...weights)
          : await claim(...weights).catch(() => end().then(() => claim(...weights)))
      } catch (error) {
        await end()
        if (error instanceof Refusal && error.code === 'engine_away') return ALL_TOPICS
        throw error
      }
    }
    const run: Division['run'] = async (events, pass) => {
      const own = await claimOrAll(events)
      try {
        return await pass(own)
      } catch (error) {
        // Another projector may reach what this one does not.
        await end()
        throw error
      }
    }
    return { run, end }
  }
}

/** Advisory locks of one transaction, which a stopped or dead process loses. */
export function postgresLocks(
  writes: () => Promise<Postgres>,
  { restMs = REST_MS, renewMs = RENEW_MS } = {}
): BeginLocks {
  return async (program, projector) => {
    const postgres = await writes()
    return await new Promise<LockSession>((begun, failed) => {
      const ended = postgres.transaction(async (transaction) => {
        await transaction.script(`SET LOCAL idle_in_transaction_session_timeout = ${restMs}`)
        await transaction.query('SELECT pg_advisory_xact_lock($1, $2)', [program, projector])
        await transaction.script('SAVEPOINT topics')
        const mutex = new Mutex()
        const numbers = async (sql: string, ...values: unknown[]) => {
          const rows = await mutex.run(() => transaction.query<{ number: string }>(sql, [program, ...values]))
          return rows.map(({ number }) => Number(number))
        }
        const check = () => mutex.run(async () => void (await transaction.query('SELECT 1')))
        const renewing = setInterval(() => void check().catch(() => undefined), renewMs)
        await new Promise<void>((finish) =>
          begun({
            held: () => numbers(HELD),
            take: (wanted) => numbers(TAKE, wanted),
            release: () => mutex.run(() => transaction.script('ROLLBACK TO SAVEPOINT topics')),
            check,
            end: async () => {
              finish()
              await ended.catch(() => undefined)
            }
          })
        )
        clearInterval(renewing)
        await mutex.idle()
      })
      ended.catch(failed)
    })
  }
}

const HELD = `
  SELECT l.objid::bigint AS number FROM pg_locks AS l
  WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.classid::bigint = $1 AND l.granted
    AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())`
const TAKE = 'SELECT n.number FROM unnest($2::int[]) AS n (number) WHERE pg_try_advisory_xact_lock($1, n.number)'
