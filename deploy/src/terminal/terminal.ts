import type { Readable, Writable } from 'node:stream'
import type { WriteStream } from 'node:tty'
import type { Command } from 'commander'
import { type Config, UsageError } from '../config.js'
import { plain, plainLines } from './printable-text.js'

/** Standard streams, settings and exit code of a command. */
export type Terminal = {
  readonly input: Readable
  readonly output: WriteStream
  readonly errors: WriteStream
  /** Reads the environment; throws a `UsageError` that names every wrong variable. */
  config(): Config
  /** The exit code if nothing is thrown. */
  exitCode: number
}

/** Adds a subcommand with the common options. */
export function addCommand(program: Command, name: string, description: string): Command {
  return program.command(name).description(description).option('--json', 'print one JSON document instead of text')
}

/** Prints a report: as JSON with `--json`, else as the given lines. Control characters of both are escaped. */
export function print(
  { output }: Pick<Terminal, 'output'>,
  asJson: boolean | undefined,
  report: unknown,
  lines: readonly string[]
): void {
  const shown = asJson === true ? [JSON.stringify(report)] : lines
  output.write(shown.map((line) => `${plain(line)}\n`).join(''))
}

/**
 * Writes an answer or the parts of a file, unchanged unless the output is a terminal. Writes each part once the reader
 * has taken the one before it, so that a slow reader costs no memory. Resolves early if the output cannot be written,
 * as when `head` closes it.
 */
export async function writeContent(
  { output }: { readonly output: Writable & { readonly isTTY?: boolean } },
  content: Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>
): Promise<void> {
  for await (const part of content) {
    const shown = output.isTTY === true ? plainLines(Buffer.from(part).toString()) : part
    const fault = await new Promise<unknown>((resolve) => {
      output.once('close', resolve)
      output.write(shown, (fault) => {
        output.off('close', resolve)
        resolve(fault)
      })
    })
    if (fault instanceof Error || output.destroyed) return
  }
}

const SILENCE_MS_MAX = 10_000

/** Prints every 10 s on standard error that work continues, because silence looks like a hang. */
export async function withHeartbeat<Result>(
  { errors }: Pick<Terminal, 'errors'>,
  work: Promise<Result>,
  silenceMsMax = SILENCE_MS_MAX
): Promise<Result> {
  const begun = performance.now()
  const timer = setInterval(() => {
    errors.write(`Not done yet after ${Math.round((performance.now() - begun) / 1000)} s; it continues.\n`)
  }, silenceMsMax)
  try {
    return await work
  } finally {
    clearInterval(timer)
  }
}

const TABLE_COLUMNS_MAX = 100
const LAST_COLUMN_MIN = 20

/** Pads columns to their widest cells. The last column wraps where a row is wider than 100 columns. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const indent = widths.slice(0, -1).reduce((sum, width) => sum + width + 2, 0)
  const last = new RegExp(`(.{1,${Math.max(LAST_COLUMN_MIN, TABLE_COLUMNS_MAX - indent)}})(?:\\s+|$)|(\\S+)`, 'gu')
  return rows.flatMap((row) => {
    const before = row.slice(0, -1).map((cell, column) => cell.padEnd((widths[column] ?? 0) + 2))
    const [first = '', ...more] = (row.at(-1) ?? '').match(last) ?? []
    return [before.join('') + first, ...more.map((text) => ' '.repeat(indent) + text)].map((line) => line.trimEnd())
  })
}

/** Formats an ISO 8601 instant for a table. */
export const minuteOf = (instant: string): string => `${instant.slice(0, 16)}Z`

/** Returns a number with its noun: `1 row`, `2 rows`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

/** Reads the whole number of an option; throws a `UsageError` for another text. */
export function wholeNumber(option: string, text: string, min: number, max: number): number {
  if (/^\d{1,5}$/.test(text) && Number(text) >= min && Number(text) <= max) return Number(text)
  throw new UsageError(`${option} takes a whole number from ${min} to ${max}; got ${JSON.stringify(text)}.`)
}
