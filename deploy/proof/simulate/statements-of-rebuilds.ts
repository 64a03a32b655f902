import type { Row } from './replacing-table.js'
import { baseName } from './statement-names.js'
import type { Seen, TableSet } from './table-set.js'
import { differencesIn, hashesOf, shapeOf } from './verified-tables.js'

export type Parameters = Readonly<Record<string, unknown>>
/** What a statement is answered: of the tables as it names them, of all there are, or of what it says itself. */
export type Answer = (seen: Seen, parameters: Parameters, store: TableSet, sql: string) => Row[]

const ROOM_BYTES = 2 ** 40

/** Queries of rebuilds to the engine, by the beginning of the statement; and comparisons, with hashes that differ from the engine's. */
export const rebuildAnswers: readonly (readonly [string, Answer])[] = [
  ['SELECT p.table AS table, sum(p.rows) AS rows', () => []],
  // No simulated part is damaged.
  ['SELECT d.table AS table, d.name AS part FROM system.detached_parts', () => []],
  [
    'SELECT d.unreserved_space AS free, d.total_space AS size FROM system.disks',
    (_, __, { machine }) => [{ free: String(machine.isFull() ? 0 : ROOM_BYTES), size: String(2 * ROOM_BYTES) }]
  ],
  [
    'SELECT DISTINCT p.partition_id AS id FROM system.parts',
    (_, { source }, store) => (store.written(String(source)).rows.length === 0 ? [] : [{ id: 'all' }])
  ],
  [
    'SELECT t.name AS name, if(t.uuid = ',
    (_, { names }, store) =>
      (names as string[]).filter((name) => store.has(name)).map((name) => ({ name, uuid: store.written(name).uuid }))
  ],
  [
    "SELECT t.name AS name, dateDiff('hour', t.metadata_modification_time, now()) AS hours FROM system.tables",
    (_, __, { names }) => names.filter((name) => baseName(name) !== name).map((name) => ({ name, hours: '0' }))
  ],
  ['SELECT argMax(o.process, o.seen_at) AS process', ownerOf],
  ['SELECT count() AS rows FROM', (_, __, store, sql) => [{ rows: String(store.table(lastName(sql)).rows.length) }]],
  [
    'SELECT c.name AS name, c.type AS type, c.is_in_sorting_key AS isKey',
    (_, { table }, store) => shapeOf(store.written(String(table)))
  ],
  ['SELECT b.bucket AS bucket, count() AS rows', (_, __, store, sql) => hashesOf(store, sql)],
  [
    'SELECT count() AS differences FROM',
    (_, { buckets }, store, sql) => differencesIn(store, sql, buckets as number[])
  ],
  // Rows that differ are counted, not shown.
  ['SELECT r.', () => []]
]

function ownerOf(seen: Seen, { id }: Parameters, { machine }: TableSet): Row[] {
  const owners = seen.table('rebuild_owner').rows.filter((row) => row.id === id)
  const [newest] = owners.toSorted((a, b) => Number(b.seen_at) - Number(a.seen_at))
  const age = machine.nowMs() - Number(newest?.seen_at ?? 0)
  return [{ process: newest?.process ?? '', age: String(age), owners: String(owners.length) }]
}

function lastName(sql: string): string {
  return /FROM (\w+)\s*$/.exec(sql)?.[1] ?? baseName(sql)
}
