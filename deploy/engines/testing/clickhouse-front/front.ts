/*
 * A front that implements the part of ClickHouse's HTTP protocol that this project uses, on chDB in its own process. It is
 * for tests and demonstrations on machines without a server: they show that a client works with chDB behind this front, not
 * with a ClickHouse server. Loopback only, no users, no sessions, only the default database.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { promisify } from 'node:util'
import {
  createBrotliDecompress,
  createGunzip,
  createGzip,
  createInflate,
  gzip as gzipBytes,
  constants as zlib
} from 'node:zlib'
import { errorMessage } from '@gamenet/schemas'
import { drainPending } from 'chdb'
import { CleanSession } from '../../src/clickhouse/clean-session.js'
import { statusOf } from '../../src/clickhouse/http-status.js'
import { checkPlaceholders, codeOf, stringLiteral } from '../../src/clickhouse/parameters.js'
import { ended, type Slots, slotsOf } from '../../src/clickhouse/slots.js'

export type FrontOptions = {
  readonly path: string
  /** Default: 0, a free port. */
  readonly port?: number
  /** Closes the connection after a streamed exception, as servers before 25.11 do; else the body ends normally. */
  readonly breaksOff?: boolean
}

export type Front = { readonly url: string; close(): Promise<void> }

const SESSIONS = 16
const QUEUE_MAX = 256
/** As the server's `http_max_uri_size`. */
const HEADER_BYTES_MAX = 1024 * 1024
const BODY_BYTES_MAX = 1024 * 1024 * 1024

export const openFront = async (options: FrontOptions): Promise<Front> => {
  // Backups may be written to files next to the tables.
  const args = ['--async_load_databases=0', `--backups.allowed_path=${dirname(resolve(options.path))}/`]
  const open = (): CleanSession => new CleanSession(options.path, args)
  const sessions = Array.from({ length: SESSIONS }, open)
  const killer = open()
  const engine: Engine = {
    slots: slotsOf('front', sessions, { queueMax: QUEUE_MAX, retryAfterSeconds: 1 }),
    killer: slotsOf('front kill', [killer], { queueMax: QUEUE_MAX, retryAfterSeconds: 1 }),
    breaksOff: options.breaksOff ?? false
  }
  const server = createServer({ maxHeaderSize: HEADER_BYTES_MAX }, (request, response) => {
    void serve(engine, request, response)
  })
  await listen(server, options.port ?? 0)
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
      engine.slots.close()
      const killAll = `KILL QUERY WHERE query NOT LIKE 'KILL QUERY%'`
      await engine.killer.run((session) => {
        const answer = session.query(killAll, 'TabSeparated')
        return { answer, released: ended(answer) }
      })
      await engine.slots.idle()
      for (const session of [...sessions, killer]) session.close()
      await drainPending()
    }
  }
}

type Engine = { readonly slots: Slots<CleanSession>; readonly killer: Slots<CleanSession>; readonly breaksOff: boolean }

const listen = (server: Server, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })

/** A parsed request: the statement, its data, its parameters. */
type Call = {
  readonly sql: string
  readonly data: Buffer
  readonly parameters: Readonly<Record<string, string>>
  readonly queryId: string
  readonly gzip: boolean
}

const serve = async (engine: Engine, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  try {
    const url = new URL(request.url ?? '/', 'http://front')
    if (url.pathname === '/ping' || (request.method === 'GET' && !url.searchParams.has('query'))) {
      response.end('Ok.\n')
      return
    }
    const call = await callOf(request, url)
    response.setHeader('X-ClickHouse-Query-Id', call.queryId)
    response.setHeader('X-ClickHouse-Timezone', 'UTC')
    checkPlaceholders(call.sql, call.parameters)
    const lane = /^\s*KILL\b/i.test(codeOf(call.sql)) ? engine.killer : engine.slots
    await lane.run((session) => {
      const answer = respond(engine, session, call, response)
      return { answer, released: ended(answer) }
    })
  } catch (error) {
    refuse(response, error)
  }
}

