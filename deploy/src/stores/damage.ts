import { errorMessage } from '@gamenet/schemas'

const REASON_LENGTH_MAX = 300

/** Returns an engine's message on one line without its stack. */
export function shown(text: string): string {
  const line = (text.split(/,? Stack trace/)[0] ?? '').replace(/\s+/g, ' ').trim()
  return line.length > REASON_LENGTH_MAX ? `${line.slice(0, REASON_LENGTH_MAX)}…` : line
}

/** Returns what an engine said: a refusal is written for clients, and its cause is the engine's error. */
export function reasonOf(error: unknown): string {
  const said = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return shown(errorMessage(said))
}
