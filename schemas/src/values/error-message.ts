/** Returns the message of an error, or the text of any other thrown value. */
export const errorMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/**
 * Returns the message of an error with its cause in brackets: an engine that cannot be reached may only lack a trusted
 * certificate.
 */
export function messageWithCause(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  const message = errorMessage(error)
  const reason = cause === undefined ? '' : errorMessage(cause).trim() || errorCode(cause)
  return message.includes(reason) ? message : `${message} (${reason})`
}

/**
 * Returns the code of an error of Node or of a database as text (`ENOENT`, `55P03`); without a code, the text of the
 * thrown value.
 */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error)
}
