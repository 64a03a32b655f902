import { SEAL_KEY_CACHE_MS } from '@gamenet/projector'
import { nameKey, pause, ratingTopic } from '@gamenet/schemas'
import { eraseRows } from '../../src/stores/erase-rows.js'
import { Chance } from './chance.js'
import { untilConsumed } from './imports.js'
import { USER_COLUMNS } from './operations/user-rows.js'
import type { Erasure, Place } from './place.js'
import type { RunningProjector } from './projector.js'
import { USERS } from './simulated.js'
import { storeIn } from './store.js'
import { baseName } from './tables/table-set.js'

/** Share of the worlds with an operator in which a user is erased. */
const ERASING_SHARE = 0.3
const AFTER_MS_MAX = 15_000
const STEPS = [undefined, undefined, 'wait', 'verify', 'swap', 'rollback'] as const
const SALT = '5a17'.repeat(16)
/** Separate random numbers, so that erasures do not change worlds without one. */
const OWN_NUMBERS = 0x5eed

export function erasureOf(seed: number): Erasure | undefined {
  const chance = new Chance(seed ^ (OWN_NUMBERS << 16))
  if (!chance.happens(ERASING_SHARE)) return undefined
  return {
    userKey: nameKey(chance.oneOf(USERS)),
    afterMs: chance.below(AFTER_MS_MAX),
    before: chance.oneOf(STEPS),
    isDone: false
  }
}

/** Erases a user in the order of `eraseUser`: deletes the key, waits for readers of the log, deletes rows. */
export async function erase(place: Place, { stepsEnded }: RunningProjector, erasure: Erasure): Promise<void> {
  const { world, tables, postgres, promises, bug } = place
  const { signal } = new AbortController()
  const { userKey } = erasure
  await postgres.erase(userKey)
  await pause(SEAL_KEY_CACHE_MS, signal)
  await untilConsumed(place, [ratingTopic.name])
  const store = bug.erasureStore(storeIn(world, tables))
  await eraseRows({ store, salt: SALT, stepsEnded, onTable: () => undefined, signal }, [userKey])
  erasure.isDone = true
  world.note(`${userKey} is erased`)
  promises.broken.push(...rowsOfErased(place))
}

/** Returns the rows of an erased user in all generations, merged or not. */
export function rowsOfErased({ tables, erasure }: Pick<Place, 'tables' | 'erasure'>): string[] {
  if (erasure?.isDone !== true) return []
  const { userKey } = erasure
  return tables.names.flatMap((name) => {
    const columns = name === 'data_change' ? ['key'] : (USER_COLUMNS[baseName(name)] ?? [])
    const rows = tables.table(name).rows.filter((row) => columns.some((column) => row[column] === userKey))
    return rows.length === 0 ? [] : [`${name} has ${rows.length} rows of ${userKey}, who was erased`]
  })
}