const callOf = async (request: IncomingMessage, url: URL): Promise<Call> => {
  const body = await bodyOf(request)
  const inUrl = url.searchParams.get('query')
  const parameters = [...url.searchParams].filter(([name]) => name.startsWith('param_'))
  const queryId = url.searchParams.get('query_id')
  return {
    sql: inUrl ?? body.toString(),
    data: inUrl === null ? Buffer.alloc(0) : body,
    parameters: Object.fromEntries(parameters.map(([name, text]) => [name.slice('param_'.length), text])),
    queryId: queryId !== null && /^[\w-]+$/.test(queryId) ? queryId : randomUUID(),
    gzip:
      url.searchParams.get('enable_http_compression') === '1' &&
      /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))
  }
}

const DECODERS = {
  gzip: createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress
} as const

const bodyOf = async (request: IncomingMessage): Promise<Buffer> => {
  if (Number(request.headers['content-length'] ?? 0) > BODY_BYTES_MAX) {
    throw new Error(`Code: 307. DB::Exception: The body is larger than ${BODY_BYTES_MAX} bytes. (TOO_MANY_BYTES)`)
  }
  const encoding = request.headers['content-encoding']
  if (encoding === undefined || encoding === 'identity') return await buffer(request)
  if (!Object.hasOwn(DECODERS, encoding)) {
    throw new Error(`Code: 48. DB::Exception: Unknown Content-Encoding ${encoding}. (NOT_IMPLEMENTED)`)
  }
  return await buffer(request.pipe(DECODERS[encoding as keyof typeof DECODERS]()))
}

const respond = async (engine: Engine, session: CleanSession, call: Call, response: ServerResponse): Promise<void> => {
  await bind(session, call.parameters)
  const insert = INSERT_WITH_DATA.exec(call.sql)
  if (insert !== null) {
    await store(session, insert, call.data)
    response.writeHead(200, { 'Content-Type': 'text/plain; charset=UTF-8', 'X-ClickHouse-Summary': SUMMARY }).end()
    return
  }
  // The process assigns its own query ids, so the requested one is put in front of the text, where it can be found. A
  // text with parameters is rewritten without it; there the caller's log_comment, equal to its id, identifies it.
  const isIt = `(startsWith(query, '/*$1*/') OR Settings['log_comment'] = '$1')`
  const sql = call.sql.replace(/\bquery_id\s*=\s*'([\w-]*)'/g, isIt)
  const text = `/*${call.queryId}*/ ${sql}`
  const failure = await sendComplete(session, text, call.gzip, response)
  if (failure === undefined) return
  // A server has sent the first rows when a later one throws. Streams of chDB do not always end when they are killed,
  // so only a statement that is known to throw is streamed.
  if (codeOfException(failure) !== THROWN_BY_THROW_IF) throw failure
  await stream(engine, session, text, call.gzip, response)
}

const THROWN_BY_THROW_IF = 395

const codeOfException = (error: unknown): number => Number(/Code: (\d+)/.exec(messageOf(error))?.[1])

/** Sends the whole answer, or the reason why there is none. */
const sendComplete = async (session: CleanSession, sql: string, gzip: boolean, response: ServerResponse) => {
  let bytes: Uint8Array
  try {
    bytes = (await session.query(sql, 'TabSeparated')).bytes()
  } catch (error) {
    return error
  }
  response.writeHead(200, {
    'Content-Type': 'text/plain; charset=UTF-8',
    'X-ClickHouse-Exception-Tag': randomBytes(8).toString('hex'),
    'X-ClickHouse-Summary': SUMMARY,
    ...(gzip ? { 'Content-Encoding': 'gzip' } : {})
  })
  response.end(gzip ? await promisify(gzipBytes)(bytes, { level: 1 }) : bytes)
  return undefined
}

const SUMMARY = JSON.stringify({ read_rows: '0', read_bytes: '0', written_rows: '0', written_bytes: '0' })

const bind = async (session: CleanSession, parameters: Readonly<Record<string, string>>): Promise<void> => {
  const assignments = Object.entries(parameters).map(([name, text]) => `param_${name} = ${stringLiteral(text)}`)
  if (assignments.length > 0) await session.query(`SET ${assignments.join(', ')}`, 'TabSeparated')
}

const INSERT_WITH_DATA =
  /^\s*INSERT\s+INTO\s+(?<table>[\w.]+)\s*\((?<columns>[^)]*)\)\s*(?:SETTINGS\s+(?<settings>.*?)\s+)?FORMAT\s+(?<format>JSONCompactEachRow|JSONEachRow|Native)\s*$/is

