import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { Refusal, type RefusalCode } from '@gamenet/schemas'
import { errorParts, URL_CHARACTERS_MAX } from './errors.js'
import { isAmidAnswer } from './newest-responses.js'

/** A fault of the connection, reported by Node before there is a request. `reason` is the parser's. */
export type SocketError = Error & {
  readonly code?: string | undefined
  readonly reason?: string | undefined
  readonly rawPacket?: Buffer | undefined
}

/** What answers to input need that never becomes a request of Fastify. */
type Needs = {
  /** Returns a new request id. */
  readonly nextId: () => string
  /** Sent with every answer. */
  readonly headers: Readonly<Record<string, string>>
  readonly answered: (status: number) => void
}

/**
 * Answers input that never becomes a request: malformed HTTP, headers or a URL beyond Node's own limit, a request that
 * does not arrive in time. Then closes the connection, because the beginning of the next request is unknown.
 */
export function answerSocketError(error: SocketError, socket: Socket, needs: Needs): void {
  // Node's own handler makes the same checks.
  if (!socket.writable || isAmidAnswer(socket) || error.code === 'ECONNRESET') {
    socket.destroy(error)
    return
  }
  const refusal = refusalOfSocket(error)
  socket.end(rawAnswer(refusal, needs), () => socket.destroySoon())
  needs.answered(refusal.status)
}

/** Answers expectations and CONNECT, which Node would answer without a body. */
export function answerOddRequests(server: Server, needs: Needs): void {
  server.on('checkExpectation', ({ headers: { accept } }: IncomingMessage, response: ServerResponse) => {
    const { body, headers } = errorParts(new Refusal('expectation_failed'), accept)
    response.writeHead(417, {
      ...needs.headers,
      ...headers,
      'Content-Length': String(Buffer.byteLength(body)),
      'X-Request-Id': needs.nextId(),
      Connection: 'close'
    })
    response.end(body)
    needs.answered(417)
  })
  server.on('connect', ({ headers: { accept } }: IncomingMessage, socket: Socket) => {
    socket.on('error', () => socket.destroy())
    const allow = 'GET, HEAD, OPTIONS'
    socket.end(rawAnswer(new Refusal('method_not_allowed', ['CONNECT', allow]), needs, { allow, accept }))
    needs.answered(405)
  })
}

const CODES: Readonly<Record<string, RefusalCode>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'body_too_large'
}

function refusalOfSocket(error: SocketError): Refusal {
  const code = CODES[error.code ?? ''] ?? 'request_malformed'
  if (code === 'headers_too_large' && isLongFirstLine(error.rawPacket)) {
    return new Refusal('uri_too_long', [String(URL_CHARACTERS_MAX)])
  }
  if (code === 'request_malformed') return new Refusal(code, [error.reason || `it ends early (${error.code})`])
  return new Refusal(code, code === 'body_too_large' ? ['16384'] : [])
}

/** Returns whether the bytes up to the limit are the beginning of a request with a URL that is too long. */
function isLongFirstLine(packet: Buffer | undefined): boolean {
  if (packet === undefined || !/^[A-Z-]{3,20} /.test(packet.toString('latin1', 0, 24))) return false
  const end = packet.indexOf('\r\n')
  return end === -1 || end > URL_CHARACTERS_MAX
}

function rawAnswer(
  refusal: Refusal,
  { headers: common, nextId }: Needs,
  { allow, accept }: { allow?: string; accept?: string | undefined } = {}
): string {
  const { body, headers: described } = errorParts(refusal, accept)
  const headers: Record<string, string> = {
    ...common,
    ...described,
    'Content-Length': String(Buffer.byteLength(body)),
    'X-Request-Id': nextId(),
    Date: new Date().toUTCString(),
    Connection: 'close'
  }
  if (allow !== undefined) headers.Allow = allow
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n${lines.join('')}\r\n${body}`
}
