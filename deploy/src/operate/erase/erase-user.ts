import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClickHouse, Postgres } from '@gamenet/engines'
import { flushPath } from '@gamenet/engines/files'
import { readAppliedErasures, SEAL_KEY_CACHE_MS, type Store, storeAppliedErasures, storeOver } from '@gamenet/projector'
import { discardDeletions, readDetachedParts, readKnownFolders } from '@gamenet/projector/erasure'
import { errorCode, nameKey, pause, topics } from '@gamenet/schemas'
import { eraseRows, isKnownToTables, usersInTables } from '../../stores/erase-rows.js'
import {
  addToLedger,
  type Erasure,
  eraseFromWrites,
  isKnownToWrites,
  markDone,
  PEOPLE_TABLES,
  readLedger,
  readSalt,
  usersInWrites
} from '../../stores/ledger.js'
import type { ErasureProgress, ErasureReport } from './erasure-report.js'

export type EraseNeeds = {
  readonly writes: Postgres
  readonly tables: ClickHouse['control']
  /** Resolves when the tables contain everything that the log has of these topics; rejects with what is stalled. */
  readonly whenCaughtUp: (topics: readonly string[]) => Promise<void>
  /** Resolves when every running step that writes rows has ended. */
  readonly stepsEnded: () => Promise<void>
  /** Whether this process owns the files of the tables. */
  readonly ownsTables: boolean
  /** Called when the tables have changed. */
  readonly onChange: () => Promise<unknown>
  readonly onProgress: (progress: ErasureProgress) => void
  readonly signal: AbortSignal
  /** Default: {@link SEAL_KEY_CACHE_MS}. */
  readonly keyCacheMs?: number
  /** Longest wait for the files of replaced parts. Default: seven minutes. */
  readonly oldPartsMs?: number
}

const PEOPLE_TOPICS = topics.filter((topic) => topic.people !== undefined).map((topic) => topic.name)

/**
 * Erases a user. After a crash {@link finishErasures} continues from the ledger. A name that no table contains is
 * entered only with `anyway`, because it may be misspelt.
 *
 * Order: keys → wait for readers with cached keys → event tables and derived tables → files. A deleted row does not
 * come back: nothing in the log about the person can be decrypted any more.
 */
export async function eraseUser(needs: EraseNeeds, username: string, anyway = false): Promise<ErasureReport> {
  const { writes, tables } = needs
  const userKey = nameKey(username)
  const isKnown = (await isKnownToWrites(writes, userKey)) || (await isKnownToTables(storeOver(tables), userKey))
  if (!isKnown && !anyway) return { wasKnown: false, isEntered: false, rowsOfWrites: 0, rowsOfTables: 0 }
  needs.onProgress({ phase: 'keys', done: 0, total: 1 })
  const { nameHash, rows } = await eraseFromWrites(writes, userKey)
  await waitForReaders(needs)
  const rowsOfTables = await clean(needs, [userKey], [nameHash])
  return { wasKnown: rows + rowsOfTables > 0, isEntered: true, rowsOfWrites: rows, rowsOfTables }
}

/**
 * Completes the unfinished erasures of the ledger: interrupted by a crash, or merged into an older copy of the data.
 * @returns how many there were
 */
export async function finishErasures(needs: EraseNeeds): Promise<number> {
  const { writes, tables, signal } = needs
  const open = hashesOf((await readLedger(writes)).filter(({ doneAt }) => doneAt === null))
  if (open.length === 0) return 0
  for (const userKey of await usersInWrites(writes, open)) await eraseFromWrites(writes, userKey)
  await waitForReaders(needs)
  const userKeys = await usersInTables({ store: storeOver(tables), salt: await readSalt(writes), signal }, open)
  await clean(needs, userKeys, open)
  return open.length
}

export type ReapplyNeeds = Pick<
  EraseNeeds,
  'writes' | 'tables' | 'stepsEnded' | 'ownsTables' | 'signal' | 'oldPartsMs'
> & {
  /** Whether no other process reads the log; then pending erasures run at once, without a wait for readers. */
  readonly isOnlyReader: boolean
}

/**
 * Completes interrupted erasures, and repeats others after an older copy was restored. To be called before anything is
 * loaded or answered: a user who returned may have new rows, and only events loaded from here on bring them.
 *
 * PostgreSQL has the ledger, and the tables record the erasures applied to them. An entry that only the tables have
 * indicates an older PostgreSQL: it is entered again as pending. An entry that the tables lack indicates older tables:
 * their rows of the person are from before the erasure.
 * @returns the number of completed and of repeated erasures
 */
