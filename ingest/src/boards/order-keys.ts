/** Distance between keys with nothing between them: space for 32 entries, each just above the one before. */
const SPACING = 2 ** 32
/** Keys stay within ± this, so that their differences are exact. */
const KEY_MAX = 2 ** 52

/** Known facts about the entries of a page, highest place first. */
export type Placed = {
  /** The order key of each entry; NaN for none. */
  readonly orders: Float64Array
  /** 1 for an entry that gets an event anyway, so that a new key is free. */
  readonly isPublished: Uint8Array
}

/**
 * Returns strictly rising order keys for the entries of a page. As few entries as possible without an event get another
 * key.
 * Two entries can both keep their keys if these differ by at least as much as their places: then they rise, and all
 * entries between them fit. So the entries that keep their keys are a longest run of places in which `order − place`
 * never falls; all entries with an event together weigh less than one without. The others get keys spread evenly over
 * the gaps. Only if a key would exceed ± 2^52 (after a million entries, each above all others) all keys are renewed.
 * O(n log n).
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

const keyAt = (orders: Float64Array, place: number): number => orders[place] ?? Number.NaN

/** Returns all places with a value if the values never fall: the case of a board with few or no changes. */
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
 * Returns the places of the heaviest run in which the values never fall. A Fenwick tree over the sorted values stores,
 * for each bound, the end of the heaviest run that ends at or below it. Its places count from 1; 0 means no run.
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

/** Returns the end of the heavier of two runs, the first one if they are equal. */
function heavier(weights: Float64Array, first: number, second: number): number {
  return keyAt(weights, second) > keyAt(weights, first) ? second : first
}

/** Returns the number of sorted values that are at most `value`. */
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
