import { createHash, randomUUID, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import {
  ANALYST_FORMATS,
  type AnalystFormat,
  codeOf,
  StatementFailed,
  StatementRefused,
  statusOf
} from '@gamenet/engines/sql'
import { errorMessage, Mutex } from '@gamenet/schemas'
import type { SnapshotAnalyst } from './analyst-snapshot.js'

/*
 * The read-only part of ClickHouse's HTTP interface, over the process of a snapshot: what drivers and dashboards send.
 * Statements run one after the other. Every answer names the snapshot in `X-Gamenet-Snapshot` and `X-Gamenet-Position`.
 */

export type SqlPortOptions = {
  readonly port: number
  readonly password: string
  /** Returns the process of a snapshot that is young enough; called for one statement at a time. */
  readonly analyst: () => Promise<SnapshotAnalyst>
}

const HOST = '127.0.0.1'
const WAITING_MAX = 32
/** More than statements: drivers keep idle ones. */
const CONNECTIONS_MAX = 100
const BODY_BYTES_MAX = 1024 * 1024
/** As the server's `http_max_uri_size`. */
const HEADER_BYTES_MAX = 1024 * 1024
const DEFAULT_FORMAT: AnalystFormat = 'TabSeparated'

/** Error codes of ClickHouse. */
const AUTHENTICATION_FAILED = 516
const TOO_MANY_QUERIES = 202
const READONLY = 164
const UNKNOWN_FORMAT = 73
const UNKNOWN_COMPRESSION_METHOD = 89
const UNKNOWN_EXCEPTION = 1002

class PortError extends Error {
  constructor(
    readonly code: number,
    message: string
  ) {
    super(message)
  }
}

/** Listens on loopback. */
export async function openSqlPort(options: SqlPortOptions): Promise<Server> {
  let waiting = 0
  const mutex = new Mutex()
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const url = new URL(request.url ?? '/', 'http://localhost')
      if (url.pathname === '/ping') {
        response.end('Ok.\n')
        return
      }
      requirePassword(options.password, request, url)
      if (waiting >= WAITING_MAX) throw new PortError(TOO_MANY_QUERIES, `${WAITING_MAX} statements wait; retry later.`)
      waiting += 1
      try {
        const call = await callOf(request, url)
        await mutex.run(async () => answer(call, await options.analyst(), response))
      } finally {
        waiting -= 1
      }
    } catch (error) {
      refuse(response, error)
    }
  }
  const server = createServer({ maxHeaderSize: HEADER_BYTES_MAX }, (request, response) => void serve(request, response))
  server.maxConnections = CONNECTIONS_MAX
  server.on('drop', () => server.closeIdleConnections())
  return await new Promise((resolve, reject) => {
    // It stays: a connection that cannot be accepted would end the process.
    server.on('error', reject)
    server.listen(options.port, HOST, () => resolve(server))
  })
}

type Call = {
  readonly statement: string
  readonly format: AnalystFormat
  readonly parameters: Readonly<Record<string, string>>
  readonly queryId: string
  /** Of the protocol that the client speaks, for the format Native; 0 for none. */
  readonly revision: number
}

/** The statement is in the query, in the body, or begins in one and continues in the other. */
async function callOf(request: IncomingMessage, url: URL): Promise<Call> {
  const body = request.method === 'POST' ? await bodyOf(request) : ''
  const query = url.searchParams
  if (query.get('compress') === '1')
    throw new PortError(
      UNKNOWN_COMPRESSION_METHOD,
      'Answers are not compressed; set the option compress of the driver to false.'
    )
  const given = [query.get('query') ?? '', body].filter((part) => part.trim() !== '').join('\n')
  const clause = FORMAT_CLAUSE.exec(codeOf(given))
  const name =
    clause?.groups?.format ?? request.headers['x-clickhouse-format'] ?? query.get('default_format') ?? DEFAULT_FORMAT
  const format = ANALYST_FORMATS.find((each) => each === name)
  if (format === undefined)
    throw new PortError(
      UNKNOWN_FORMAT,
      `The format ${name} is not offered; choose one of ${ANALYST_FORMATS.join(', ')}.`
    )
  const parameters = [...query].filter(([key]) => key.startsWith('param_'))
  const queryId = query.get('query_id') ?? ''
  return {
    statement: clause === null ? given : given.slice(0, clause.index),
    format,
    parameters: Object.fromEntries(parameters.map(([key, value]) => [key.slice('param_'.length), value])),
    queryId: /^[\w-]+$/.test(queryId) ? queryId : randomUUID(),
    revision: Number(query.get('client_protocol_version') ?? 0)
  }
}

/** Counts the bytes that arrive: a chunked body states no length. */
async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  // The refusal needs the connection, which the end of the loop would close.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    bytes += chunk.length
    if (bytes > BODY_BYTES_MAX) throw new PortError(READONLY, `The body is longer than ${BODY_BYTES_MAX} bytes.`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/** Drivers append it. The rest of the statement is checked by itself. */
const FORMAT_CLAUSE = /\bFORMAT\s+(?<format>\w+)[\s;]*$/i

async function answer(
  { statement, format, parameters, queryId, revision }: Call,
  { run, takenAt, position }: SnapshotAnalyst,
  response: ServerResponse
): Promise<void> {
  const { bytes, rows } = await run({ statement, format, parameters, revision })
  response.writeHead(200, {
    'Content-Type': format.startsWith('JSON') ? 'application/json; charset=UTF-8' : 'text/plain; charset=UTF-8',
    'Content-Length': bytes.length,
    'X-ClickHouse-Query-Id': queryId,
    'X-ClickHouse-Format': format,
    'X-ClickHouse-Timezone': 'UTC',
    'X-ClickHouse-Server-Display-Name': 'gamenet',
    'X-ClickHouse-Summary': JSON.stringify({ result_rows: String(rows), result_bytes: String(bytes.length) }),
    'X-Gamenet-Snapshot': takenAt,
    'X-Gamenet-Position': position
  })
  response.end(bytes)
}

/** The password is in an Authorization header, a header of ClickHouse or the query; any user name is accepted. */
function requirePassword(password: string, { headers }: IncomingMessage, url: URL): void {
  const [scheme, credentials = ''] = (headers.authorization ?? '').split(' ')
  const basic =
    scheme === 'Basic'
      ? Buffer.from(credentials, 'base64')
          .toString()
          .replace(/^[^:]*:/, '')
      : undefined
  const given = basic ?? headers['x-clickhouse-key'] ?? url.searchParams.get('password') ?? ''
  const digest = (value: unknown) => createHash('sha256').update(String(value)).digest()
  if (timingSafeEqual(digest(given), digest(password))) return
  throw new PortError(AUTHENTICATION_FAILED, 'The password is wrong; it is that of SQL_PASSWORD.')
}

function refuse(response: ServerResponse, error: unknown): void {
  const message = errorMessage(error).trim()
  const own = error instanceof PortError ? error.code : error instanceof StatementRefused ? READONLY : undefined
  const code =
    own ?? (Number(error instanceof StatementFailed && /Code: (\d+)/.exec(message)?.[1]) || UNKNOWN_EXCEPTION)
  const body = message.startsWith('Code: ') ? message : `Code: ${code}. DB::Exception: ${message}`
  response
    .writeHead(statusOf(code), {
      'Content-Type': 'text/plain; charset=UTF-8',
      'X-ClickHouse-Exception-Code': String(code),
      ...(code === AUTHENTICATION_FAILED ? { 'WWW-Authenticate': 'Basic realm="gamenet"' } : {})
    })
    .end(`${body}\n`)
}
