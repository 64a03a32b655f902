import type { ErrorCode } from './answers.js'

/** Thrown by a call without an answer: a refusal with the sentence of the service, or an unreachable service. */
export class GamenetError extends Error {
  /** HTTP status; 0 without an answer, or if nothing was sent. */
  readonly status: number
  /**
   * The code of the refusal, explained at /docs/errors of the service; undefined if the answer was not from the
   * service.
   */
  readonly code: ErrorCode | (string & {}) | undefined
  /** Seconds after which a retry makes sense, if the service sent `Retry-After`. */
  readonly retryAfterSeconds: number | undefined
  /** Identifies the request in the log of the service. */
  readonly requestId: string | undefined

  constructor(
    status: number,
    message: string,
    options: {
      code?: string | undefined
      retryAfterSeconds?: number | undefined
      requestId?: string | undefined
      cause?: unknown
    } = {}
  ) {
    super(message, 'cause' in options ? { cause: options.cause } : {})
    this.name = 'GamenetError'
    this.status = status
    this.code = options.code
    this.retryAfterSeconds = options.retryAfterSeconds
    this.requestId = options.requestId
  }
}
