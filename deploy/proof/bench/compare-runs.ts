import { z } from 'zod'
import { figure, type Result, ratioOf } from './measurement.js'

const StoredResult = z.object({
  what: z.string(),
  measured: z.number(),
  unit: z.string(),
  baseline: z.object({ what: z.string(), measured: z.number() }).optional()
})

/** A run as `--json` prints it. */
export const StoredRun = z.object({
  conditions: z.object({ scale: z.number() }),
  reports: z.array(z.object({ name: z.string(), results: z.array(StoredResult).optional() }))
})
export type StoredRun = z.infer<typeof StoredRun>

type Report = { readonly name: string; readonly results?: readonly Result[] | undefined }

/**
 * Factors up to which a difference between two runs of the same program is noise. Both sides of a ratio share the machine's
 * condition; absolute figures differ by a third from day to day.
 */
const NOISE = { ratio: 1.15, measured: 1.35 } as const

/** More is better. For every other unit (ms, s, MiB, bytes, %), less is better. */
const isSpeed = ({ unit }: Pick<Result, 'unit'>) => unit.endsWith('/s')

export type Comparison = {
  /** How many figures both runs have. */
  readonly compared: number
  /** A line for each that is worse than in the earlier run beyond noise. */
  readonly slower: readonly string[]
  /** Figures that only one run has, of measurements of this run. */
  readonly alone: readonly string[]
}

/** Compares figures with those of an earlier run. */
export function compareRuns(before: StoredRun, reports: readonly Report[]): Comparison {
  const earlier = new Map(
    before.reports.flatMap(({ name, results = [] }) => results.map((result) => [keyOf(name, result), result]))
  )
  const now = reports.flatMap(({ name, results = [] }) => results.map((result) => keyOf(name, result)))
  const inBoth = now.filter((key) => earlier.has(key))
  const chosen = [...earlier.keys()].filter((key) => reports.some(({ name }) => key.startsWith(keyOf(name))))
  const slower = reports.flatMap(({ name, results = [] }) =>
    results.flatMap((result) => {
      const old = earlier.get(keyOf(name, result))
      if (old === undefined) return []
      const [was, is] = [ratioOf(old), ratioOf(result)]
      const line = (from: number, to: number, unit: string, noise: number) => {
        const times = isSpeed(result) ? from / to : to / from
        return times > noise ? [`${keyOf(name, result)}: ${figure(from)} → ${figure(to)} ${unit}`] : []
      }
      if (was !== undefined && is !== undefined) return line(was, is, '×', NOISE.ratio)
      return line(old.measured, result.measured, result.unit, NOISE.measured)
    })
  )
  const alone = [...new Set([...now, ...chosen])].filter((key) => !inBoth.includes(key))
  return { compared: inBoth.length, slower, alone }
}

function keyOf(name: string, { what }: Pick<Result, 'what'> = { what: '' }): string {
  return `${name}, ${what}`
}
