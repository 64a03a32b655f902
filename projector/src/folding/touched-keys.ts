import type { Store } from '../store/operation.js'
import type { FoldProjection } from '../store/projection.js'
import { readKeys, readWeights, type StepInput, type TouchedKey } from '../store/step.js'

/**
 * Maximum weight of a chunk in rows, about 12 MB as JSON; three chunks are in memory. Its rows are one part of each
 * table, and half of this weight takes twice the merges. A heavier key is a chunk by itself.
 */
const CHUNK_WEIGHT_MAX = 100_000
/** Maximum number of keys in a chunk: they are looked up one by one. */
const CHUNK_KEYS_MAX = 256
/** Maximum number of keys that are weighed at once. */
const WEIGHED_KEYS_MAX = 10_000

/** Returns the touched keys in the order of chunks: those that are set apart last. */
export async function touchedKeys(
  store: Store,
  projection: FoldProjection,
  input: Omit<StepInput, 'isLate'>
): Promise<TouchedKey[]> {
  const keys = await store.do(readKeys, projection, input)
  const { weigh, readsApart } = projection
  // A single key is one chunk, whatever its weight.
  if (weigh === undefined || (keys.length < 2 && readsApart === undefined)) return keys
  const weighed = new Map<string, Pick<TouchedKey, 'weight' | 'isApart'>>()
  for (let n = 0; n < keys.length; n += WEIGHED_KEYS_MAX) {
    for (const { values, ...weight } of await store.do(readWeights, projection, keys.slice(n, n + WEIGHED_KEYS_MAX)))
      weighed.set(JSON.stringify(values), weight)
  }
  const all = keys.map((key) => ({ ...key, ...weighed.get(JSON.stringify(key.values)) }))
  return [...all.filter(({ isApart }) => isApart !== true), ...all.filter(({ isApart }) => isApart === true)]
}

/** Divides keys in order into chunks within the limits; keys that are set apart are never combined with others. */
export function chunksOf(keys: readonly TouchedKey[]): TouchedKey[][] {
  const chunks: TouchedKey[][] = []
  let weight = 0
  for (const key of keys) {
    const last = chunks.at(-1)
    const isOther = key.isApart !== last?.[0]?.isApart
    if (last === undefined || isOther || last.length >= CHUNK_KEYS_MAX || weight + key.weight > CHUNK_WEIGHT_MAX) {
      chunks.push([key])
      weight = key.weight
    } else {
      last.push(key)
      weight += key.weight
    }
  }
  return chunks
}
