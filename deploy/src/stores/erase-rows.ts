import { announceAllChanged, projections, readNewestVersion, type Store } from '@gamenet/projector'
import {
  countUserRows,
  deleteUserRows,
  readDroppedTables,
  readMutations,
  readOldParts,
  readRunningInserts,
  readUsersByHash,
  readUserTables,
  removeMaskedRows,
  resetOldParts,
  shortenOldParts,
  startCleanup,
  type UserTable
} from '@gamenet/projector/erasure'
import { errorCode, poll } from '@gamenet/schemas'

/** Changes recorded by projections of topics about people use a user_key as key. */
const PEOPLE_PROJECTIONS = projections.filter(({ from }) => from.people !== undefined).map(({ name }) => name)
const CHANGES: UserTable = { table: 'data_change', columns: ['key'], projections: PEOPLE_PROJECTIONS }
const LOOK_MS = 200
/** A mutation rewrites every part that contains a row of the person. */
const MUTATION_MS_MAX = 600_000
/** The engine aborts longer statements. */
const INSERT_MS_MAX = 600_000
/** Longest wait for the removal of replaced parts: a query may read them, and an idle replica looks each 5 minutes. */
const OLD_PARTS_MS_MAX = 400_000
/** An engine removes the files of a dropped table after 480 s by default. */
const DROPPED_MS_MAX = 1_200_000
/**
 * Maximum number of rounds. Each round finds rows stored meanwhile by steps that had read earlier tables before the
 * deletion.
 */
const ROUNDS_MAX = 8
const UNKNOWN_TABLE = '60'

export type EraseRowsNeeds = {
  readonly store: Store
  /** Salt of the ledger's hashes, hexadecimal. */
  readonly salt: string
  /** Resolves when every running step that writes rows has ended. */
  readonly stepsEnded: () => Promise<void>
  /** Called before each table. */
  readonly onTable: (done: number, total: number) => void
  readonly signal: AbortSignal
  /** Default: {@link OLD_PARTS_MS_MAX}. */
  readonly oldPartsMs?: number | undefined
}

/** Returns the user_keys in the tables with one of these hashes; an unfinished erasure is known only by its hash. */
export async function usersInTables(
  { store, salt, signal }: Pick<EraseRowsNeeds, 'store' | 'salt' | 'signal'>,
  nameHashes: readonly string[]
): Promise<string[]> {
  const found = new Set<string>()
  // Changes too: their rows are deleted last.
  for (const { table, columns } of [...(await store.do(readUserTables)), CHANGES]) {
    for (const column of columns) {
      signal.throwIfAborted()
      const users = await store.do(readUsersByHash, table, column, salt, nameHashes)
      for (const userKey of users) found.add(userKey)
    }
  }
  return [...found]
}

/** Returns whether any table has a row of a user. */
export async function isKnownToTables(store: Store, userKey: string): Promise<boolean> {
  for (const table of await store.do(readUserTables)) {
    if ((await store.do(countUserRows, table, userKey)) > 0) return true
  }
  return false
}

/**
 * Deletes every row of these users from every table, and waits until their files are deleted: without users, those that
 * an interrupted erasure has left.
 *
 * A step that has read rows before the deletion stores derived rows afterwards: in a rebuild many seconds later, and
 * possibly into new tables. So each round waits for the running steps and lists the tables again. A round that finds
 * nothing is the last one: no step could have read a row in between.
 * @returns the number of deleted rows
 */
