import { anyProjections } from './newer-program.js'
import type { ReplacingTable, Row } from './replacing-table.js'
import type { TableSet } from './table-set.js'

/*
 * Answers the queries of `verify`: the rows of a table, by key and content. The statements' own hashes are tested on the
 * real engine.
 */

/** Columns that only decide which of two rows counts. */
const VERSIONS: Readonly<Record<string, readonly string[]>> = {
  position: ['title_count', 'title_count_hour', 'leaderboard', 'import_run', 'import_retraction'],
  revision: ['rating']
}

/** Its key, and one column for all the rest. */
export function shapeOf({ definition }: ReplacingTable): Row[] {
  const column = (name: string, isKey: number) => ({ name, type: 'String', isKey, engine: 'ReplacingMergeTree' })
  return [...definition.key.map((name) => column(name, 1)), column('everything', 0)]
}

export function hashesOf(store: TableSet, sql: string): Row[] {
  const [side] = sidesIn(sql)
  if (side === undefined) throw new Error(`The simulated tables find no table in this comparison: ${sql}`)
  const buckets = new Map<number, string[]>()
  for (const [key, text] of contentOf(store, side)) {
    const bucket = bucketOf(key, side.buckets)
    buckets.set(bucket, [...(buckets.get(bucket) ?? []), text])
  }
  return [...buckets].map(([bucket, texts]) => {
    return { bucket: String(bucket), rows: String(texts.length), hash: texts.sort().join('\n') }
  })
}

export function differencesIn(store: TableSet, sql: string, buckets: readonly number[]): Row[] {
  const [live, fresh] = sidesIn(sql).map((side) => ({ side, content: contentOf(store, side) }))
  if (live === undefined || fresh === undefined) throw new Error(`A comparison has two sides: ${sql}`)
  const keys = new Set([...live.content.keys(), ...fresh.content.keys()])
  const differing = [...keys].filter(
    (key) => buckets.includes(bucketOf(key, live.side.buckets)) && live.content.get(key) !== fresh.content.get(key)
  )
  return [{ differences: String(differing.length) }]
}

type Side = { readonly table: string; readonly buckets: number; readonly isVoid: (row: Row) => boolean }

function sidesIn(sql: string): Side[] {
  const buckets = Number(/% (\d+)/.exec(sql)?.[1])
  return [...sql.matchAll(/FROM (\w+) AS r FINAL/g)].map(([, table = '']) => ({
    table,
    buckets,
    isVoid: voidIn(sql)
  }))
}

const UNCOMPARED = anyProjections.flatMap(({ voids }) => Object.values(voids ?? {}))

/** The condition on rows that neither side need have. */
function voidIn(sql: string): Side['isVoid'] {
  if (sql.includes('NOT (false)')) return () => false
  if (UNCOMPARED.some((condition) => sql.includes(`NOT (${condition})`)))
    return (row) => row.is_change !== true && row.previous_rank === null && row.new_rank === null
  if (sql.includes('NOT (true)')) return () => true
  const within = [...sql.matchAll(/r\.epoch = (\d+) AND r\.partition = (\d+) AND r\.offset < (\d+)/g)]
  if (within.length === 0) throw new Error(`The simulated tables do not know the condition of this comparison: ${sql}`)
  return (row) =>
    !within.some(
      ([, epoch, partition, next]) =>
        Number(epoch) === row.epoch && Number(partition) === row.partition && Number(row.offset) < Number(next)
    )
}

function contentOf(store: TableSet, { table, isVoid }: Side): Map<string, string> {
  const written = store.written(table)
  const rows = written.final().filter((row) => !isVoid(row))
  return new Map(rows.map((row) => [written.keyOf(row), textOf(table, row)]))
}

function textOf(table: string, row: Row): string {
  const isVersion = (column: string) =>
    column === 'version' || (VERSIONS[column] ?? []).some((name) => table === name || table.startsWith(`${name}__`))
  const entries = Object.entries(row).filter(([column]) => !isVersion(column))
  return JSON.stringify(entries.sort(), (_, value) => (typeof value === 'bigint' ? String(value) : value))
}

function bucketOf(key: string, buckets: number): number {
  const hash = [...key].reduce((sum, character) => Math.imul(sum, 31) + character.charCodeAt(0), 7) >>> 0
  return hash % buckets
}
