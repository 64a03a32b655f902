import { compareText } from '../values/compare-text.js'

/*
 * The order of the entries of a board. A board can have three kinds of entries:
 *
 * ordered   scraped: its place is an order key, its rank the running sum of the steps of all ordered entries above it
 *           (0 for a tie, 1 usually, more for a gap), so that one event for a new top entry shifts all others
 * stated    imported with a rank, which never changes
 * measured  imported without a rank: 1 + the number of better entries of the board; equal entries share a rank.
 *           A score that is better when lower counts as its negative
 */

/** The values that determine an entry's place. */
export type Standing = {
  readonly playerName: string
  /** 1 for the first entry with exactly this name on the board, 2 for the second. */
  readonly occurrence: number
  /** Text as upstream shows it. */
  readonly rating: string
  /** Milliseconds; null for a score. */
  readonly timeMs: number | null
  /** True for a score that is better when lower. */
  readonly isAscending?: boolean
  readonly statedRank: number | null
  readonly order: number | null
  readonly step: number | null
}

/** Returns the entries in the order of the board, each with its shown rank. */
export function ranked<Entry extends Standing>(
  entries: readonly Entry[]
): { readonly entry: Entry; readonly rank: number }[] {
  const ordered = entries.filter(({ order }) => order !== null).sort(byOrder)
  let sum = 0
  const standing = ordered.map((entry) => {
    sum += entry.step ?? 0
    return { entry, rank: sum }
  })
  if (ordered.length === entries.length) return standing
  const measured = measuredRanks(entries)
  for (const entry of entries) {
    if (entry.order === null) standing.push({ entry, rank: entry.statedRank ?? measured.get(entry) ?? 0 })
  }
  return standing.sort(
    (a, b) =>
      a.rank - b.rank ||
      (a.entry.order ?? Number.MAX_SAFE_INTEGER) - (b.entry.order ?? Number.MAX_SAFE_INTEGER) ||
      compareText(a.entry.playerName, b.entry.playerName) ||
      a.entry.occurrence - b.entry.occurrence
  )
}

/** The values that determine which of two entries is better. */
export type Measure = Pick<Standing, 'rating' | 'timeMs' | 'isAscending'>

/**
 * Returns a negative number if `a` is better: times before scores, shorter times first, higher scores first; all texts
 * are equal and last.
 */
export const compareMeasures = (a: Measure, b: Measure): number => compareRead(readMeasure(a), readMeasure(b))

/** A parsed measure, for many comparisons. */
export type ReadMeasure = {
  readonly timeMs: number | null
  /** The number of a numeric score, in units of 10^-9; higher is better. */
  readonly score: bigint | undefined
}

/** Parses a measure. */
export function readMeasure({ rating, timeMs, isAscending }: Measure): ReadMeasure {
  const score = timeMs === null ? scaled(rating) : undefined
  return { timeMs, score: score !== undefined && isAscending === true ? -score : score }
}

/** Compares as {@link compareMeasures} does. */
export function compareRead(a: ReadMeasure, b: ReadMeasure): number {
  if (a.timeMs !== null && b.timeMs !== null) return a.timeMs - b.timeMs
  if (a.timeMs !== null || b.timeMs !== null) return a.timeMs !== null ? -1 : 1
  const left = a.score
  const right = b.score
  if (left === undefined || right === undefined) return Number(left === undefined) - Number(right === undefined)
  return left === right ? 0 : left > right ? -1 : 1
}

/** Returns the distance of two measures: milliseconds of times, points of scores; null if either is not numeric. */
export function measureGap(a: Measure, b: Measure): number | null {
  if (a.timeMs !== null && b.timeMs !== null) return Math.abs(a.timeMs - b.timeMs)
  if (a.timeMs !== null || b.timeMs !== null) return null
  const left = scaled(a.rating)
  const right = scaled(b.rating)
  if (left === undefined || right === undefined) return null
  const apart = left > right ? left - right : right - left
  return Number(apart / UNITS) + Number(apart % UNITS) / Number(UNITS)
}

/** Returns the rank of each entry by its measure only: 1 + the number of better entries. */
function measuredRanks<Entry extends Standing>(entries: readonly Entry[]): Map<Entry, number> {
  const ranks = new Map<Entry, number>()
  const read = entries.map((entry) => ({ entry, measure: readMeasure(entry) }))
  read.sort((a, b) => compareRead(a.measure, b.measure))
  let last: ReadMeasure | undefined
  let rank = 0
  for (const [n, { entry, measure }] of read.entries()) {
    if (last === undefined || compareRead(last, measure) !== 0) rank = n + 1
    ranks.set(entry, rank)
    last = measure
  }
  return ranks
}

const NUMBER = /^([+-]?)(\d{1,3}(?:,\d{3})+|\d+)(?:\.(\d+))?$/
const FRACTION_DIGITS = 9
const UNITS = 10n ** BigInt(FRACTION_DIGITS)

/** Returns a score's number, exact beyond 2^53, in units of 10^-9; undefined if the text is not a number. */
function scaled(rating: string): bigint | undefined {
  const match = NUMBER.exec(rating)
  if (match === null) return undefined
  const whole = (match[2] ?? '').replaceAll(',', '')
  const fraction = (match[3] ?? '').slice(0, FRACTION_DIGITS).padEnd(FRACTION_DIGITS, '0')
  const value = BigInt(whole + fraction)
  return match[1] === '-' ? -value : value
}

function byOrder(a: Standing, b: Standing): number {
  return (a.order ?? 0) - (b.order ?? 0) || compareText(a.playerName, b.playerName) || a.occurrence - b.occurrence
}

/** Compares by UTF-16 code units, independent of locales. */