export async function eraseRows(cleaning: EraseRowsNeeds, userKeys: readonly string[]): Promise<number> {
  const { store, stepsEnded, signal } = cleaning
  const names = new Set<string>()
  try {
    let deleted = 0
    // Readers know the changes that are deleted, so a later one must have a higher version, even if the clock is
    // behind.
    let announced = 0
    for (let round = 1, found = Number.POSITIVE_INFINITY; found > 0; round += 1) {
      if (round > ROUNDS_MAX) throw new Error('rows of an erased person reappear in the tables repeatedly')
      await stepsEnded()
      await insertsEnded(cleaning)
      announced = Math.max(announced, await store.do(readNewestVersion))
      const tables = [...(await store.do(readUserTables)), CHANGES]
      for (const { table } of tables.filter((each) => !names.has(each.table))) {
        await unlessDropped(store.do(shortenOldParts, table))
        names.add(table)
      }
      found = 0
      for (const userKey of userKeys) found += await deleteRows(cleaning, tables, userKey)
      deleted += found
    }
    await waitForOldParts(cleaning, [...names])
    await waitForDroppedTables(store, signal)
    // The tables' facts about people may differ now.
    await announceAllChanged(store, PEOPLE_PROJECTIONS, announced)
    return deleted
  } finally {
    for (const table of names) await unlessDropped(store.do(resetOldParts, table))
  }
}

/**
 * Resolves when all current INSERTs in the engine have ended. A statement continues after its process was killed or
 * lost its connection.
 */
async function insertsEnded({ store, signal }: EraseRowsNeeds): Promise<void> {
  const begun = new Set(await store.do(readRunningInserts))
  let left = begun.size
  await until(INSERT_MS_MAX, signal, async () => {
    left = (await store.do(readRunningInserts)).filter((id) => begun.has(id)).length
    return left === 0
  })
  if (left > 0) throw new Error(`${left} running statements may still store rows of the person; waiting for them`)
}

/** Runs work on a table of a rebuild, which may be dropped at any time. */
async function unlessDropped<Answer>(work: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await work
  } catch (error) {
    if (errorCode(error) === UNKNOWN_TABLE) return undefined
    throw error
  }
}

async function deleteRows(
  { store, salt, onTable, signal }: EraseRowsNeeds,
  tables: readonly UserTable[],
  userKey: string
): Promise<number> {
  let deleted = 0
  for (const [done, each] of tables.entries()) {
    signal.throwIfAborted()
    onTable(done, tables.length)
    const rows = (await unlessDropped(store.do(countUserRows, each, userKey))) ?? 0
    if (rows > 0) await unlessDropped(store.do(deleteUserRows, each, userKey, salt))
    await unlessDropped(store.do(removeMaskedRows, each.table))
    await until(MUTATION_MS_MAX, signal, async () => {
      const { unfinished, failure } = await store.do(readMutations, each.table)
      if (failure !== '') throw new Error(`${each.table} cannot be cleaned: ${failure}`)
      return unfinished === 0
    })
    deleted += rows
  }
  return deleted
}

/** Waits only for the current parts; later ones do not contain the person. */
async function waitForOldParts(
  { store, signal, oldPartsMs = OLD_PARTS_MS_MAX }: EraseRowsNeeds,
  names: readonly string[]
): Promise<void> {
  const old = new Set((await store.do(readOldParts, names)).map(({ part }) => part))
  let count = old.size
  await until(oldPartsMs, signal, async () => {
    const left = (await store.do(readOldParts, names)).filter(({ part }) => old.has(part))
    count = left.length
    // An older ClickHouse looks for them automatically.
    for (const table of new Set(left.map(({ table }) => table)))
      await store.do(startCleanup, table).catch(() => undefined)
    return count === 0
  })
  if (count > 0)
    throw new Error(
      `the files of ${count} replaced parts still exist: a query reads them, or their date is in the future; waiting ` +
        `for their removal`
    )
}

/** Dropped tables are in no list, but their files remain: on a ClickHouse server for 8 minutes. */
async function waitForDroppedTables(store: Store, signal: AbortSignal): Promise<void> {
  const before = new Set(await store.do(readDroppedTables))
  let left = before.size
  await until(DROPPED_MS_MAX, signal, async () => {
    left = (await store.do(readDroppedTables)).filter((uuid) => before.has(uuid)).length
    return left === 0
  })
  if (left > 0) throw new Error(`the files of ${left} dropped tables still exist; waiting for their removal`)
}

/** Polls until the condition holds, for at most `timeoutMs`. */
async function until(timeoutMs: number, signal: AbortSignal, isSo: () => Promise<boolean>): Promise<void> {
  await poll(isSo, Boolean, { everyMs: LOOK_MS, timeoutMs, signal })
}
