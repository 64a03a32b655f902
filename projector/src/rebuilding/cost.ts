import { projectionCheckpoint } from '@gamenet/schemas'
import type { Checkpoints } from '../checkpoint.js'
import { type Making, makeRows } from '../make-rows.js'
import type { Projection } from '../projection.js'
import { lengthOf, type Range, rangeBetween } from '../range.js'
import { createTables, dropTables, standingIn, tablesOf } from './fresh-tables.js'

/** Events of a sample: enough that what a statement costs beside its rows does not count much. */
const SAMPLE_EVENTS = 200_000
/** Of a fold, whose events cost ten times as much. */
const FOLD_SAMPLE_EVENTS = 50_000

/**
 * Seconds that an event costs each projection, measured: a stretch in the middle of what is loaded is made into tables that are
 * dropped afterwards. A statement reads what the sample made before it, as it will in the fill, where the table holds little more than
 * what it asks for; a fold reads the tables that serve, by its keys. Projections without events cost nothing.
 */
export async function measureCosts(
  making: Making,
  unit: readonly Projection[],
  live: Checkpoints
): Promise<Record<string, number>> {
  const costs: Record<string, number> = {}
  const made = new Map<string, string>()
  const samples = unit.flatMap(tablesOf).map((table) => `${table}__sample`)
  await dropTables(making.tables, samples)
  try {
    for (const projection of unit) {
      const whole = wholeRange(projection, live)
      const events = lengthOf(whole)
      if (events === 0) continue
      const names = new Map(tablesOf(projection).map((table) => [table, `${table}__sample`]))
      await createTables(making.tables, names)
      const isFold = projection.form === 'fold'
      // Of a fold, inserts are told by the table's name.
      const tables = isFold
        ? standingIn(making.tables, names, 'INTO')
        : standingIn(making.tables, new Map([...made, ...names]))
      const slices = Math.ceil(events / FOLD_SAMPLE_EVENTS)
      const range = isFold ? whole : middleOf(whole)
      const begun = performance.now()
      await makeRows({ ...making, tables }, projection, {
        range,
        isLate: false,
        ...(isFold ? { slice: { n: 0, of: slices } } : {})
      })
      const seconds = (performance.now() - begun) / 1000
      costs[projection.name] = seconds / (isFold ? events / slices : lengthOf(range))
      // The boards of a fold's sample are others than those of the stretch.
      if (!isFold) for (const [table, sample] of names) made.set(table, sample)
    }
  } finally {
    await dropTables(making.tables, samples)
  }
  return costs
}

/** All that a projection has taken. */
export function wholeRange(projection: Projection, live: Checkpoints): Range {
  return rangeBetween(() => 0, live.of(projectionCheckpoint(projection.name)), Infinity)
}

function middleOf(whole: Range): Range {
  const longest = whole.reduce((a, b) => (b.next - b.first > a.next - a.first ? b : a))
  const middle = Math.floor((longest.first + longest.next) / 2)
  const first = Math.max(longest.first, middle - SAMPLE_EVENTS / 2)
  return [{ ...longest, first, next: Math.min(longest.next, first + SAMPLE_EVENTS) }]
}
