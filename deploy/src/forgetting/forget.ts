import type { ClickHouse, Postgres } from '@gamenet/engines'
import { SEAL_KEYS_KEPT_MS } from '@gamenet/projector'
import { nameKey, topics } from '@gamenet/schemas'
import type { ForgetProgress, ForgetReport } from '../operator/operations.js'
import { forgetInWrites, markDone, namesInWrites, PEOPLE_TABLES, readLedger, readSalt } from './ledger.js'
import { pause } from './pause.js'
import { cleanTables, eraseConditions, namesInTables } from './tables.js'

export type ForgetNeeds = {
  readonly writes: Postgres
  readonly tables: ClickHouse['control']
  /** Resolves when all that the log holds of these topics can be read; rejects with what stands still. */
  readonly settled: (topics: readonly string[]) => Promise<void>
  /** Told when the tables have changed. */
  readonly onChange: () => Promise<unknown>
  readonly onProgress: (progress: ForgetProgress) => void
  readonly signal: AbortSignal
  /** {@link SEAL_KEYS_KEPT_MS} unless given. */
  readonly keysKeptMs?: number
}

const PEOPLE_TOPICS = topics.filter((topic) => topic.people !== undefined).map((topic) => topic.name)

/**
 * Forgets a user. What a crash leaves undone is in the ledger, and {@link finishForgettings} takes it up again.
 *
 * Order: keys → what readers may still open → event tables and what is made of them → files. A row that is deleted does not
 * come back: behind the log's end at the time of deletion nothing of the person can be opened any more.
 */
export async function forget(needs: ForgetNeeds, username: string): Promise<ForgetReport> {
  const userKey = nameKey(username)
  needs.onProgress({ phase: 'keys', done: 0, total: 1 })
  const { nameHash, rows } = await forgetInWrites(needs.writes, userKey)
  await waitForReaders(needs)
  const rowsOfTables = await clean(needs, userKey)
  await finish(needs, [nameHash])
  return { wasKnown: rows + rowsOfTables > 0, rowsOfWrites: rows, rowsOfTables }
}

/**
 * Ends the forgettings of the ledger that are not done: cut off by a crash, or put there again beside an older state of
 * everything else.
 * @returns how many there were
 */
export async function finishForgettings(needs: ForgetNeeds): Promise<number> {
  const ledger = await readLedger(needs.writes)
  const open = ledger.filter(({ doneAt }) => doneAt === null).map(({ nameHash }) => nameHash)
  if (open.length === 0) return 0
  const { writes, tables, signal } = needs
  for (const userKey of await namesInWrites(writes, open)) await forgetInWrites(writes, userKey)
  await waitForReaders(needs)
  const names = await namesInTables({ tables, salt: await readSalt(writes), signal }, open)
  for (const { userKey } of names) await clean(needs, userKey)
  await finish(needs, open)
  return open.length
}

/** Readers of the log keep keys for a while; then nothing of the person is loaded any more. */
async function waitForReaders(needs: ForgetNeeds): Promise<void> {
  needs.onProgress({ phase: 'waiting', done: 0, total: 1 })
  await pause(needs.keysKeptMs ?? SEAL_KEYS_KEPT_MS, needs.signal)
  await needs.settled(PEOPLE_TOPICS)
}

async function clean(needs: ForgetNeeds, userKey: string): Promise<number> {
  const { tables, writes, signal } = needs
  const onTable = (done: number, total: number) => needs.onProgress({ phase: 'tables', done, total })
  const deleted = await cleanTables({ tables, salt: await readSalt(writes), onTable, signal }, userKey)
  await needs.onChange()
  return deleted
}

async function finish(needs: ForgetNeeds, nameHashes: readonly string[]): Promise<void> {
  needs.onProgress({ phase: 'files', done: 0, total: 1 })
  await eraseConditions(needs.tables)
  await needs.writes.erase(PEOPLE_TABLES)
  for (const nameHash of nameHashes) await markDone(needs.writes, nameHash)
}
