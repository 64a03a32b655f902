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
      const sampled = async (made: Pick<Made, 'range' | 'slice'>, of: number): Promise<Sample> => {
        const begun = performance.now()
        await makeRows({ ...making, tables }, projection, { ...made, isLate: false })
        return { events: of, seconds: (performance.now() - begun) / 1000 }
      }
      const sample = (most: number): Promise<Sample> => {
        const range = middleOf(whole, most)
        return sampled({ range }, lengthOf(range))
      }
      if (isFold) {
        const of = Math.ceil(events / FOLD_SAMPLE_EVENTS)
        costs[projection.name] = perEvent(await sampled({ range: whole, slice: { n: 0, of } }, events / of))
      } else if (projection.after === undefined) {
        costs[projection.name] = perEvent(await sample(SAMPLE_EVENTS))
      } else {
        const few = await sample(FEW_EVENTS)
        const many = few.seconds > KEYS_SECONDS ? few : await sample(SAMPLE_EVENTS)
        costs[projection.name] = perEventOfSteps(few, many, Math.min(events, stepEvents))
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

function perEvent({ events, seconds }: Sample): number {
  return seconds / events
}

/** What an event costs in steps of so many, of each of which two samples tell what it costs by itself. */
function perEventOfSteps(few: Sample, many: Sample, stepEvents: number): number {
  const more = many.events - few.events
  const own = more > 0 ? Math.max(0, (many.seconds - few.seconds) / more) : 0
  const ofStep = Math.max(0, few.seconds - own * few.events)
  return own + ofStep / stepEvents
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
