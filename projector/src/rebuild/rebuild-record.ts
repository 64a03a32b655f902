import { z } from 'zod'
import type { Store } from '../store/operation.js'
import { readRebuildRecords, storeRebuildRecord } from '../store/rebuild.js'
import { RebuildState, Verification } from './rebuild.js'

const Place = z.object({ epoch: z.int(), partition: z.int(), next: z.int() })

/** What is kept of a rebuild. How far its tables are filled stands among the checkpoints. */
export const RebuildRecord = z.object({
  id: z.int(),
  projection: z.string(),
  unit: z.array(z.string()),
  /** Of every table that the unit writes, the one that answers do not read: its own, after a swap the one that they read before. */
  tables: z.record(z.string(), z.string()),
  /** The generations of these tables, by owner; those that are missing have the number of the rebuild. */
  generations: z.record(z.string(), z.int()).default({}),
  /** What else belongs to it: dead letters of a load from the log, a view that ends at an instant. */
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
  /** The projections of the unit that make these tables. */
  definitions: z.record(z.string(), z.string()),
  /** During a swap: what answers read before it, as above. */
  replaces: z
    .object({
      tables: z.record(z.string(), z.string()),
      generations: z.record(z.string(), z.int()),
      definitions: z.record(z.string(), z.string())
    })
    .nullable()
    .default(null),
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
