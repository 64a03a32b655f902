import { setMaxListeners } from 'node:events'
import type { Agent } from 'node:http'
import { addAbortSignal, PassThrough, Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { createClient, ClickHouseError as ServerError } from '@clickhouse/client'
import { pause, Refusal, withSignals } from '@gamenet/schemas'
import { type Health, type HealthTimes, watchHealth } from '../health.js'
import { barrierOf } from './barrier.js'
import { byLane, type ClickHouse, LANE_NAMES, type LaneName, type Parameters as Values } from './clickhouse.js'
import { type Connection, engineError, type KnownSettings, laneOf, newTag, running, type Statement } from './lane.js'
import { parameterText, stringLiteral } from './parameters.js'
import { passwordOf, QUESTIONS, questionsPassword } from './readers.js'
import { ended, type Slots, slotsOf } from './slots.js'
import {
  ALL_SETTING_NAMES,
  bodyLimits,
  insertHead,
  LANE_LIMITS,
  type LaneLimits,
  laneSize,
  type Settings
} from './statement.js'
import { EXCEPTION_LENGTH_MAX, streamedException } from './streamed-exception.js'

export type ClickHouseServerOptions = {
  /** Address with scheme and port; may contain `user:password@` and `/database`. */
  readonly url: string
  readonly database?: string
  /** Certificate of the authority that signed the server's, PEM. Default: the authorities that the machine trusts. */
  readonly ca?: string | undefined
  /** Number of concurrent reads. */
  readonly readers?: number | undefined
  /** Maximum number of waiting reads; further ones are refused with `engine_busy`. */
  readonly queueMax?: number | undefined
  /** Compresses requests and answers with gzip. Default: true. */
  readonly compression?: boolean
  /** Longest silence of the server before it counts as unavailable. Default: the lane's limit and some seconds. */
  readonly requestTimeoutMs?: number
  /** Called directly before each write; a write is not sent if it throws. */
  readonly beforeWrite?: ((lane: LaneName) => void) | undefined
  /** Creates what makes the connections of a client: clients end idle connections, which others must not use. */
  readonly agent?: () => Agent
  /** Called with the name of the server that sends an answer, before the answer is read. */
  readonly onServer?: ((name: string) => void) | undefined
  /** For tests. */
  readonly health?: HealthTimes | undefined
  /** Overrides the default limits of lanes. */
  readonly limits?: Partial<Readonly<Record<LaneName, LaneLimits>>> | undefined
}

/** A server, which can be left for another one. */
export type ClickHouseServer = ClickHouse & {
  /** Resolves when the server has all rows of all tables that any of its replicas has acknowledged before. */
  syncAll(): Promise<void>
  /** Ends all statements at once, and refuses further ones, with a reason. */
  abandon(reason: Refusal): Promise<void>
}

type Client = ReturnType<typeof createClient>
type LaneSlots = Slots<Connection>
type ExecParams = Parameters<Client['exec']>[0]
type ExecHeaders = Awaited<ReturnType<Client['exec']>>['response_headers']

const AWAY_RETRY_SECONDS = 5
/**
 * Lanes whose callers do not wait for a server that is away. Steps of the projector wait up to the limit of a
 * statement.
 */
const IMPATIENT: ReadonlySet<LaneName> = new Set(['readers', 'exports', 'control'])
/** The server itself stops a statement at its limit; the socket waits slightly longer for that answer. */
const SILENCE_BEYOND_LIMIT_MS = 10_000
/** Below the 3 s after which the oldest servers in use close an idle connection. */
const IDLE_SOCKET_MS = 2000
const CLOSE_WAIT_MS = 3000
const CLOSE_KILL_WAIT_MS = 1000

/**
 * Opens a ClickHouse server over HTTP. No request is sent here, so a service can start before its server. While the
 * server is unavailable, every statement is refused with `engine_away`; the next one tries again.
 */
export const openClickHouseServer = (options: ClickHouseServerOptions): ClickHouseServer => {
  const clients: Client[] = []
  const abandon = new AbortController()
  // Each running statement listens to it.
  setMaxListeners(0, abandon.signal)
  const underWay = new Set<string>()
  const prober = clientOf(options, 2 ** 31 - 1)
  clients.push(prober)
  const health = watchHealth(
    'The tables',
    (signal) => answerOf(prober.exec({ query: 'SELECT 1', abort_signal: signal }), 'SELECT 1', signal, options),
    options.health
  )
  const slots = byLane((name) => {
    const limits = options.limits?.[name] ?? LANE_LIMITS[name]
    const clientFor = ({ seconds }: LaneLimits): Client =>
      clientOf(options, options.requestTimeoutMs ?? seconds * 1000 + SILENCE_BEYOND_LIMIT_MS, name !== 'exports')
    const ways = { statements: clientFor(limits), bodies: clientFor(bodyLimits(limits)) }
    clients.push(ways.statements, ways.bodies)
    const { slots: length, ...queue } = laneSize(name, { readers: options.readers ?? 8, queueMax: options.queueMax })
    const connection = () =>
      connectionOf(ways, options, underWay, abandon.signal, IMPATIENT.has(name) ? health : undefined)
    return slotsOf(name, Array.from({ length }, connection), queue)
  })
  const known = knownSettings(slots.control)
  const barrier = barrierOf((query, clickhouse_settings = {}) =>
    withSignals([abandon.signal, health.signal], ({ signal: abort_signal }) =>
      answerOf(prober.exec({ query, clickhouse_settings, abort_signal }), query, abort_signal, options)
    )
  )
  const kill = (tag: string) => killUntilEnded(slots.control, tag)
  const lanes = byLane((name) => {
    const limits = options.limits?.[name] ?? LANE_LIMITS[name]
    return laneOf({ name, slots: slots[name], limits, known, barrier, kill, beforeWrite: options.beforeWrite })
  })
  let closing: Promise<void> | undefined
  const close = (reason?: Refusal): Promise<void> => {
    for (const name of LANE_NAMES) if (name !== 'control' || reason !== undefined) slots[name].close(reason)
    if (closing === undefined) health.close()
    closing ??= closeClients(slots, clients, underWay, abandon)
    return closing
  }
  return {
    ...lanes,
    readers: { ...lanes.readers, stream: lanes.exports.stream },
    version: async () => String((await lanes.control.rows('SELECT version() AS version'))[0]?.version),
    stats: () => ({ lanes: byLane((name) => slots[name].stats()) }),
    close: () => close(),
    syncAll: barrier.syncAll,
    abandon: async (reason) => {
      abandon.abort(reason)
      await close(reason)
    }
  }
}

/** Sends statements each on a connection of its own, so that it meets what is at the address now. */
export const openAsker = (options: ClickHouseServerOptions, requestTimeoutMs: number) => {
  const client = clientOf(options, requestTimeoutMs, false, false)
  return {
    ask: (query: string, signal: AbortSignal): Promise<Uint8Array> =>
      answerOf(client.exec({ query, abort_signal: signal }), query, signal, options),
    close: () => ended(client.close())
  }
}

/** Streams are not compressed: of a compressed one that breaks off, the end is lost, and with it the exception. */
const clientOf = (
  options: ClickHouseServerOptions,
  requestTimeoutMs: number,
  compresses = true,
  keepsAlive = true
): Client => {
  const compression = compresses && (options.compression ?? true)
  return createClient({
    url: options.url,
    ...(options.database === undefined ? {} : { database: options.database }),
    ...(options.agent === undefined ? {} : { http_agent: options.agent() }),
    ...(options.ca === undefined ? {} : { tls: { ca_cert: Buffer.from(options.ca) } }),
    application: 'gamenet-stats',
    request_timeout: requestTimeoutMs,
    // The lane's slots are the limit.
    max_open_connections: Number.POSITIVE_INFINITY,
    compression: { request: compression, response: compression },
    keep_alive: { enabled: keepsAlive, idle_socket_ttl: IDLE_SOCKET_MS, eagerly_destroy_stale_sockets: true },
    capture_enhanced_stack_trace: false,
    log: { level: 127 }
  })
}

/** Kills statements that still run after the wait, and does not await them. */
const closeClients = async (
  slots: Readonly<Record<LaneName, LaneSlots>>,
  clients: readonly Client[],
  underWay: ReadonlySet<string>,
  abandon: AbortController
): Promise<void> => {
  const idle = Promise.all(LANE_NAMES.map((name) => slots[name].idle()))
  const give = new Refusal('engine_away', ['The tables'], { retryAfterSeconds: AWAY_RETRY_SECONDS })
  let abandoning: NodeJS.Timeout | undefined
  const killing = setTimeout(() => {
    abandoning = setTimeout(() => abandon.abort(give), CLOSE_KILL_WAIT_MS)
    void killAll(slots.control, [...underWay])
  }, CLOSE_WAIT_MS)
  await idle
  clearTimeout(killing)
  clearTimeout(abandoning)
  slots.control.close()
  await Promise.all(clients.map((client) => ended(client.close())))
}

/**
 * Condition for queries that can be killed. ClickHouse marks a query that is still being planned as killed and then
 * executes it to its end; a query that has read rows, or has run for a while, is executing.
 */
const KILLABLE = '(read_rows > 0 OR elapsed > 0.5)'

const GONE_CHECK_MS = 50
const GONE_CHECK_MS_MAX = 1000

/**
 * Kills an abandoned query: its request ends at once, the query in the server does not, and a kill that comes too early
 * has no effect. So the kill is repeated until the query is missing twice, or the server is unavailable.
 */
const killUntilEnded = async (control: LaneSlots, tag: string): Promise<void> => {
  const condition = `query_id = ${stringLiteral(tag)}`
  let missing = 0
  for (let ms = GONE_CHECK_MS; missing < 2; ms = Math.min(ms * 2, GONE_CHECK_MS_MAX)) {
    try {
      await runOn(control, `KILL QUERY WHERE ${condition} AND ${KILLABLE}`)
      const found = await runOn(control, `SELECT count() FROM system.processes WHERE ${condition}`)
      missing = new TextDecoder().decode(found).trim() === '0' ? missing + 1 : 0
    } catch {
      return
    }
    if (missing < 2) await pause(missing > 0 ? GONE_CHECK_MS : ms, undefined, { ref: false })
  }
}

const killAll = async (control: LaneSlots, tags: readonly string[]): Promise<void> => {
  await Promise.all(tags.map((tag) => killUntilEnded(control, tag)))
}

/** Clients of one lane, with different timeouts. */
type Ways = { readonly statements: Client; readonly bodies: Client }

const connectionOf = (
  ways: Ways,
  options: ClickHouseServerOptions,
  underWay: Set<string>,
  abandon: AbortSignal,
  health?: Health
): Connection => {
  const auth = { username: QUESTIONS, password: questionsPassword(passwordOf(options.url)) }
  const queryOf = ({ sql, parameters, settings, format, tag, isQuestion }: Statement) => ({
    ...withLiterals(sql, parameters),
    query_id: tag,
    clickhouse_settings: { ...settings, default_format: format, max_query_size: QUERY_BYTES_MAX } as Settings,
    ...(isQuestion === true ? { auth } : {})
  })
  return {
    run: async (statement) => {
      const { clickhouse_settings, ...query } = queryOf(statement)
      health?.signal.throwIfAborted()
      underWay.add(statement.tag)
      try {
        return await withSignals([abandon, statement.signal, health?.signal], ({ signal: abort_signal }) => {
          const settings = { ...clickhouse_settings, ...WHOLE_ANSWER }
          const execution = ways.statements.exec({ ...query, clickhouse_settings: settings, abort_signal })
          return answerOf(execution, statement.sql, abort_signal, options, statement.isQuestion)
        })
      } finally {
        underWay.delete(statement.tag)
      }
    },
    stream: (statement) =>
      streamFrom(ways.statements, statement, queryOf(statement), options, underWay, abandon, health),
    put: async (target, body) => {
      const query = insertHead(target.table, target.columns, body.format)
      const values = Readable.from([body.bytes], { objectMode: false })
      const settings = { clickhouse_settings: target.settings, query_id: newTag() }
      await answerOf(ways.bodies.exec({ ...settings, query, values, abort_signal: abandon }), query, abandon, options)
    }
  }
}

/** Long parameters are a part of their statement. */
const QUERY_BYTES_MAX = String(64 * 1024 * 1024)
/**
 * An answer begins when its statement has ended, so that a statement that fails has its own error. The server keeps
 * this many bytes of it in memory, and the rest in a file.
 */
const WHOLE_ANSWER: Settings = { wait_end_of_query: 1, http_response_buffer_size: String(16 * 1024 * 1024) }

/**
 * Longer parameters do not fit into a URL, so they become literals of the statement, which is the body of the request.
 */
const URL_PARAMETER_LENGTH_MAX = 4096

const withLiterals = (statement: string, parameters: Values): { query: string; query_params: Values } => {
  const textOf = (name: string, value: unknown) => (typeof value === 'string' ? value : parameterText(name, value))
  const texts = new Map(Object.entries(parameters).map(([name, value]) => [name, textOf(name, value)]))
  const isLong = (name: string) => (texts.get(name)?.length ?? 0) > URL_PARAMETER_LENGTH_MAX
  const query = statement.replace(/\{\s*(\w+)\s*:([^}]*)\}/g, (placeholder, name: string, type: string) => {
    if (!isLong(name)) return placeholder
    return `CAST(${stringLiteral(texts.get(name) ?? '')}, ${stringLiteral(type.trim())})`
  })
  return { query, query_params: Object.fromEntries(Object.entries(parameters).filter(([name]) => !isLong(name))) }
}

