/*
 * measurement   a promise of the service (the claim), and the results that check it
 * result        one figure, optionally with a target and a baseline of the same run
 * target        the bound for a figure, or for its ratio to the baseline
 */

export type Target = {
  readonly bound: 'at most' | 'at least'
  readonly value: number
  /** Whether the bound is for the figure itself or for figure ÷ baseline. */
  readonly of: 'measured' | 'ratio'
}

export type Result = {
  readonly what: string
  readonly measured: number
  readonly unit: string
  readonly baseline?: { readonly what: string; readonly measured: number }
  /** Absent: the figure is only reported. */
  readonly target?: Target
  /** Further figures that help to interpret this one. */
  readonly detail?: string
}

export type Conditions = {
  /** 1 for the claimed amount of data; less for a quick run. */
  readonly scale: number
  /** Shared by the measurements of a run; a later one may reuse the data of an earlier one. */
  readonly directory: string
  /** Reports progress on stderr. */
  note(sentence: string): void
}

export type Measurement = {
  readonly name: string
  /** The promise as one sentence. */
  readonly claim: string
  run(conditions: Conditions): Promise<Result[]>
}

/** The machine lacks something that a measurement needs. The message is one sentence. */
export class CannotMeasure extends Error {}

/** Returns figure ÷ baseline; undefined without a baseline. */
export function ratioOf({
  measured,
  baseline
}: Pick<Result, 'measured'> & { readonly baseline?: Result['baseline'] | undefined }): number | undefined {
  return baseline === undefined ? undefined : measured / baseline.measured
}

/** Returns `met`, or by how much the figure misses its target; empty without a target. */
export function verdictOf(result: Result): string {
  const { target } = result
  if (target === undefined) return ''
  const judged = target.of === 'ratio' ? ratioOf(result) : result.measured
  if (judged === undefined) throw new Error(`${result.what} has a target for its ratio but no baseline`)
  const isMet = target.bound === 'at most' ? judged <= target.value : judged >= target.value
  if (isMet) return 'met'
  const times = target.bound === 'at most' ? judged / target.value : target.value / judged
  return `missed by ${figure((times - 1) * 100)} %`
}

/** Formats a number with up to three significant decimals and separators between thousands. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return String(value)
  const size = Math.abs(value)
  const digits = size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

/** Returns the quantile of the values at `share`, 0 to 1 (nearest rank). */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  const value = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]
  if (value === undefined) throw new Error('a quantile needs at least one value')
  return value
}

/** Returns `count` × `scale`, rounded, but at least `least`. */
export function scaled(count: number, scale: number, least = 1): number {
  return Math.max(least, Math.round(count * scale))
}
