import { Refusal } from '@gamenet/schemas'
import { stdSerializers } from 'pino'

/** Returns an error as the log has it: without its stack if it is a refusal that nothing else caused. */
export function loggedError(error: Error): object {
  if (!(error instanceof Refusal) || error.cause !== undefined) return stdSerializers.err(error)
  const { code, message } = error
  return { code, message }
}
