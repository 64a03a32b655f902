import type { Dataset } from './datasets.js'
import type { Span } from './statements.js'

const MONTH = /^(\d{4})-(0[1-9]|1[0-2])$/
/** Late events and matches that cross the end of a month arrive within this time; then the month is closed. */
export const CLOSED_AFTER_MS = 86_400_000

/** Returns the span of a month (`2025-03`, UTC); undefined for other text. */
export function monthSpan(month: string): Span | undefined {
  const [, year, number] = MONTH.exec(month) ?? []
  if (year === undefined || number === undefined) return undefined
  return { fromMs: Date.UTC(Number(year), Number(number) - 1), toMs: Date.UTC(Number(year), Number(number)) }
}

/** Returns the month of an instant. */
export const monthAt = (ms: number): string => new Date(ms).toISOString().slice(0, 7)

/** Returns the months from one to that of an instant, both included. */
export function monthsBetween(first: string, lastMs: number): string[] {
  const months: string[] = []
  for (let at = lastMs; monthAt(at) >= first; at = (monthSpan(monthAt(at))?.fromMs ?? 0) - 1) months.push(monthAt(at))
  return months
}

/** Returns the data that a file reads. */
export function dependencyOf({ projection, files }: Dataset, span: Span | undefined) {
  if (files === 'newest' || span === undefined) return { projection }
  return { projection, fromMs: files.of === 'state' ? 0 : span.fromMs, toMs: span.toMs + CLOSED_AFTER_MS }
}
