import { z } from 'zod'
import type { Store } from '../store/operation.js'
import { readRebuildRecords, storeRebuildRecord } from '../store/rebuild.js'
import { RebuildState, Verification } from './rebuild.js'

const Place = z.object({ epoch: z.int(), partition: z.int(), next: z.int() })

/** What is kept of a rebuild. How far its tables are filled stands in its own table of checkpoints. */
export const RebuildRecord = z.object({
  id: z.int(),
  projection: z.string(),
  unit: z.array(z.string()),
  /** Live table → the one that stands for it, of every table that the unit writes. */
  tables: z.record(z.string(), z.string()),
  /** What else belongs to it: its checkpoints, a view that ends at an instant. */
  helpers: z.record(z.string(), z.string()),
  state: RebuildState,
  reason: z.string().nullable(),
  until: z.string().nullable(),
  isFromLog: z.boolean(),
  /** The import that it takes back, for which it was begun; it is swapped in by itself. */
  retracts: z.string().nullable(),
  startedAt: z.string(),
  changedAt: z.string(),
  /** Where the fill ends; of each topic, its partitions. */
  target: z.record(z.string(), z.array(Place)),
  /** Events of the fill, by projection. */
  events: z.record(z.string(), z.int()),
  /** Slices of the keys, of each projection that is filled by keys. */
  slices: z.record(z.string(), z.int()),
  /** Seconds that an event costs, by projection, as a sample told before. */
  costs: z.record(z.string(), z.number()),
  verification: Verification.nullable(),
  /** The projections of the unit by which the tables are made that do not serve. */
  definitions: z.record(z.string(), z.string()),
  /** While tables are swapped: which tables served before, and by which projections they are made. */
  exchange: z
    .object({ uuids: z.record(z.string(), z.string()), definitions: z.record(z.string(), z.string()) })
    .nullable(),
  version: z.int()
})
export type RebuildRecord = z.infer<typeof RebuildRecord>

/** All of them, the newest first. */
export async function readRebuilds(store: Store): Promise<RebuildRecord[]> {
  return (await store.do(readRebuildRecords)).map((record) => RebuildRecord.parse(JSON.parse(record)))
}

/** Of two who change the same record at a time the operator counts, not the fill, and who did it, not who takes it for not done. */
const WEIGHTS = { fill: 1, recovery: 1, operator: 2 }

/** Keeps a change of a record; gives the record as it is now. */
export async function storeRebuild(
  store: Store,
  record: RebuildRecord,
  change: Partial<RebuildRecord>,
  by: keyof typeof WEIGHTS = 'operator'
): Promise<RebuildRecord> {
  const next = { ...record, ...change, changedAt: new Date().toISOString(), version: record.version + WEIGHTS[by] }
  await store.do(storeRebuildRecord, next.id, next.version, JSON.stringify(next))
  return next
}
