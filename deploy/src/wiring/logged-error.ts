import { LogUnreachable } from '@gamenet/engines/log'
import { messageWithCause, Refusal, type RefusalCode } from '@gamenet/schemas'
import { stdSerializers } from 'pino'

/** Refusals whose cause is another part's state, not a defect: its message says enough, and each request may repeat it. */
const OF_OTHER_PARTS: ReadonlySet<RefusalCode> = new Set([
  'engine_away',
  'engine_busy',
  'auth_away',
  'chat_away',
  'disk_full'
])

/** Returns an error as the log has it: without its stack if it is a refusal that nothing else caused, or if another part failed. */
export function loggedError(error: Error): object {
  if (error instanceof LogUnreachable) return { message: error.message }
  if (!(error instanceof Refusal) || (error.cause !== undefined && !OF_OTHER_PARTS.has(error.code)))
    return stdSerializers.err(error)
  return { code: error.code, message: messageWithCause(error) }
}
