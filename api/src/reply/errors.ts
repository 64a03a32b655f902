import type { IncomingMessage } from 'node:http'
import { errorMessage, Refusal } from '@gamenet/schemas'
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import { hostFault, targetFault } from '../request/host.js'
import { shown } from '../request/parameters.js'
import { withoutSessionKey } from '../request/session-key.js'
import { weightsOf } from '../request/weights.js'
import { JSON_TYPE } from './headers.js'

/** Longest accepted path and query; a valid question has at most about 10,000 characters. */
export const URL_CHARACTERS_MAX = 16_384
/** The default `Retry-After` of a 503. */
const RETRY_AFTER_SECONDS = 1

/** The page that explains every code. */
export const ERRORS_PATH = '/docs/errors'
const PROBLEM_TYPE = 'application/problem+json'

/**
 * Returns body and headers of an answer that is not 2xx or 304. `accept` is the request's header `Accept`, if there is
 * a request.
 */
export function errorParts(
  { code, status, message }: Refusal,
  accept?: string
): { readonly body: string; readonly headers: Readonly<Record<string, string>> } {
  const isProblem = accept !== undefined && prefersProblem(accept)
  const type = `${ERRORS_PATH}#${code}`
  const body = isProblem ? { type, title: titleOf(code), status, detail: message, code } : { error: message }
  return {
    body: JSON.stringify(body),
    headers: {
      'Content-Type': isProblem ? `${PROBLEM_TYPE}; charset=utf-8` : JSON_TYPE,
      'Cache-Control': 'no-store',
      'X-Error-Code': code,
      Link: `<${type}>; rel="help"`
    }
  }
}

/**
 * Returns whether problem details (RFC 9457) weigh more than plain JSON; a range such as `application/*` names neither.
 */
function prefersProblem(accept: string): boolean {
  const weights = weightsOf(accept)
  const problem = weights.get(PROBLEM_TYPE) ?? 0
  const json = weights.get('application/json')
  if (json !== undefined) return problem > json
  return problem > 0 && problem >= (weights.get('application/*') ?? weights.get('*/*') ?? 0)
}

const titleOf = (code: string): string => code.charAt(0).toUpperCase() + code.slice(1).replaceAll('_', ' ')

/**
 * Returns the refusal of a request that nothing can answer; its connection is to be closed. Called before every answer.
 */
export function requestFault(request: IncomingMessage): Refusal | undefined {
  // Node accepts a request line with another major version and would answer with HTTP/1.1.
  if (request.httpVersionMajor !== 1) return malformed(`its version is ${request.httpVersion}`)
  // RFC 9112, 6.1: Node reads any coding before `chunked` as none, and a chunked HTTP/1.0 request as if it were valid.
  const coding = request.headers['transfer-encoding']
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || request.httpVersion === '1.0'))
    return malformed('its Transfer-Encoding is not chunked alone')
  const fault = hostFault(request)
  if (fault !== undefined) return new Refusal(fault)
  const wrong = targetFault(request)
  if (wrong !== undefined) return malformed(wrong)
  if ((request.url?.length ?? 0) <= URL_CHARACTERS_MAX) return undefined
  return new Refusal('uri_too_long', [String(URL_CHARACTERS_MAX)])
}

const malformed = (what: string): Refusal => new Refusal('request_malformed', [what])

/**
 * Answers an error; `pageOf` may return a promise of another form of the refusal. The log contains the hidden cause
 * under the request id.
 */
export function sendError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  log: FastifyBaseLogger | undefined,
  pageOf?: (refusal: Refusal) => Promise<ReturnType<typeof errorParts>> | undefined
): FastifyReply {
  const refusal = refusalOf(error, request)
  if (refusal.status >= 500) {
    const context = {
      reqId: request.id,
      err: error,
      cause: causeOf(error),
      url: shown(withoutSessionKey(request.raw.url ?? '')),
      client: request.ip,
      clientRequestId: clientId(request)
    }
    if (refusal.code === 'internal') log?.error(context, 'a request failed')
    // The client has disconnected, which aborted the reads for it.
    else if (request.socket.destroyed) log?.info(context, 'a request was aborted by its client')
    else log?.warn(context, 'a request was refused')
  }
  const retryAfterSeconds = refusal.retryAfterSeconds ?? (refusal.status === 503 ? RETRY_AFTER_SECONDS : undefined)
  if (retryAfterSeconds !== undefined) void reply.header('Retry-After', String(retryAfterSeconds))
  const send = ({ body, headers }: ReturnType<typeof errorParts>) =>
    reply.code(refusal.status).headers(headers).send(body)
  const page = pageOf?.(refusal)
  if (page === undefined) return send(errorParts(refusal, request.headers.accept))
  void page.then(send)
  return reply
}

/** Returns the refusal for anything thrown: ours, Fastify's, or a defect. */
export function refusalOf(error: unknown, request: FastifyRequest): Refusal {
  if (error instanceof Refusal) return error
  const { code, statusCode } = (typeof error === 'object' && error !== null ? error : {}) as FrameworkError
  switch (code) {
    case 'FST_ERR_BAD_URL':
      return new Refusal('path_encoding_invalid')
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new Refusal('uri_too_long', [String(URL_CHARACTERS_MAX)])
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new Refusal('body_too_large', [String(request.routeOptions.bodyLimit)])
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new Refusal('media_type_unsupported', [mediaType(request)])
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
    case 'FST_ERR_CTP_INVALID_JSON_BODY':
      return new Refusal('json_malformed')
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return malformed('its body has another length than Content-Length says')
    case 'ECONNRESET':
      return malformed('it ends before its body')
    default:
  }
  if (error instanceof SyntaxError && statusCode === 400) return new Refusal('json_malformed')
  if (statusCode === 404) return pathUnknown(request)
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) return malformed(errorMessage(error))
  return new Refusal('internal', [request.id], { cause: error })
}

/** Returns the refusal of an unknown path. */
export function pathUnknown(request: FastifyRequest): Refusal {
  const [path = ''] = (request.raw.url ?? '').split('?', 1)
  return new Refusal('path_unknown', [shown(path)])
}

type FrameworkError = { readonly code?: string; readonly statusCode?: number }

function mediaType(request: FastifyRequest): string {
  const type = request.headers['content-type']
  return type === undefined || type === '' ? 'none' : shown(type)
}

const causeOf = (error: unknown): unknown => (error instanceof Error ? error.cause : undefined)

function clientId(request: FastifyRequest): string | undefined {
  const given = request.headers['x-request-id']
  return typeof given === 'string' ? shown(given) : undefined
}
