import {
  attachPartition,
  countDifferences,
  countRows,
  createEventView,
  createTable,
  dropTable,
  type LeftOut,
  readDifferingRows,
  readDisks,
  readHashes,
  readPartitions,
  readSamples,
  readShape,
  readSizes,
  readTablesOfRebuilds,
  type Side
} from '@gamenet/projector/internals'
import { anyProjections } from '../tables/newer-program.js'
import type { ReplacingTable, Row } from '../tables/replacing-table.js'
import { baseName } from '../tables/table-set.js'
import { always, changingWhole, type Implementation, reading, type Seen } from './implementation.js'

/*
 * The tables themselves, and comparisons of two of them by key and content. The engine's own hashes are tested on the engine.
 */

const DISK_BYTES = 2 ** 40

export const tables: readonly Implementation[] = [
  changingWhole(createTable, ({ tables }, name, like) => {
    if (!tables.has(name)) tables.create(name, like)
  }),
  changingWhole(createEventView, ({ tables }, name, table, beforeMs) => tables.createView(name, table, beforeMs)),
  changingWhole(dropTable, ({ tables }, name) => tables.drop(name), { freesSpace: true }),
  changingWhole(attachPartition, ({ tables }, name, from) => tables.written(name).insert(tables.table(from).rows)),
  reading(readPartitions, ({ tables }, name) => (tables.written(name).rows.length === 0 ? [] : ['all']), always),
  reading(
    readTablesOfRebuilds,
    ({ tables }) => tables.names.filter((name) => baseName(name) !== name).map((name) => ({ name, hours: 0 })),
    always
  ),
  reading(readSizes, (_, names) => new Map(names.map((name) => [name, { rows: 0, bytes: 0 }])), always),
  reading(readDisks, ({ machine }) => [{ free: machine.isFull() ? 0 : DISK_BYTES, size: 2 * DISK_BYTES }], always),

  reading(
    readShape,
    ({ tables }, table) => ({ key: tables.written(table).definition.key, values: ['everything'], hash: '' }),
    always
  ),
  reading(countRows, ({ tables }, table) => tables.table(table).rows.length, always),
  reading(
    readHashes,
    (seen, side) => {
      const buckets = new Map<number, string[]>()
      for (const [key, text] of contentOf(seen, side)) {
        const bucket = bucketOf(key, side.buckets)
        buckets.set(bucket, [...(buckets.get(bucket) ?? []), text])
      }
      return new Map(
        [...buckets].map(([bucket, texts]) => [bucket, { rows: texts.length, hash: texts.sort().join('\n') }])
      )
    },
    always
  ),
  reading(
    countDifferences,
    (seen, sides, buckets) => {
      const [live, fresh] = [contentOf(seen, sides.live), contentOf(seen, sides.fresh)]
      const isIn = (key: string) => buckets.includes(bucketOf(key, sides.live.buckets))
      const keys = new Set([...live.keys(), ...fresh.keys()])
      return [...keys].filter((key) => isIn(key) && live.get(key) !== fresh.get(key)).length
    },
    always
  ),
  // Rows that differ are counted, not shown.
  reading(readDifferingRows, () => new Map(), always),
  reading(readSamples, () => [], always)
]

/** Columns that only decide between two rows of a key. */
const VERSIONS: Readonly<Record<string, readonly string[]>> = {
  position: ['title_count', 'title_count_hour', 'leaderboard', 'import_run', 'import_retraction'],
  revision: ['rating']
}

const VOIDS: ReadonlySet<string> = new Set(anyProjections.flatMap(({ voids }) => Object.values(voids ?? {})))

/** Whether a row is excluded from the comparison. */
function isLeftOut(leftOut: LeftOut, row: Row): boolean {
  if (leftOut === undefined) return false
  if ('beyond' in leftOut)
    return !leftOut.beyond.some(
      ({ epoch, partition, next }) => epoch === row.epoch && partition === row.partition && Number(row.offset) < next
    )
  if (!VOIDS.has(leftOut.condition)) throw new Error(`The simulator does not know the condition ${leftOut.condition}.`)
  return row.is_change !== true && row.previous_rank === null && row.new_rank === null
}

function contentOf(seen: Seen, { table, leftOut }: Side): Map<string, string> {
  const written: ReplacingTable = seen.tables.written(table)
  const rows = written.final().filter((row) => !isLeftOut(leftOut, row))
  return new Map(rows.map((row) => [written.keyOf(row), textOf(table, row)]))
}

function textOf(table: string, row: Row): string {
  const isVersion = (column: string) => column === 'version' || VERSIONS[column]?.includes(baseName(table)) === true
  const entries = Object.entries(row).filter(([column]) => !isVersion(column))
  return JSON.stringify(entries.sort(), (_, value) => (typeof value === 'bigint' ? String(value) : value))
}

function bucketOf(key: string, buckets: number): number {
  const hash = [...key].reduce((sum, character) => Math.imul(sum, 31) + character.charCodeAt(0), 7) >>> 0
  return hash % buckets
}
