/*
 * measurement   one promise of the service, measured: the claim and the result
 * result        one figure, with the figure to reach and, where there is one, a baseline of the same run
 * reach         the bound that a figure, or its ratio to the baseline, is held to
 */

export type Reach = {
  readonly bound: 'at most' | 'at least'
  readonly value: number
  /** What the bound is about: the figure itself, or figure ÷ baseline. */
  readonly of: 'measured' | 'ratio'
}

export type Result = {
  readonly what: string
  readonly measured: number
  readonly unit: string
  readonly baseline?: { readonly what: string; readonly measured: number }
  /** Absent: the figure is only reported. */
  readonly reach?: Reach
  /** Further figures that help to judge it. */
  readonly detail?: string
}

/** What a measurement is given. */
export type Conditions = {
  /** 1 for the sizes that are claimed; smaller for a quick try. */
  readonly scale: number
  /** A directory of this run; what one measurement leaves there, a later one may use. */
  readonly directory: string
  /** Tells what goes on, on stderr. */
  note(sentence: string): void
}

export type Measurement = {
  readonly name: string
  /** The promise in a sentence. */
  readonly claim: string
  run(conditions: Conditions): Promise<Result[]>
}

/** Something that this machine lacks, so that a measurement cannot be made here: one sentence. */
export class CannotMeasure extends Error {}

/** Figure ÷ baseline; undefined without a baseline. */
export function ratioOf({
  measured,
  baseline
}: Pick<Result, 'measured'> & { readonly baseline?: Result['baseline'] | undefined }): number | undefined {
  return baseline === undefined ? undefined : measured / baseline.measured
}

/** `reached`, or by how much a figure falls short; empty for a figure that nothing is claimed of. */
export function verdictOf(result: Result): string {
  const { reach } = result
  if (reach === undefined) return ''
  const judged = reach.of === 'ratio' ? ratioOf(result) : result.measured
  if (judged === undefined) throw new Error(`${result.what} has a reach for its ratio, but no baseline`)
  const isReached = reach.bound === 'at most' ? judged <= reach.value : judged >= reach.value
  if (isReached) return 'reached'
  const times = reach.bound === 'at most' ? judged / reach.value : reach.value / judged
  return `short by ${figure((times - 1) * 100)} %`
}

/** Three digits where that is exact enough, thousands apart. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return String(value)
  const size = Math.abs(value)
  const digits = size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

/** The value below which a share of the values lies (nearest rank). */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  const value = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]
  if (value === undefined) throw new Error('a quantile of no values was asked for')
  return value
}

/** How many of something at a scale, at least so many. */
export function scaled(count: number, scale: number, least = 1): number {
  return Math.max(least, Math.round(count * scale))
}
