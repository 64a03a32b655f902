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

/** Returns a line for each figure that is worse than in the earlier run beyond noise; ignores figures that only one run has. */
export function slowerThan(before: StoredRun, reports: readonly Report[]): string[] {
  const earlier = new Map(
    before.reports.flatMap(({ name, results = [] }) => results.map((result) => [keyOf(name, result), result]))
  )
  return reports.flatMap(({ name, results = [] }) =>
    results.flatMap((result) => {
      const old = earlier.get(keyOf(name, result))
      if (old === undefined) return []
      const [was, is] = [ratioOf(old), ratioOf(result)]
      const line = (from: number, to: number, unit: string, noise: number) => {
        const times = isSpeed(result) ? from / to : to / from
        return times > noise ? [`${name}, ${result.what}: ${figure(from)} → ${figure(to)} ${unit}`] : []
      }
      if (was !== undefined && is !== undefined) return line(was, is, '×', NOISE.ratio)
      return line(old.measured, result.measured, result.unit, NOISE.measured)
    })
  )
}

function keyOf(name: string, { what }: Pick<Result, 'what'>): string {
  return `${name}/${what}`
}
