import { once, setMaxListeners } from 'node:events'
import { addAbortSignal, type Readable } from 'node:stream'
import { backoffMs, pause, Refusal } from '@gamenet/schemas'
import type { Barrier } from './barrier.js'
import {
  ClickHouseError,
  type ColumnBlock,
  type FileFormat,
  type Lane,
  type LaneName,
  type Parameters,
  type ReadOptions
} from './clickhouse.js'
import { ended, type Running, type Slots } from './slots.js'
import {
  ANSWER_SETTINGS,
  BODY_SETTINGS,
  bodyLimits,
  checkNames,
  jsonArray,
  knownOf,
  type LaneLimits,
  limitSettings,
  lowerLimits,
  parseRows,
  QUORUM_SETTINGS,
  REPLICATED_SETTINGS,
  type Settings,
  STREAM_SETTINGS,
  WRITE_SETTINGS
} from './statement.js'

/** A statement for a connection. The tag identifies it in the engine. */
export type Statement = {
  readonly sql: string
  readonly parameters: Parameters
  readonly settings: Settings
  readonly format: 'JSONEachRow' | 'TSV' | FileFormat
  readonly tag: string
  readonly isQuestion?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

/** The bytes of rows, and their format. */
type Body = { readonly format: 'JSONCompactEachRow' | 'Native'; readonly bytes: Uint8Array }

export type Target = { readonly table: string; readonly columns: readonly string[]; readonly settings: Settings }

/** A connection to the engine. Rejects with a `ClickHouseError` or a `Refusal`. */
export type Connection = {
  /** Returns the bytes of the statement's answer. */
  run(statement: Statement): Promise<Uint8Array>
  /** Returns a stream that fails with the statement, and is closed when the statement has ended or is to be killed. */
  stream(statement: Statement): Promise<Readable>
  put(target: Target, body: Body): Promise<void>
}

/** Returns which of our settings the engine's version supports; queried once. */
export type KnownSettings = () => Promise<ReadonlySet<string>>

/** Their statements read only tables for which `sync` was called, once for many answers. */
const OF_ANSWERS: ReadonlySet<LaneName> = new Set(['readers', 'exports'])

let lastTag = 0
/** The process id and the time make tags unique across processes of one server. */
const TAG_PREFIX = `gamenet-${process.pid}-${Date.now().toString(36)}`
export const newTag = (): string => {
  lastTag += 1
  return `${TAG_PREFIX}-${lastTag}`
}

/** What a statement needs before it is sent. */
type Ready = {
  /** The settings that the engine supports. */
  readonly known: ReadonlySet<string>
  readonly isReplicated: boolean
  /** The settings of reads. */
  readonly reads: Settings
  /** The settings of writes. */
  readonly writes: Settings
}

/** Creates a lane over connections of either engine: settings, parameters, aborts and answers are the same for both. */
export const laneOf = (needs: {
  readonly name: LaneName
  readonly slots: Slots<Connection>
  readonly limits: LaneLimits
  readonly known: KnownSettings
  readonly barrier: Barrier
  /** Kills the statement with this tag; resolves when it has ended, or the engine is away. Never rejects. */
  readonly kill: (tag: string) => Promise<void>
  /** Called when a write has its connection; the write is not sent if it throws. */
  readonly beforeWrite?: ((lane: LaneName) => void) | undefined
}): Lane => {
  const { slots, barrier, kill } = needs
  /** Resolves when a statement may read its tables. */
  const ready = async (sql?: string, parameters: Parameters = {}): Promise<Ready> => {
    const known = await needs.known()
    const isReplicated = (await barrier.database()) !== undefined
    if (isReplicated && sql !== undefined && !OF_ANSWERS.has(needs.name)) await barrier.before(sql, parameters)
    const reads = await barrier.reads()
    return { known, isReplicated, reads, writes: { ...WRITE_SETTINGS, ...reads, ...(isReplicated && QUORUM_SETTINGS) } }
  }
  const limits = limitSettings(needs.limits)
  const limitsOf = (own: ReadOptions['limits']): Settings =>
    own === undefined ? limits : limitSettings(lowerLimits(needs.limits, own))
  /** Many statements may share one signal. */
  const run = <Answer>(job: (connection: Connection) => Running<Answer>, signal: AbortSignal | undefined) => {
    if (signal !== undefined) setMaxListeners(0, signal)
    return slots.run(job, signal)
  }
  const read = async (
    sql: string,
    parameters: Parameters,
    { signal, limits: own, isQuestion }: ReadOptions
  ): Promise<Uint8Array> => {
    const { known, reads } = await ready(sql, parameters)
    const tag = newTag()
    const settings = knownOf({ ...limitsOf(own), ...ANSWER_SETTINGS, ...reads }, known)
    const statement: Statement = { sql, parameters, settings, format: 'JSONEachRow', tag, isQuestion, signal }
    return jsonArray(await run((connection) => abortable(connection.run(statement), signal, () => kill(tag)), signal))
  }
  return {
    sync: (tables) => barrier.sync(tables),
    execute: async (sql, parameters = {}, { signal } = {}) => {
      const { known, isReplicated, writes } = await ready(sql, parameters)
      // DDL waits for its tables, however long.
      const isOfRows = /^[\s(]*(INSERT|SELECT|WITH)\b/i.test(sql)
      const ofRows = isOfRows ? knownOf({ ...limits, ...writes }, known) : {}
      const settings = { ...ofRows, ...(isReplicated && REPLICATED_SETTINGS) }
      const send = async (): Promise<void> => {
        const tag = newTag()
        const statement: Statement = { sql, parameters, settings, format: 'TSV', tag, signal }
        await run((connection) => {
          needs.beforeWrite?.(needs.name)
          return over(abortable(connection.run(statement), signal, () => kill(tag)))
        }, signal)
      }
      await (isReplicated ? onReplicas(send, signal) : send())
    },
    rows: async (sql, parameters = {}, options = {}) => parseRows(await read(sql, parameters, options)),
    json: (sql, parameters = {}, options = {}) => read(sql, parameters, options),
    stream: async (sql, parameters, { format, signal, limits: own, rowGroupRows, isQuestion }) => {
      const tag = newTag()
      const groups: Settings = rowGroupRows === undefined ? {} : { output_format_parquet_row_group_size: rowGroupRows }
      const { known, reads } = await ready()
      const settings = knownOf({ ...limitsOf(own), ...STREAM_SETTINGS, ...groups, ...reads }, known)
      const statement: Statement = { sql, parameters, settings, format, tag, isQuestion }
      return await run((connection) => streamed(connection.stream(statement), signal, () => kill(tag)), signal)
    },
    insert: async (table, columns, body) => {
      checkNames(table, columns)
      const rows = bodyOf(table, columns, body)
      if (rows.bytes.length === 0) return
      const ofBody = limitSettings(bodyLimits(needs.limits))
      const { known, writes } = await ready()
      const settings = knownOf({ ...ofBody, ...writes, ...BODY_SETTINGS }, known)
      await slots.run((connection) => {
        needs.beforeWrite?.(needs.name)
        return running(connection.put({ table, columns, settings }, rows))
      })
    }
  }
}

/** Refuses a block with other columns: the engine would fill a missing one with its default. */
const bodyOf = (table: string, columns: readonly string[], rows: Uint8Array | ColumnBlock): Body => {
  if (rows instanceof Uint8Array) return { format: 'JSONCompactEachRow', bytes: rows }
  if (String(rows.columns.toSorted()) !== String(columns.toSorted())) {
    throw new ClickHouseError(
      `A block for ${table} has the columns ${rows.columns.join(', ')}; expected are ${columns.join(', ')}.`
    )
  }
  return { format: 'Native', bytes: rows.native }
}

export const running = <Answer>(answer: Promise<Answer>): Running<Answer> => ({ answer, released: ended(answer) })

/** Rejects as soon as `signal` aborts; the slot stays held until the engine has processed the kill. */
const abortable = <Answer>(
  work: Promise<Answer>,
  signal: AbortSignal | undefined,
  stop: () => Promise<void>
): Running<Answer> => {
  if (signal === undefined) return running(work)
  let stopped = Promise.resolve()
  const answer = new Promise<Answer>((resolve, reject) => {
    const abort = (): void => {
      stopped = stop()
      reject(signal.reason)
    }
    signal.addEventListener('abort', abort, { once: true })
    const forget = (): void => signal.removeEventListener('abort', abort)
    work.then(resolve, reject).finally(forget)
  })
  return { answer, released: ended(work).then(() => stopped) }
}

/** Resolves with a stream that has its first bytes; the slot stays held until the statement has ended in the engine. */
const streamed = (
  opening: Promise<Readable>,
  signal: AbortSignal | undefined,
  stop: () => Promise<void>
): Running<Readable> => {
  const released = opening.then(async (body) => {
    // It listens to errors too: their reader may have left.
    await ended(once(body, 'close'))
    if (!body.readableEnded) await stop()
  })
  const answer = opening.then(async (body) => {
    if (signal !== undefined) addAbortSignal(signal, body)
    await once(body, 'readable')
    return body
  })
  return { answer, released: ended(released) }
}

/** Resolves only when the engine has finished: a write must have ended before its caller continues. */
const over = <Answer>({ answer, released }: Running<Answer>): Running<Answer> => ({
  answer: Promise.allSettled([answer, released]).then(() => answer),
  released
})

/** A deletion has failed, or a replica is away, which carries it out when it is back: the message says so. */
const UNFINISHED = 341
const REPLICA_AWAY = /because some replicas are inactive/
/** Another change of the table has not arrived yet. */
const CANNOT_ASSIGN_ALTER = 517
const ASSIGN_AGAIN = { firstMs: 50, maxMs: 2000 }
const ASSIGN_TRIES = 10

const onReplicas = async (send: () => Promise<void>, signal: AbortSignal | undefined): Promise<void> => {
  for (let tries = 1; ; tries += 1) {
    try {
      return await send()
    } catch (error) {
      const code = error instanceof ClickHouseError ? error.code : undefined
      if (code === UNFINISHED && REPLICA_AWAY.test(String(error))) return
      if (code !== CANNOT_ASSIGN_ALTER || tries === ASSIGN_TRIES) throw error
      await pause(backoffMs(ASSIGN_AGAIN, tries), signal)
    }
  }
}

const MESSAGE_LENGTH_MAX = 2000
const TOO_MANY_SIMULTANEOUS_QUERIES = 202
const MEMORY_LIMIT_EXCEEDED = 241
const BUSY_RETRY_SECONDS = 1

/**
 * Classifies an exception's text (`Code: 62. DB::Exception: …`): the engine is at its limit (`engine_busy`), or this
 * statement failed.
 */
export const engineError = (text: string, sql: string, cause?: unknown): Error => {
  const digits = /Code: (\d+)\b/.exec(text)?.[1]
  const code = digits === undefined ? undefined : Number(digits)
  const isFull = code === MEMORY_LIMIT_EXCEEDED && /\(total\)/.test(text)
  const error = new ClickHouseError(text.trim().slice(0, MESSAGE_LENGTH_MAX), { code, sql, cause })
  if (!isFull && code !== TOO_MANY_SIMULTANEOUS_QUERIES) return error
  return new Refusal('engine_busy', [], { retryAfterSeconds: BUSY_RETRY_SECONDS, cause: error })
}
