/** Distance of keys that nothing lies between yet: room for 32 entries, each just above the one before. */
const SPACING = 2 ** 32
/** Keys stay within ± this, so that their differences are exact numbers too. */
const KEY_MAX = 2 ** 52

/** What is known of the entries of a page, highest place first. */
export type Placed = {
  /** The order key of each; NaN for one that has none. */
  readonly orders: Float64Array
  /** 1 for an entry that gets an event anyway, so that a new key costs nothing. */
  readonly isPublished: Uint8Array
}

/**
 * Order keys, strictly rising, for the entries of a page, so that as few as possible of the entries without an event get
 * another key. Two entries can both keep their keys when these differ by at least as much as their places do: then they
 * rise, and all entries between find room. So the entries that keep their keys are a longest run over the places in which
 * `order − place` never falls; all entries with an event together count less than one of the others. The rest get keys spread
 * evenly over the gaps. Only where a key would pass ± 2^52 (a million entries later, each above all others) are all
 * renewed. Takes O(n log n).
 */
export function orderKeys({ orders, isPublished }: Placed): Float64Array {
  const slack = orders.map((order, place) => (Math.abs(order) <= KEY_MAX ? order - place : Number.NaN))
  const run = risingRun(slack) ?? heaviestRun(slack, isPublished)
  const first = run[0]
  const last = run.at(-1)
  if (first === undefined || last === undefined) return freshKeys(orders.length)
  const top = keyAt(orders, first) - first * SPACING
  const bottom = keyAt(orders, last) + (orders.length - 1 - last) * SPACING
  if (top < -KEY_MAX || bottom > KEY_MAX) return freshKeys(orders.length)
  const keys = new Float64Array(orders.length)
  for (let place = 0; place < first; place += 1) keys[place] = top + place * SPACING
  let above = first
  for (const below of run) {
    const key = keyAt(orders, above)
    const step = Math.floor((keyAt(orders, below) - key) / Math.max(1, below - above))
    for (let place = above; place < below; place += 1) keys[place] = key + (place - above) * step
    above = below
  }
  for (let place = last; place < keys.length; place += 1) keys[place] = keyAt(orders, last) + (place - last) * SPACING
  return keys
}

function freshKeys(count: number): Float64Array {
  const spacing = Math.min(SPACING, Math.floor(KEY_MAX / (count + 1)))
  return new Float64Array(count).map((_, place) => (place + 1) * spacing)
}

function keyAt(orders: Float64Array, place: number): number {
  return orders[place] ?? Number.NaN
}

/** All places that have a value, when the values never fall: a board to which nothing, or little, has happened. */
function risingRun(values: Float64Array): number[] | undefined {
  const places: number[] = []
  let above = Number.NEGATIVE_INFINITY
  for (let place = 0; place < values.length; place += 1) {
    const value = keyAt(values, place)
    if (value < above) return undefined
    if (value >= above) {
      places.push(place)
      above = value
    }
  }
  return places
}

/**
 * The places of the heaviest run in which the values never fall. A Fenwick tree over the sorted values keeps, for each
 * bound, where the heaviest run with an end at or below it ends; places count from 1 in it, 0 is no run.
 */
function heaviestRun(values: Float64Array, isPublished: Uint8Array): number[] {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort()
  const heavy = sorted.length + 1
  const weights = new Float64Array(values.length + 1)
  const previous = new Int32Array(values.length + 1)
  const tree = new Int32Array(sorted.length + 1)
  let best = 0
  for (let end = 1; end <= values.length; end += 1) {
    const value = keyAt(values, end - 1)
    if (Number.isNaN(value)) continue
    const bound = countUpTo(sorted, value)
    let before = 0
    for (let node = bound; node > 0; node -= node & -node) before = heavier(weights, before, tree[node] ?? 0)
    previous[end] = before
    weights[end] = keyAt(weights, before) + (isPublished[end - 1] === 1 ? 1 : heavy)
    for (let node = bound; node < tree.length; node += node & -node) tree[node] = heavier(weights, tree[node] ?? 0, end)
    best = heavier(weights, best, end)
  }
  const run: number[] = []
  for (let end = best; end > 0; end = previous[end] ?? 0) run.push(end - 1)
  return run.reverse()
}

/** Of two ends of runs that of the heavier one; of equals the first. */
function heavier(weights: Float64Array, first: number, second: number): number {
  return keyAt(weights, second) > keyAt(weights, first) ? second : first
}

/** How many of the sorted values are at most this one. */
function countUpTo(sorted: Float64Array, value: number): number {
  let first = 0
  let next = sorted.length
  while (first < next) {
    const middle = (first + next) >>> 1
    if (keyAt(sorted, middle) <= value) first = middle + 1
    else next = middle
  }
  return first
}