const streamFrom = async (
  client: Client,
  { sql, tag }: Statement,
  query: ExecParams,
  options: ClickHouseServerOptions,
  underWay: Set<string>,
  abandon: AbortSignal,
  health?: Health
): Promise<Readable> => {
  const away = health?.signal
  away?.throwIfAborted()
  underWay.add(tag)
  const left = () => underWay.delete(tag)
  try {
    // A server that is away ends only the wait for the first bytes: a stream that has begun waits as long as its lane.
    const { stream, response_headers: headers } = await withSignals([abandon, away], ({ signal }) =>
      client.exec({ ...query, abort_signal: signal })
    )
    noteServer(options, headers)
    addAbortSignal(abandon, stream)
    const body = Readable.from(checked(stream, oneOf(headers['x-clickhouse-exception-tag']), sql), {
      objectMode: false
    })
    body.once('close', () => {
      left()
      stream.destroy()
    })
    return body
  } catch (cause) {
    left()
    for (const signal of [abandon, away]) signal?.throwIfAborted()
    throw failure(cause, sql)
  }
}

/**
 * Yields an answer, and holds its end back until it is known not to be an exception. A server that fails breaks the
 * connection off behind the exception; iteration of the connection itself would drop what arrived before the break.
 */
async function* checked(stream: Readable, tag: string | undefined, sql: string): AsyncGenerator<Uint8Array> {
  const arrived = new PassThrough()
  let broken: unknown
  stream.once('error', (cause) => {
    broken = cause
    arrived.end()
  })
  let end: Buffer = Buffer.alloc(0)
  for await (const chunk of stream.pipe(arrived)) {
    end = Buffer.concat([end, chunk as Uint8Array])
    if (end.length <= EXCEPTION_LENGTH_MAX) continue
    yield end.subarray(0, end.length - EXCEPTION_LENGTH_MAX)
    end = end.subarray(-EXCEPTION_LENGTH_MAX)
  }
  const exception = streamedException(end, tag)
  if (exception !== undefined) throw engineError(exception, sql, broken)
  if (broken !== undefined) throw failure(broken, sql)
  yield end
}

