import { createHash } from 'node:crypto'

/** Returns a text after a line with its SHA-256. */
export const withChecksum = (text: string): string => `${createHash('sha256').update(text).digest('hex')}\n${text}`

/** Returns the text that {@link withChecksum} has stored; undefined if it was changed. */
export function checkedText(stored: string): string | undefined {
  const text = stored.slice(stored.indexOf('\n') + 1)
  return withChecksum(text) === stored ? text : undefined
}
