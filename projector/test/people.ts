import { createHash } from 'node:crypto'
import { nameKey, type Seal } from '@gamenet/schemas'

const seals = new Map<string, Seal>()
const keys = new Map<number, Uint8Array>()

/** Returns the seal of a user; creates it at the first call. */
export function sealOf(username: string): Seal {
  const userKey = nameKey(username)
  const known = seals.get(userKey)
  if (known !== undefined) return known
  const seal = { id: seals.size + 1, key: new Uint8Array(createHash('sha256').update(userKey).digest()) }
  seals.set(userKey, seal)
  keys.set(seal.id, seal.key)
  return seal
}

/** The same, in the form that a projector requests. */
export async function sealKeys(people: readonly number[]): Promise<ReadonlyMap<number, Uint8Array>> {
  return new Map(
    people.flatMap((person) => {
      const key = keys.get(person)
      return key === undefined ? [] : [[person, key] as const]
    })
  )
}
