import type { KeySlice, KeyValues } from '../store/projection.js'
import type { KeyPart } from '../store/step.js'

/*
 * The slices of keys that fill a projection: ranges of the primary key of the table that they are read from, so that no
 * slice reads the rows of another one. A rebuild stores its cuts. Cuts of a later instant may differ and miss keys: a
 * retried dead letter brings one, an erasure removes one.
 */

/** The first key of each slice but the first one, which begins before all keys. */
export type Cuts = readonly KeyValues[]

/** Joins successive parts to slices of about this many events; a larger part is a slice. */
export function joinParts(parts: readonly KeyPart[], size: number): KeyPart[] {
  const slices: KeyPart[] = []
  for (const part of parts) {
    const last = slices.at(-1)
    if (last === undefined || last.events + part.events / 2 > size) slices.push(part)
    else slices[slices.length - 1] = { ...last, events: last.events + part.events }
  }
  return slices
}

export const cutsOf = (slices: readonly KeyPart[]): Cuts => slices.slice(1).map(({ first }) => first)

/** Returns the n-th slice. */
export const sliceAt = (cuts: Cuts, n: number): KeySlice => ({ from: cuts[n - 1], to: cuts[n] })
