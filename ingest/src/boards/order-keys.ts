/** Distance of keys that nothing lies between yet: room for 32 entries, each just above the one before. */
const SPACING = 2 ** 32
/** Keys stay within ± this, so that their differences are exact numbers too. */
const KEY_MAX = 2 ** 52

/** What is known of the entry at one place of a page, highest place first. */
export type Placed = {
  /** The order key that it has; null when it has none. */
  readonly order: number | null
  /** Whether an event tells of the entry whatever becomes of its key, so that a new key costs nothing. */
  readonly isTold: boolean
}

/**
 * Order keys, strictly rising, for the entries of a page, so that as few as can be of those that are not told anyhow get
 * another key. Two entries can both keep their keys when these differ by at least as much as their places do: then they
 * rise, and all entries between find room. So the entries that keep their keys are a longest run over the places in which
 * `order − place` never falls; entries that are told anyhow count less than one of the others. The rest get keys spread
 * evenly over the gaps. Only where a key would pass ± 2^52 (a million entries later, each above all others) are all
 * renewed. Takes O(n log n).
 */
export function orderKeys(entries: readonly Placed[]): number[] {
  const slack = entries.map(({ order }, place) =>
    order === null || Math.abs(order) > KEY_MAX ? undefined : order - place
  )
  const keys = new Array<number>(entries.length).fill(0)
  let before: number | undefined
  for (const place of longestRun(slack, entries)) {
    const key = entries[place]?.order ?? 0
    keys[place] = key
    if (before === undefined) {
      const top = key - place * SPACING
      if (top < -KEY_MAX) return freshKeys(entries.length)
      for (let i = 0; i < place; i += 1) keys[i] = top + i * SPACING
    } else {
      fillBetween(keys, before, place)
    }
    before = place
  }
  if (before === undefined) return freshKeys(entries.length)
  const last = keys[before] ?? 0
  if (last + (keys.length - 1 - before) * SPACING > KEY_MAX) return freshKeys(entries.length)
  for (let i = before + 1; i < keys.length; i += 1) keys[i] = last + (i - before) * SPACING
  return keys
}

function freshKeys(count: number): number[] {
  const spacing = Math.min(SPACING, Math.floor(KEY_MAX / (count + 1)))
  return Array.from({ length: count }, (_, place) => (place + 1) * spacing)
}

function fillBetween(keys: number[], above: number, below: number): void {
  const first = keys[above] ?? 0
  const step = Math.floor(((keys[below] ?? 0) - first) / (below - above))
  for (let place = above + 1; place < below; place += 1) keys[place] = first + (place - above) * step
}

/** The places of the heaviest run in which the values never fall; an undefined value is in no run. */
function longestRun(values: readonly (number | undefined)[], entries: readonly Placed[]): number[] {
  const known = placesThatNeverFall(values)
  return known.rises ? known.places : heaviestRun(known.places, values, entries)
}

/** All places that have a value, and whether the values never fall as it is: the board as good as always. */
function placesThatNeverFall(values: readonly (number | undefined)[]): { places: number[]; rises: boolean } {
  const places: number[] = []
  let rises = true
  let last = Number.NEGATIVE_INFINITY
  for (const [place, value] of values.entries()) {
    if (value === undefined) continue
    if (value < last) rises = false
    last = value
    places.push(place)
  }
  return { places, rises }
}

/** A Fenwick tree over the values keeps, for each bound, the heaviest run that ends at or below it. */
function heaviestRun(
  places: readonly number[],
  values: readonly (number | undefined)[],
  entries: readonly Placed[]
): number[] {
  const sorted = Float64Array.from(places, (place) => values[place] ?? 0).sort()
  const weights = new Float64Array(places.length)
  const previous = new Int32Array(places.length)
  /** Number of the run's last member in `places`, plus 1. */
  const heaviest = new Int32Array(sorted.length + 1)
  const weightOf = (member: number) => (member === 0 ? 0 : (weights[member - 1] ?? 0))
  let best = 0
  for (const [i, place] of places.entries()) {
    const bound = countUpTo(sorted, values[place] ?? 0)
    let end = 0
    for (let node = bound; node > 0; node -= node & -node) {
      const candidate = heaviest[node] ?? 0
      if (weightOf(candidate) > weightOf(end)) end = candidate
    }
    previous[i] = end
    weights[i] = weightOf(end) + (entries[place]?.isTold === true ? 1 : places.length + 1)
    for (let node = bound; node <= sorted.length; node += node & -node) {
      if (weightOf(i + 1) > weightOf(heaviest[node] ?? 0)) heaviest[node] = i + 1
    }
    if (weightOf(i + 1) > weightOf(best)) best = i + 1
  }
  const run: number[] = []
  for (let member = best; member > 0; member = previous[member - 1] ?? 0) run.push(places[member - 1] ?? 0)
  return run.reverse()
}

/** How many of the sorted values are at most this one. */
function countUpTo(sorted: Float64Array, value: number): number {
  let first = 0
  let next = sorted.length
  while (first < next) {
    const middle = (first + next) >>> 1
    if ((sorted[middle] ?? 0) <= value) first = middle + 1
    else next = middle
  }
  return first
}