export async function reapplyMissingErasures(
  needs: ReapplyNeeds
): Promise<{ readonly completed: number; readonly repeated: number }> {
  const { writes, tables, isOnlyReader, signal } = needs
  const pending = hashesOf((await readLedger(writes)).filter(({ doneAt }) => doneAt === null))
  const cleaned = await storeOver(tables).do(readAppliedErasures)
  await addToLedger(writes, cleaned)
  const cleanedAt = new Map(cleaned.map(({ nameHash, erasedAtMs }) => [nameHash, erasedAtMs]))
  const due = (await readLedger(writes)).filter(({ nameHash, erasedAt, doneAt }) =>
    doneAt === null ? isOnlyReader : (cleanedAt.get(nameHash) ?? 0) < erasedAt.getTime()
  )
  if (due.length === 0) return { completed: 0, repeated: 0 }
  const all: EraseNeeds = {
    ...needs,
    whenCaughtUp: async () => undefined,
    onChange: async () => undefined,
    onProgress: () => undefined
  }
  // A returned user has new keys and profiles. They are kept if the ledger marks the erasure as done.
  const open = hashesOf(due.filter(({ doneAt }) => doneAt === null))
  for (const userKey of await usersInWrites(writes, open)) await eraseFromWrites(writes, userKey)
  const userKeys = await usersInTables(
    { store: storeOver(tables), salt: await readSalt(writes), signal },
    hashesOf(due)
  )
  await clean(all, userKeys, hashesOf(due))
  const completed = hashesOf(due).filter((nameHash) => pending.includes(nameHash)).length
  return { completed, repeated: due.length - completed }
}

const hashesOf = (erasures: readonly Erasure[]): string[] => erasures.map(({ nameHash }) => nameHash)

/** Readers of the log cache keys for a while; afterwards no event of the person is loaded. */
async function waitForReaders(needs: EraseNeeds): Promise<void> {
  needs.onProgress({ phase: 'waiting', done: 0, total: 1 })
  await pause(needs.keyCacheMs ?? SEAL_KEY_CACHE_MS, needs.signal)
  needs.signal.throwIfAborted()
  await needs.whenCaughtUp(PEOPLE_TOPICS)
}

/** Deletes the rows of these users, then records the erasures as done. */
async function clean(needs: EraseNeeds, userKeys: readonly string[], nameHashes: readonly string[]): Promise<number> {
  const { tables, writes, stepsEnded, ownsTables, signal, oldPartsMs } = needs
  const onTable = (done: number, total: number) => needs.onProgress({ phase: 'tables', done, total })
  const store = storeOver(tables)
  const salt = await readSalt(writes)
  const deleted = await eraseRows({ store, salt, stepsEnded, onTable, signal, oldPartsMs }, userKeys)
  await emptyDetachedParts(store, { ownsFiles: ownsTables })
  if (ownsTables) await removeUnknownTables(store)
  await needs.onChange()
  await finish(needs, nameHashes)
  return deleted
}

/** The tables record completion before the ledger does; a crash in between repeats the erasure. */
async function finish({ tables, writes, onProgress }: EraseNeeds, nameHashes: readonly string[]): Promise<void> {
  onProgress({ phase: 'files', done: 0, total: 1 })
  const store = storeOver(tables)
  await store.do(discardDeletions)
  await writes.erase(PEOPLE_TABLES)
  const done = (await readLedger(writes)).filter(({ nameHash }) => nameHashes.includes(nameHash))
  // An older copy of the tables lacks the record.
  await store.do(
    storeAppliedErasures,
    done.map(({ nameHash, erasedAt }) => ({ nameHash, erasedAtMs: erasedAt.getTime() }))
  )
  for (const { nameHash } of done.filter(({ doneAt }) => doneAt === null)) await markDone(writes, nameHash)
}

/**
 * Removes the rows of all detached parts, which no statement reads; throws if this process does not own their files.
 * Their empty folders stay: they record that a table has lost rows.
 */
export async function emptyDetachedParts(store: Store, { ownsFiles }: { readonly ownsFiles: boolean }): Promise<void> {
  const detached = await store.do(readDetachedParts)
  if (!ownsFiles && detached.length > 0) {
    const parts = detached.map(({ table, part }) => `${table}/${part}`).join(', ')
    throw new Error(`detached parts may contain rows of the person: drop them, and start again: ${parts}`)
  }
  for (const { path } of detached) {
    for (const file of await readdir(path).catch(noneIfMissing))
      await rm(join(path, file), { recursive: true, force: true })
    await flushPath(path).catch(noneIfMissing)
  }
}

/**
 * Removes the files of tables that the engine does not know: their definitions were deleted by hand. Folders that
 * changed since this process started may belong to a table that is being created.
 */
export async function removeUnknownTables(store: Store): Promise<void> {
  const { root, folders } = await store.do(readKnownFolders)
  for (const group of await readdir(join(root, 'store'), { withFileTypes: true })) {
    if (!group.isDirectory()) continue
    for (const name of await readdir(join(root, 'store', group.name))) {
      const folder = join(root, 'store', group.name, name)
      if (folders.has(name) || (await stat(folder)).mtimeMs >= performance.timeOrigin) continue
      await rm(folder, { recursive: true })
    }
  }
}

/** A repair may drop the part meanwhile. */
function noneIfMissing(error: unknown): never[] {
  if (errorCode(error) === 'ENOENT') return []
  throw error
}
