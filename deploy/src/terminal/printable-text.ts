import { isUtf8 } from 'node:buffer'

/** Maximum number of printed bytes; `--json` prints all. */
const SHOWN_BYTES_MAX = 16 * 1024
const DUMP_WIDTH = 16

/** Escapes control characters of one line for a terminal, except tabs. JSON keeps its meaning. */
export function plain(text: string): string {
  return text.replace(/(?!\t)[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join('')
  )
}

/** Escapes the control characters of a text with several lines. */
export const plainLines = (text: string): string => text.split('\n').map(plain).join('\n')

/** Returns bytes as lines: printable text as it is, anything else as a hex dump. */
export function dumpOf(bytes: Uint8Array): string[] {
  const shown = bytes.subarray(0, SHOWN_BYTES_MAX)
  const more = bytes.length - shown.length
  const text = isUtf8(bytes) ? Buffer.from(shown).toString() : ''
  const lines = text.split(/\r?\n/)
  const isText = text !== '' && lines.every((line) => plain(line) === line)
  return [...(isText ? lines : hexLines(shown)), ...(more > 0 ? [`… and ${more} bytes more; --json gives all`] : [])]
}

function hexLines(bytes: Uint8Array): string[] {
  const lines: string[] = []
  for (let at = 0; at < bytes.length; at += DUMP_WIDTH) {
    const row = [...bytes.subarray(at, at + DUMP_WIDTH)]
    const hex = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
    const text = row.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('')
    lines.push(`${at.toString(16).padStart(8, '0')}  ${hex.padEnd(DUMP_WIDTH * 3 - 1)}  ${text}`)
  }
  return lines
}