const store = async (session: CleanSession, insert: RegExpExecArray, data: Buffer): Promise<void> => {
  const { table = '', columns = '', settings = '', format } = insert.groups ?? {}
  const pairs = [...settings.matchAll(/(\w+)\s*=\s*(?:'([^']*)'|(\S+?))\s*(?:,|$)/g)]
  const target = {
    table,
    columns: columns.split(',').map((column) => column.trim()),
    settings: Object.fromEntries(pairs.map(([, name = '', text, number]) => [name, text ?? Number(number)]))
  }
  if (format === 'Native') await session.insertNative({ ...target, bytes: data, folder: tmpdir() })
  else
    await session.insert({
      ...target,
      format: format === 'JSONEachRow' ? 'JSONEachRow' : 'JSONCompactEachRow',
      values: data
    })
}

/** Streams the answer. A failure before the first chunk has a status; a later one is in the body. */
const stream = async (
  engine: Engine,
  session: CleanSession,
  sql: string,
  gzip: boolean,
  response: ServerResponse
): Promise<void> => {
  const chunks = session.stream(sql, 'TabSeparated')
  const isArray = /\boutput_format_json_array_of_rows\s*=\s*1\b/.test(sql)
  const tag = randomBytes(8).toString('hex')
  let next = await chunks.next()
  response.writeHead(200, {
    'Content-Type': 'text/plain; charset=UTF-8',
    'X-ClickHouse-Exception-Tag': tag,
    'X-ClickHouse-Summary': SUMMARY,
    ...(gzip ? { 'Content-Encoding': 'gzip' } : {})
  })
  const encoder = gzip ? createGzip({ level: 1 }) : undefined
  encoder?.pipe(response)
  const out: Writable = encoder ?? response
  let isFirst = true
  try {
    while (next.done !== true && !response.destroyed) {
      const rows = isArray ? rowsOf(next.value) : next.value
      if (isArray && rows.length > 0) await write(out, Buffer.from(isFirst ? '[\n' : ',\n'))
      await write(out, rows)
      isFirst &&= rows.length === 0
      next = await chunks.next()
    }
    if (isArray) await write(out, Buffer.from(isFirst ? '[\n\n]\n' : '\n]\n'))
  } catch (error) {
    const message = messageOf(error)
    const length = Buffer.byteLength(message) + 1
    await write(out, Buffer.from(`\r\n__exception__\r\n${tag}\r\n${message}\n${length} ${tag}\r\n__exception__\r\n`))
    if (engine.breaksOff) {
      await flushed(encoder)
      response.socket?.end()
      response.socket?.destroySoon()
      return
    }
  } finally {
    await chunks.return(undefined)
  }
  out.end()
}

/** Returns the rows of a chunk without the brackets: each chunk is an array, and the answer is one array. */
const rowsOf = (chunk: Uint8Array): Uint8Array => {
  const text = Buffer.from(chunk)
  return text.subarray('[\n'.length, Math.max('[\n'.length, text.lastIndexOf('\n]')))
}

const write = async (out: Writable, bytes: Uint8Array): Promise<void> => {
  if (bytes.length === 0 || out.destroyed || out.write(bytes)) return
  await new Promise<void>((resolve) => {
    const go = (): void => {
      out.off('drain', go)
      out.off('close', go)
      resolve()
    }
    out.once('drain', go)
    out.once('close', go)
  })
}

const flushed = (encoder: ReturnType<typeof createGzip> | undefined): Promise<void> =>
  encoder === undefined
    ? Promise.resolve()
    : new Promise((resolve) => encoder.flush(zlib.Z_SYNC_FLUSH, () => resolve()))

const messageOf = (error: unknown): string => errorMessage(error).trim()

const refuse = (response: ServerResponse, error: unknown): void => {
  const message = messageOf(error)
  const code = Number(/Code: (\d+)/.exec(message)?.[1] ?? (/^Substitution/.test(message) ? 456 : 1002))
  const text = message.startsWith('Code: ') ? message : `Code: ${code}. DB::Exception: ${message}`
  if (response.headersSent) {
    response.destroy()
    return
  }
  const body = Buffer.from(`${text}\n`)
  response
    .writeHead(statusOf(code), {
      'Content-Type': 'text/plain; charset=UTF-8',
      'Content-Length': body.length,
      'X-ClickHouse-Exception-Code': String(code),
      'X-ClickHouse-Summary': SUMMARY
    })
    .end(body)
}
