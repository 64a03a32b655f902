import { projectionCheckpoint } from '@gamenet/schemas'
import type { Checkpoints } from '../checkpoint.js'
import { type Made, type Making, makeRows } from '../make-rows.js'
import type { Projection } from '../projection.js'
import { lengthOf, type Range, rangeBetween } from '../range.js'
import { isFilledByKeys, type StepSizes } from './fill.js'
import { createTables, dropTables, standingIn, tablesOf } from './fresh-tables.js'

/** Events of a sample: enough that what a statement costs beside its rows does not count much. */
const SAMPLE_EVENTS = 200_000
/** Of a smaller one beside it, of what is made of other tables: what both cost alike, a step costs however many events it has. */
const FEW_EVENTS = 20_000
/** Of a fold, whose events cost ten times as much. */
const FOLD_SAMPLE_EVENTS = 50_000

/**
 * Seconds that an event costs each projection, measured: a stretch in the middle of what is loaded is made into tables that are
 * dropped afterwards. A statement reads what the sample made before it, as it will in the fill, where the table holds little more than
 * what it asks for; a fold reads the tables that serve, by its keys. Projections without events cost nothing.
 *
 * @param sizes of the steps of the fill, over which what a step costs by itself is spread
 */
export async function measureCosts(
  making: Making,
  unit: readonly Projection[],
  live: Checkpoints,
  sizes: Pick<StepSizes, 'most' | 'keys'>
): Promise<Record<string, number>> {
  const costs: Record<string, number> = {}
  const made = new Map<string, string>()
  const samples = unit.flatMap(tablesOf).map((table) => `${table}__sample`)
  await dropTables(making.tables, samples)
  try {
    for (const projection of unit) {
      const { name, after } = projection
      const whole = wholeRange(projection, live)
      const events = lengthOf(whole)
      if (events === 0) continue
      const names = new Map(tablesOf(projection).map((table) => [table, `${table}__sample`]))
      await createTables(making.tables, names)
      const isFold = projection.form === 'fold'
      const isByKeys = isFilledByKeys(projection)
      // Of what is sampled by keys, inserts are told by the table's name.
      const tables = isByKeys
        ? standingIn(making.tables, names, 'INTO')
        : standingIn(making.tables, new Map([...made, ...names]))
      const timed = async (what: Pick<Made, 'range' | 'slice'>, of: number): Promise<Sample> => {
        const begun = performance.now()
        await makeRows({ ...making, tables }, projection, { ...what, isLate: false })
        return { events: of, seconds: (performance.now() - begun) / 1000 }
      }
      const sample = (most: number): Promise<Sample> => {
        const of = Math.ceil(events / most)
        if (isByKeys) return timed({ range: whole, slice: { n: 0, of } }, events / of)
        const range = middleOf(whole, most)
        return timed({ range }, lengthOf(range))
      }
      const samples = [await sample(isFold ? FOLD_SAMPLE_EVENTS : SAMPLE_EVENTS)]
      // Behind the larger one, which pays for what nobody has read yet.
      if (!isFold && after !== undefined) samples.push(await sample(FEW_EVENTS), await sample(FEW_EVENTS))
      costs[name] = costOf(samples, Math.min(events, isByKeys ? sizes.keys : sizes.most))
      // The keys of a slice are others than those of the stretch.
      if (!isByKeys) for (const [table, sample] of names) made.set(table, sample)
    }
  } finally {
    await dropTables(making.tables, samples)
  }
  return costs
}

type Sample = { readonly events: number; readonly seconds: number }

/**
 * What an event costs in steps of so many, in seconds: what it costs by itself, and its share of what a step costs however many it
 * has. Samples of one size cannot tell these apart, and are taken to cost nothing but their events.
 */
export function costOf(samples: readonly Sample[], stepEvents: number): number {
  const sizes = samples.map(({ events }) => events)
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)]
  const few = leastOf(samples.filter(({ events }) => events === least))
  const many = leastOf(samples.filter(({ events }) => events === most))
  if (least === most) return few / least
  const own = Math.max(0, (many - few) / (most - least))
  return own + Math.max(0, few - own * least) / stepEvents
}

function leastOf(samples: readonly Sample[]): number {
  return Math.min(...samples.map(({ seconds }) => seconds))
}

/** All that a projection has taken. */
export function wholeRange(projection: Projection, live: Checkpoints): Range {
  return rangeBetween(() => 0, live.of(projectionCheckpoint(projection.name)), Infinity)
}

function middleOf(whole: Range, events: number): Range {
  const longest = whole.reduce((a, b) => (b.next - b.first > a.next - a.first ? b : a))
  const middle = Math.floor((longest.first + longest.next) / 2)
  const first = Math.max(longest.first, middle - events / 2)
  return [{ ...longest, first, next: Math.min(longest.next, first + events) }]
}
