import type { Topic } from '@gamenet/schemas'
import {
  type BucketHash,
  countDifferences,
  countRows,
  type LeftOut,
  readDifferingRows,
  readEventsOf,
  readHashes,
  readSamples,
  readShape,
  type Sides
} from '../store/comparison.js'
import type { Store, TableNames } from '../store/operation.js'
import { type Projection, tablesOf } from '../store/projection.js'
import type { Difference, VerifyReport } from './contract.js'

/** Differences that are listed; all are counted. */
const LISTED_MAX = 50
const SAMPLES = 3
const EVENTS_LISTED = 10
/** Approximate rows per bucket; the rows of some buckets are in memory while they are compared one by one. */
const BUCKET_ROWS = 50_000
const BUCKETS_MAX = 4096
/** Buckets compared row by row at once: each comparison reads both tables as a whole. */
export const BUCKETS_AT_ONCE = 10

/** A compared table, and the topic of its events. */
export type Compared = { readonly table: string; readonly from: Topic; readonly leftOut: LeftOut }

/** Returns the tables that projections write, without their void rows. */
export function comparedOf(unit: readonly Projection[]): Compared[] {
  return unit.flatMap((projection) =>
    tablesOf(projection).map((table) => {
      const condition = projection.voids?.[table]
      return { table, from: projection.from, leftOut: condition === undefined ? undefined : { condition } }
    })
  )
}

/**
 * Compares live tables with rebuilt ones while nothing writes to them: the count of rows and a hash without their order
 * per bucket of keys, then the rows of different buckets one by one. Memory: the rows of {@link BUCKETS_AT_ONCE}
 * buckets.
 */
export async function compareTables(
  store: Store,
  compared: readonly Compared[],
  { live, fresh, signal }: { readonly live: TableNames; readonly fresh: TableNames; readonly signal: AbortSignal }
): Promise<Omit<VerifyReport, 'id' | 'until' | 'isEqual'>> {
  const reports: VerifyReport['tables'] = []
  const differences: Difference[] = []
  const samples: VerifyReport['samples'] = []
  for (const { table, from, leftOut } of compared) {
    signal.throwIfAborted()
    const [liveTable, freshTable] = [live.get(table) ?? table, fresh.get(table) ?? table]
    const shape = await store.do(readShape, freshTable)
    const buckets = bucketsFor(await store.do(countRows, liveTable))
    const like = { shape, leftOut, buckets }
    const sides: Sides = { live: { table: liveTable, ...like }, fresh: { table: freshTable, ...like } }
    const { liveHashes, freshHashes, numbers, different } = await compareBuckets(store, sides)
    const found = await differencesOf(store, sides, different, LISTED_MAX - differences.length, signal)
    for (const each of found.listed) {
      const { key, liveRow, freshRow } = each
      const columns = shape.values.filter(
        (column) => JSON.stringify(liveRow?.[column]) !== JSON.stringify(freshRow?.[column])
      )
      const events = await store.do(readEventsOf, from, key, EVENTS_LISTED)
      differences.push({ table, key, live: liveRow, fresh: freshRow, columns, events })
    }
    reports.push({
      table,
      liveRows: rowsOf(liveHashes),
      freshRows: rowsOf(freshHashes),
      buckets: numbers.size,
      differentBuckets: different.length,
      differences: found.count
    })
    for (const row of await store.do(readSamples, sides.fresh, different, SAMPLES)) samples.push({ table, row })
  }
  return { tables: reports, differences, samples }
}

/** Returns the hashes of the buckets of both sides, and the numbers of those that differ. */
export async function compareBuckets(store: Store, sides: Sides) {
  const [liveHashes, freshHashes] = [await store.do(readHashes, sides.live), await store.do(readHashes, sides.fresh)]
  const numbers = new Set([...liveHashes.keys(), ...freshHashes.keys()])
  const different = [...numbers].filter((n) => liveHashes.get(n)?.hash !== freshHashes.get(n)?.hash)
  return { liveHashes, freshHashes, numbers, different }
}

function rowsOf(hashes: ReadonlyMap<number, BucketHash>): number {
  return [...hashes.values()].reduce((sum, { rows }) => sum + rows, 0)
}

/** Returns the number of buckets for the comparison of tables of so many rows. */
export const bucketsFor = (rows: number): number => Math.min(BUCKETS_MAX, Math.max(16, Math.ceil(rows / BUCKET_ROWS)))

type RowDifference = {
  readonly key: Record<string, unknown>
  readonly liveRow: Record<string, unknown> | null
  readonly freshRow: Record<string, unknown> | null
}

/** Counts the keys whose rows differ or are missing on one side; returns `listedMax` of them with both rows. */
async function differencesOf(
  store: Store,
  sides: Sides,
  different: readonly number[],
  listedMax: number,
  signal: AbortSignal
): Promise<{ readonly count: number; readonly listed: readonly RowDifference[] }> {
  const { key } = sides.live.shape
  let count = 0
  const listed: RowDifference[] = []
  for (let first = 0; first < different.length; first += BUCKETS_AT_ONCE) {
    signal.throwIfAborted()
    const buckets = different.slice(first, first + BUCKETS_AT_ONCE)
    count += await store.do(countDifferences, sides, buckets)
    const limit = listedMax - listed.length
    if (limit <= 0) continue
    const [liveRows, freshRows] = [
      await store.do(readDifferingRows, sides, 'live', { buckets, limit }),
      await store.do(readDifferingRows, sides, 'fresh', { buckets, limit })
    ]
    for (const id of [...new Set([...liveRows.keys(), ...freshRows.keys()])].sort()) {
      const [liveRow, freshRow] = [liveRows.get(id) ?? null, freshRows.get(id) ?? null]
      const known = liveRow ?? freshRow ?? {}
      listed.push({ key: Object.fromEntries(key.map((column) => [column, known[column]])), liveRow, freshRow })
    }
  }
  return { count, listed }
}
