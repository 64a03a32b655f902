import type { ErrorCode } from './answers.js'

/** Why a call gave no answer: a refusal in the service's own sentence, or a service that cannot be reached. */
export class GamenetError extends Error {
  /** HTTP status; 0 when no answer came, or nothing was sent. */
  readonly status: number
  /** Which refusal it is, as /docs/errors of the service explains it; undefined when the answer was not the service's own. */
  readonly code: ErrorCode | (string & {}) | undefined
  /** Seconds after which asking again makes sense, when the service said so. */
  readonly retryAfterSeconds: number | undefined
  /** Names the request in the log of the service. */
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
