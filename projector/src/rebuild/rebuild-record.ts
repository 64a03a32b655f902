import { z } from 'zod'
import type { Store } from '../store/operation.js'
import { readRebuildRecords, storeRebuildRecord } from '../store/rebuild.js'
import { RebuildStatus } from './contract.js'
import { requireChange } from './states.js'

const Place = z.object({ epoch: z.int(), partition: z.int(), next: z.int() })

/** A generation of the tables of a topic or of a projection. */
const OwnedGeneration = z.object({ owner: z.string(), tables: z.array(z.string()), generation: z.int() })

/** The stored state of a rebuild. The progress of its fill is stored as checkpoints. */
export const RebuildRecord = RebuildStatus.omit({ tables: true, progress: true }).extend({
  unit: z.array(z.string()),
  /**
   * The generations that answers do not read, of the topic that is loaded from the log, if any, then of the unit: the
   * rebuild's own; after a swap the former ones.
   */
  waiting: z.array(OwnedGeneration),
  /** Further tables: dead letters of a load from the log, a view that ends at an instant. */
  helpers: z.record(z.string(), z.string()),
  /** Where the fill ends, by topic and partition. */
  target: z.record(z.string(), z.array(Place)),
  /** Events of the fill, by projection. */
  events: z.record(z.string(), z.int()),
  /**
   * The cuts of each projection that is filled by slices of keys. An erasure does not reach them: no key is a person's.
   */
  cuts: z.record(z.string(), z.array(z.array(z.string().or(z.number())).readonly()).readonly()),
  /** Seconds per event, by projection, as measured on a sample. */
  costs: z.record(z.string(), z.number()),
  /** During a swap: the generations that answers read before it. */
  replaces: z.array(OwnedGeneration).nullable(),
  version: z.int()
})
export type RebuildRecord = z.infer<typeof RebuildRecord>

/** Reads all rebuilds, the newest first. */
export async function readRebuilds(store: Store): Promise<RebuildRecord[]> {
  return (await store.do(readRebuildRecords)).map((record) => RebuildRecord.parse(JSON.parse(record)))
}

/**
 * Of two concurrent changes, an operator's wins over a fill's, a completed swap over one that was set back, and the
 * begin of the swap of one key, which no operator requests, over an operator's: the pointers move next.
 */
const WEIGHTS = { fill: 1, recovery: 1, operator: 2, key: 3 }

/** Stores a change of a record; returns the new record. */
export async function storeRebuild(
  store: Store,
  record: RebuildRecord,
  change: Partial<RebuildRecord>,
  by: keyof typeof WEIGHTS = 'operator'
): Promise<RebuildRecord> {
  requireChange(record.state, change.state ?? record.state)
  const next = { ...record, ...change, changedAt: new Date().toISOString(), version: record.version + WEIGHTS[by] }
  await store.do(storeRebuildRecord, next.id, next.version, JSON.stringify(next))
  return next
}