/** Reads the whole body. */
const answerOf = async (
  execution: ReturnType<Client['exec']>,
  sql: string,
  signal: AbortSignal,
  options: ClickHouseServerOptions,
  isQuestion?: boolean
): Promise<Uint8Array> => {
  try {
    const { stream, response_headers: headers } = await execution
    noteServer(options, headers)
    addAbortSignal(signal, stream)
    return await buffer(stream)
  } catch (cause) {
    if (signal.aborted) throw signal.reason
    throw failure(cause, sql, isQuestion)
  }
}

const noteServer = ({ onServer }: ClickHouseServerOptions, headers: ExecHeaders): void => {
  const name = oneOf(headers['x-clickhouse-server-display-name'])
  if (name !== undefined) onServer?.(name)
}

const oneOf = (header: string | string[] | undefined): string | undefined =>
  Array.isArray(header) ? header[0] : header

/** Codes of a server that refuses the database or the user of the address, whatever the statement. */
const REFUSES_ALL: ReadonlySet<string> = new Set(['81', '192', '193', '194', '516'])

/** An error in an answer belongs to the statement; any other error means that the engine is unavailable. */
const failure = (cause: unknown, sql: string, isQuestion = false): unknown => {
  if (cause instanceof ServerError && (isQuestion || !REFUSES_ALL.has(cause.code)))
    return engineError(`Code: ${cause.code}. ${cause.message}`, sql, cause)
  // Errors of its libraries have another form: `std::exception. Code: 1001, type: …`.
  if (cause instanceof Error && /\bCode: \d+\b.*\(version /s.test(cause.message))
    return engineError(cause.message, sql, cause)
  if (cause instanceof TypeError) return cause
  return new Refusal('engine_away', ['The tables'], { retryAfterSeconds: AWAY_RETRY_SECONDS, cause })
}

const runOn = (control: LaneSlots, text: string): Promise<Uint8Array> =>
  control.run((connection) => {
    const statement = { sql: text, parameters: {}, settings: {}, format: 'TSV', tag: newTag() } as const
    return running(connection.run(statement))
  })

/** Queried at the first statement, and again after a failure; then cached. */
const knownSettings = (control: LaneSlots): KnownSettings => {
  let known: Promise<ReadonlySet<string>> | undefined
  const ask = async (): Promise<ReadonlySet<string>> => {
    const names = ALL_SETTING_NAMES.map(stringLiteral).join(', ')
    const bytes = await runOn(control, `SELECT name FROM system.settings WHERE name IN (${names})`)
    return new Set(new TextDecoder().decode(bytes).split('\n'))
  }
  return () => {
    known ??= ask().catch((error: unknown) => {
      known = undefined
      throw error
    })
    return known
  }
}
