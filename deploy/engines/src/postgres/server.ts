import { abortable, Refusal } from '@gamenet/schemas'
import pg from 'pg'
import { type Health, type HealthTimes, PROBE_MS_MAX, watchHealth } from '../health.js'
import { DISK_FULL, diskFull } from './disk-full.js'
import { listenToServer, plainName } from './listen.js'
import type { Postgres, Queries } from './postgres.js'

export type PostgresOptions = {
  /** `postgres://user:password@host:port/database` */
  readonly url: string
  /**
   * An address at which LISTEN works, where `url` is a pooler that gives each transaction another connection
   * (PgBouncer).
   */
  readonly listenUrl?: string | undefined
  /**
   * By channel, a statement whose rows differ after every announced change. It is polled if LISTEN delivers nothing.
   */
  readonly polled?: Readonly<Record<string, string>>
  readonly connections?: number
  readonly connectTimeoutMs?: number
  /** Limit of a statement in a transaction, enforced by the server. */
  readonly statementTimeoutMs?: number
  /** Longest wait for an answer: longer than the server's own limit, which gives a better error. */
  readonly answerTimeoutMs?: number
  /** For tests, as `health`. After this silence of a process the server ends its transaction, and with it the locks. */
  readonly idleTransactionMs?: number
  readonly health?: HealthTimes
}

const AWAY_RETRY_SECONDS = 5
/** Longer than any transaction of ours rests. */
export const IDLE_TRANSACTION_MS = 60_000

/** Opens a PostgreSQL server. No request is sent here: a service may start before its server. */
export const openPostgres = (options: PostgresOptions): Postgres => {
  // No parameter that PgBouncer refuses at the start of a connection, such as statement_timeout.
  const config = {
    connectionString: verified(options.url),
    connectionTimeoutMillis: options.connectTimeoutMs ?? 5000,
    query_timeout: options.answerTimeoutMs ?? 20_000,
    keepAlive: true,
    application_name: 'gamenet-stats'
  }
  const pool = poolOf({ ...config, max: options.connections ?? 8 })
  // A new connection each time: a stopped postmaster hangs these alone, and long statements fill the pool.
  const prober = poolOf({
    ...config,
    max: 1,
    maxUses: 1,
    connectionTimeoutMillis: PROBE_MS_MAX,
    query_timeout: PROBE_MS_MAX
  })
  const health = watchHealth('PostgreSQL', () => prober.query('SELECT 1'), options.health)
  const pooled = queriesOn(pool, health)
  const begin =
    `BEGIN; SET LOCAL statement_timeout = ${options.statementTimeoutMs ?? 15_000}; ` +
    `SET LOCAL idle_in_transaction_session_timeout = ${options.idleTransactionMs ?? IDLE_TRANSACTION_MS}`
  const listeners = new Set<() => Promise<void>>()
  const notified = new Set<object>()
  let closing: Promise<void> | undefined
  return {
    ...pooled,
    transaction: (work) => transaction(pool, health, begin, work),
    listen: (channel, onPayload, onListening) => {
      const self = {}
      const end = listenToServer(
        {
          onDelivery: (isDelivered) => void (isDelivered ? notified.add(self) : notified.delete(self)),
          config: { ...config, connectionString: verified(options.listenUrl ?? options.url) },
          queries: pooled,
          poll: options.polled?.[channel]
        },
        channel,
        onPayload,
        onListening
      )
      listeners.add(end)
      return async () => {
        listeners.delete(end)
        await end()
      }
    },
    erase: async (tables) => {
      // With new statistics: the old ones contain values of deleted rows.
      for (const table of tables) await pooled.query(`VACUUM (ANALYZE) ${plainName(table)}`)
    },
    stats: () => ({
      used: pool.totalCount - pool.idleCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
      deafListeners: listeners.size - notified.size
    }),
    check: async () => {
      await pooled.query('SELECT 1')
    },
    close: () => {
      health.close()
      closing ??= Promise.all([...listeners].map((end) => end())).then(async () => {
        await Promise.all([prober.end(), pool.end()])
      })
      return closing
    }
  }
}

const poolOf = (config: pg.PoolConfig): pg.Pool => {
  const pool = new pg.Pool(config)
  // A connection that breaks while unused is replaced at the next statement, which reports a persisting fault.
  pool.on('error', () => undefined)
  return pool
}

/** The driver verifies the server's certificate in these modes too, and warns that a later version will not. */
const verified = (url: string): string =>
  /[?&]uselibpqcompat=true/.test(url)
    ? url
    : url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/, '$1verify-full')

/** Resolves as the work does. Rejects as soon as the server is away; then the outcome of the work is unknown. */
const answered = <Answer>({ signal }: Health, work: () => Promise<Answer>): Promise<Answer> => {
  signal.throwIfAborted()
  return abortable(signal, work())
}

const queriesOn = (target: Pick<pg.Pool, 'query'> | pg.PoolClient, health: Health): Queries => ({
  query: async <Row extends Record<string, unknown>>(sql: string, values: readonly unknown[] = []) => {
    try {
      return (await answered(health, () => target.query<Row>(sql, [...values]))).rows
    } catch (cause) {
      throw failure(cause)
    }
  },
  // Without values the driver sends the text as it is, and the server accepts any number of statements.
  script: async (sql) => {
    try {
      await answered(health, () => target.query(sql))
    } catch (cause) {
      throw failure(cause)
    }
  }
})

const transaction = async <Result>(
  pool: pg.Pool,
  health: Health,
  begin: string,
  work: (queries: Queries) => Promise<Result>
): Promise<Result> => {
  health.signal.throwIfAborted()
  const client = await pool.connect().catch((cause: unknown) => {
    throw failure(cause)
  })
  // A connection that breaks between two statements reports it here; the next statement rejects.
  const ignore = (): void => undefined
  client.on('error', ignore)
  const queries = queriesOn(client, health)
  let isBroken = true
  try {
    await queries.script(begin)
    const result = await work(queries)
    await queries.query('COMMIT')
    isBroken = false
    return result
  } catch (error) {
    // An unavailable server rolls back automatically when the connection is closed.
    isBroken =
      isUnavailable(error) ||
      (await queries.query('ROLLBACK').then(
        () => false,
        () => true
      ))
    throw error
  } finally {
    client.off('error', ignore)
    client.release(isBroken)
  }
}

const isUnavailable = (error: unknown): boolean => error instanceof Refusal && error.code === 'engine_away'

/**
 * SQLSTATE classes 08 (connection), 28 and 3D (refuses the user or the database), 57P (shutting down), 53300 (too many
 * connections) and 25P03 (this process rested too long in a transaction): not faults of the statement.
 */
const failure = (cause: unknown): unknown => {
  const code = cause instanceof pg.DatabaseError ? (cause.code ?? '') : undefined
  if (code === DISK_FULL) return diskFull(cause)
  const isStatement = code !== undefined && !/^(08|28|3D|57P|53300|25P03)/.test(code)
  if (isStatement || cause instanceof TypeError || cause instanceof Refusal) return cause
  return new Refusal('engine_away', ['PostgreSQL'], { retryAfterSeconds: AWAY_RETRY_SECONDS, cause })
}
