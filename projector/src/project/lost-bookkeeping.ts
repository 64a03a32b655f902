import type { DamagedTables } from '../generations/damaged-tables.js'
import { ownerOf } from '../generations/generations.js'
import { projections } from '../projections/projections.js'
import { detachPart, readBookkeepingTables, readDamagedParts, readLostBookkeeping } from '../store/damage.js'
import { KEPT_WHEN_UNDONE } from '../store/event-table.js'
import { readPointers } from '../store/generation.js'
import type { Store } from '../store/operation.js'
import { announceAllChanged } from './data-changes.js'

/*
 * bookkeeping   the tables without generations. The service continues with what is left of them: steps without a
 *               checkpoint are repeated. Detached parts record the loss, until everything is projected again
 */

/** What is lost permanently with bookkeeping tables; all others are written again automatically. */
const LASTING: Readonly<Record<string, string>> = {
  dead_letter:
    'dead letters may be missing: gamenet rebuild start PROJECTION --from-log finds those that the log still has',
  dead_letter_decision: 'decisions about dead letters may be missing: such messages are dead letters again',
  damage: 'findings about damage may be missing: run gamenet verify --deep',
  log_gap: 'gaps that were accepted may no longer be listed',
  rebuild: 'rebuilds may be missing: check gamenet status, and discard the tables of that rebuild',
  generation_statement: 'what filled the tables of projections may be missing: rebuild the projections',
  generation_pointer:
    'the generation that is read was chosen by the records of rebuilds, or by an older row: rebuild the projections',
  ...Object.fromEntries(
    KEPT_WHEN_UNDONE.map((noun) => [`undone_${noun}`, 'answers about an instant before an undo may lack its events'])
  ),
  schema_migration: 'migrations may have been applied a second time'
}

/** A bookkeeping table with detached parts, and what that means; null if everything is written again. */
export type LostBookkeeping = { readonly table: string; readonly reason: string | null }

/**
 * Continues with what is left of the bookkeeping: lost changes count as a change of everything, and without late
 * batches, which no range contains, all read tables are computed again.
 */
export async function continueWithout(store: Store, damaged: DamagedTables): Promise<readonly LostBookkeeping[]> {
  const lost = await store.do(readLostBookkeeping)
  if (lost.includes('data_change'))
    await announceAllChanged(
      store,
      projections.map(({ name }) => name)
    )
  if (lost.includes('late_batch')) {
    const names = (await store.do(readPointers)).names('reads', projections.map(ownerOf))
    const tables = [...names.values()].filter((name) => name.includes('__') && !name.includes(':'))
    await damaged.mark(tables.map((name) => [name, 'late events may be missing, whose record was damaged'] as const))
  }
  return lost.map((table) => ({ table, reason: LASTING[table] ?? null }))
}

/** Detaches the damaged parts of all bookkeeping tables; returns whether there were any. */
export async function detachDamagedBookkeeping(store: Store): Promise<boolean> {
  let isDetached = false
  for (const table of await store.do(readBookkeepingTables))
    for (const part of await store.do(readDamagedParts, table)) {
      await store.do(detachPart, part)
      isDetached = true
    }
  return isDetached
}
