/** Why a call gave no answer: a refusal in the service's own sentence, or a service that cannot be reached. */
export class GamenetError extends Error {
  /** HTTP status; 0 when no answer came, or nothing was sent. */
  readonly status: number
  /** Seconds after which asking again makes sense, when the service said so. */
  readonly retryAfterSeconds: number | undefined

  constructor(
    status: number,
    message: string,
    options: { retryAfterSeconds?: number | undefined; cause?: unknown } = {}
  ) {
    super(message, 'cause' in options ? { cause: options.cause } : {})
    this.name = 'GamenetError'
    this.status = status
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}
