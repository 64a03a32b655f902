import { projectionCheckpoint, rangeBetween } from '@gamenet/schemas'
import type { StepContext } from '../folding/step.js'
import { runStep } from '../project/run-step.js'
import type { Checkpoints } from '../store/checkpoint.js'
import { type KeySlice, type Projection, tablesOf } from '../store/projection.js'
import { lengthOf, type Range } from '../store/range.js'
import { type KeyPart, readParts, type StepInput } from '../store/step.js'
import type { Live } from './context.js'
import { type StepSizes, sliceEvents } from './fill.js'
import { createTables, dropTables, sampleName } from './rebuild-tables.js'
import { type Cuts, cutsOf, joinParts, sliceAt } from './slices.js'

/**
 * Events of the samples of a statement, in order. The difference between a large and a small sample is the cost of
 * events, the rest the cost of a step. The first sample fills caches. There are several because a statement that reads
 * their rows merges their parts, as in the fill.
 */
const SAMPLE_EVENTS = [20_000, 200_000, 20_000]
/** Events of the sample of a fold, whose events cost ten times as much. */
const FOLD_SAMPLE_EVENTS = [50_000]

/** The seconds per event and, where slices of keys fill it, the cuts, by projection. */
export type Measured = {
  readonly costs: Readonly<Record<string, number>>
  readonly cuts: Readonly<Record<string, Cuts>>
}

/**
 * Measures the seconds per event of each projection: projects a range in the middle of the loaded events into tables
 * that are dropped afterwards. A statement reads the tables of the samples before it, because in the fill too a table
 * has hardly more rows than the statement reads; a fold reads the live tables, by keys. Projections without events cost
 * nothing. Also cuts their keys into slices.
 *
 * @param by `sizes` of the fill's steps, which share the cost of a step; `process` names the sample tables
 */
export async function measureCosts(
  step: StepContext,
  unit: readonly Projection[],
  { live, checkpoints }: { readonly live: Live; readonly checkpoints: Checkpoints },
  { sizes, process }: { readonly sizes: StepSizes; readonly process: string }
): Promise<Measured> {
  const nameOf = (table: string) => sampleName(table, process)
  const costs: Record<string, number> = {}
  const cuts: Record<string, Cuts> = {}
  const earlier = new Map<string, string>()
  const sampleTables = unit.flatMap(tablesOf).map(nameOf)
  await dropTables(step.store, sampleTables)
  try {
    for (const projection of unit) {
      const { name } = projection
      const whole = wholeRange(projection, checkpoints)
      const events = lengthOf(whole)
      if (events === 0) continue
      const names = new Map(tablesOf(projection).map((table) => [table, nameOf(table)]))
      await createTables(
        step.store,
        new Map([...names].map(([table, sample]) => [live.names.get(table) ?? table, sample]))
      )
      const isByKeys = projection.key !== undefined
      const stepEvents = isByKeys ? sliceEvents(projection, events, sizes) : Math.min(events, sizes.most)
      const partEvents = Math.min(stepEvents, ...SAMPLE_EVENTS)
      const parts = isByKeys ? await step.store.do(readParts, projection, whole, partEvents) : undefined
      // Without any, its event table is lost, and ranges of the log fill it.
      if (parts !== undefined && parts.length > 0) cuts[name] = cutsOf(joinParts(parts, stepEvents))
      // A sample by keys reads the live tables.
      const view = new Map([...live.names, ...(isByKeys ? [] : earlier), ...names])
      const store = step.store.with(isByKeys ? { names: live.names, targets: view } : { names: view })
      const samples: Sample[] = []
      for (const sampled of sampledOf(projection, whole, parts)) {
        const begun = performance.now()
        await runStep({ ...step, store }, projection, { ...sampled.input, isLate: false })
        samples.push({ events: sampled.events, seconds: (performance.now() - begun) / 1000 })
      }
      costs[name] = costOf(samples, stepEvents)
      // A slice has other keys than the range.
      if (!isByKeys) for (const [table, sample] of names) earlier.set(table, sample)
    }
  } finally {
    await dropTables(step.store, sampleTables)
  }
  return { costs, cuts }
}

/** Returns the samples of a projection, each with its number of events. */
function sampledOf(
  { form }: Projection,
  whole: Range,
  parts: readonly KeyPart[] | undefined
): { readonly input: Pick<StepInput, 'range' | 'slice'>; readonly events: number }[] {
  const sizes = form === 'fold' ? FOLD_SAMPLE_EVENTS : SAMPLE_EVENTS
  if (parts === undefined) return middleOf(whole, sizes).map((range) => ({ input: { range }, events: lengthOf(range) }))
  const samples = parts.length === 0 ? [] : sizes.map((wanted) => sampleOf(parts, wanted))
  const all = samples.map(({ events }) => events)
  // If a few keys have nearly all events, no slice is small, and one sample is enough.
  const isAlike = Math.max(...all) < 2 * Math.min(...all)
  return (isAlike ? samples.slice(0, 1) : samples).map(({ slice, events }) => ({
    input: { range: whole, slice },
    events
  }))
}

/** Returns the slice whose number of events is nearest to the wanted one. */
function sampleOf(parts: readonly KeyPart[], wanted: number): { readonly slice: KeySlice; readonly events: number } {
  const slices = joinParts(parts, wanted)
  const farness = (n: number) => Math.abs(Math.log((slices[n]?.events ?? 0) / wanted))
  const [nearest = 0] = [...slices.keys()].toSorted((a, b) => farness(a) - farness(b))
  return { slice: sliceAt(cutsOf(slices), nearest), events: slices[nearest]?.events ?? 0 }
}

type Sample = { readonly events: number; readonly seconds: number }

/**
 * Returns the seconds per event in steps of `stepEvents`: its own cost and its share of the fixed cost of a step.
 * Samples of one size cannot separate these; then the fixed cost counts as 0.
 */
export function costOf(samples: readonly Sample[], stepEvents: number): number {
  if (samples.length === 0) return 0
  const sizes = samples.map(({ events }) => events)
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)]
  const few = leastOf(samples.filter(({ events }) => events === least))
  const many = leastOf(samples.filter(({ events }) => events === most))
  if (least === most) return few / least
  const own = Math.max(0, (many - few) / (most - least))
  return own + Math.max(0, few - own * least) / stepEvents
}

const leastOf = (samples: readonly Sample[]): number => Math.min(...samples.map(({ seconds }) => seconds))

/** Returns the range that a projection has consumed. */
export function wholeRange(projection: Projection, live: Checkpoints): Range {
  return rangeBetween(() => 0, live.of(projectionCheckpoint(projection.name)), Infinity)
}

/**
 * Returns consecutive ranges of about these sizes in the middle of the longest partition, each of at least one event.
 */
function middleOf(whole: Range, sizes: readonly number[]): Range[] {
  const longest = whole.reduce((a, b) => (b.next - b.first > a.next - a.first ? b : a))
  const most = sizes.reduce((sum, size) => sum + size, 0)
  const share = Math.min(1, (longest.next - longest.first) / most)
  let at = Math.max(longest.first, Math.floor((longest.first + longest.next - most) / 2))
  const stretches: Range[] = []
  for (const size of sizes) {
    const first = at
    at = Math.min(longest.next, first + Math.ceil(size * share))
    if (at > first) stretches.push([{ ...longest, first, next: at }])
  }
  return stretches
}
