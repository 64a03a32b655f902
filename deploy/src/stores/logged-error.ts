import { isFailure, messageWithCause, Refusal, type RefusalCode } from '@gamenet/schemas'
import { stdSerializers } from 'pino'

/**
 * Refusals caused by the state of another part, not by a defect: each request may repeat them, and a sentence
 * suffices.
 */
const OF_OTHER_PARTS: ReadonlySet<RefusalCode> = new Set([
  'engine_away',
  'engine_busy',
  'auth_away',
  'chat_away',
  'disk_full'
])

/**
 * Returns an error as the log has it: without a stack if it is a refusal without a cause, or if another part failed.
 */
export function loggedError(error: Error): object {
  if (isFailure(error, 'log_unreachable')) return { message: error.message }
  if (!(error instanceof Refusal) || (error.cause !== undefined && !OF_OTHER_PARTS.has(error.code)))
    return stdSerializers.err(error)
  return { code: error.code, message: messageWithCause(error) }
}
