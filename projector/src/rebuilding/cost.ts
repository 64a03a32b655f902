import { projectionCheckpoint } from '@gamenet/schemas'
import type { Checkpoints } from '../checkpoint.js'
import { type Made, type Making, makeRows } from '../make-rows.js'
import type { Projection } from '../projection.js'
import { lengthOf, type Range, rangeBetween } from '../range.js'
import { createTables, dropTables, standingIn, tablesOf } from './fresh-tables.js'

/** Events of a sample: enough that what a statement costs beside its rows does not count much. */
const SAMPLE_EVENTS = 200_000
/** Of a smaller one beside it, of what reads whole keys again: what both cost alike, a step costs however many events it has. */
const FEW_EVENTS = 20_000
/** A smaller one that takes so long costs what it does for its keys. */
const KEYS_SECONDS = 2
/** Of a fold, whose events cost ten times as much. */
const FOLD_SAMPLE_EVENTS = 50_000

/**
 * Seconds that an event costs each projection, measured: a stretch in the middle of what is loaded is made into tables that are
 * dropped afterwards. A statement reads what the sample made before it, as it will in the fill, where the table holds little more than
 * what it asks for; a fold reads the tables that serve, by its keys. Projections without events cost nothing.
 *
 * @param stepEvents most events of a step of the fill, over which what it costs by itself is spread
 */
export async function measureCosts(
  making: Making,
  unit: readonly Projection[],
  live: Checkpoints,
  stepEvents: number
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
      // Of a fold, inserts are told by the table's name.
      const tables = isFold
        ? standingIn(making.tables, names, 'INTO')
        : standingIn(making.tables, new Map([...made, ...names]))
      const timed = async (what: Pick<Made, 'range' | 'slice'>, of: number): Promise<Sample> => {
        const begun = performance.now()
        await makeRows({ ...making, tables }, projection, { ...what, isLate: false })
        return { events: of, seconds: (performance.now() - begun) / 1000 }
      }
      const timedMiddle = (most: number): Promise<Sample> => {
        const range = middleOf(whole, most)
        return timed({ range }, lengthOf(range))
      }
      if (isFold) {
        const of = Math.ceil(events / FOLD_SAMPLE_EVENTS)
        costs[name] = costOf([await timed({ range: whole, slice: { n: 0, of } }, events / of)], 1)
      } else if (after === undefined) {
        costs[name] = costOf([await timedMiddle(SAMPLE_EVENTS)], 1)
      } else {
        // The first one pays for what nobody has read yet.
        const few = [await timedMiddle(FEW_EVENTS), await timedMiddle(FEW_EVENTS)]
        const isOfKeys = few.every(({ seconds }) => seconds > KEYS_SECONDS)
        const many = isOfKeys ? [{ events: SAMPLE_EVENTS, seconds: leastOf(few) }] : [await timedMiddle(SAMPLE_EVENTS)]
        costs[name] = costOf([...few, ...many], Math.min(events, stepEvents))
      }
      // The boards of a fold's sample are others than those of the stretch.
      if (!isFold) for (const [table, sample] of names) made.set(table, sample)
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
