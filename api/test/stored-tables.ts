import { readdir, readFile } from 'node:fs/promises'
import type { ClickHouse } from '@gamenet/engines'
import { newestSamples, type Rollup, rollupsOf, type Sample, sharedClickHouse } from '@gamenet/engines/testing'
import { generationName } from '@gamenet/schemas'
import tap from 'tap'
import { type Catalog, catalogOf, type NewestCount, type TitleFact } from '../src/queries/catalog.js'
import { DAY_MS, HOUR_MS } from './plain-counts.js'

/* The real engine with the real tables, filled by hand: rollups are computed plainly instead of by projections. */

const MIGRATIONS = new URL('../../../projector/migrations/', import.meta.url)

export type StoredTables = {
  readonly clickhouse: ClickHouse
  /** Empties tables. */
  empty(tables: readonly string[]): Promise<void>
  /** Empties the tables of counts. */
  clear(): Promise<void>
  /**
   * Stores counts of the network by metric. Later facts of an instant correct earlier ones; both rows stay unmerged, as
   * do former rows of rollups.
   */
  storeNetwork(facts: readonly Sample[]): Promise<void>
  /** The same for titles, by id. */
  storeTitles(facts: readonly Sample[]): Promise<void>
  /** Default: generation 0. */
  insert(
    table: string,
    columns: readonly string[],
    rows: readonly (readonly unknown[])[],
    generation?: number
  ): Promise<void>
  /** Inserts rows that all have the same columns. */
  insertRows(table: string, rows: readonly Readonly<Record<string, unknown>>[]): Promise<void>
}

type Stores = Pick<StoredTables, 'insert' | 'insertRows'>

const onShared = () => sharedClickHouse(tap)
const opened = new Map<() => Promise<ClickHouse>, Promise<ClickHouse>>()

/** Empty tables for a test. The tests of a process share one database for each way to open it. */
export async function openStoredTables(open = onShared): Promise<StoredTables> {
  const opening = opened.get(open) ?? open().then(openSchema)
  opened.set(open, opening)
  const clickhouse = await opening
  const filled = await clickhouse.control.rows(
    'SELECT t.name AS name FROM system.tables AS t WHERE t.database = currentDatabase() AND t.total_rows > 0'
  )
  for (const { name } of filled) await clickhouse.loader.execute(`TRUNCATE TABLE ${name}`)
  const insert: StoredTables['insert'] = async (table, columns, rows, generation = 0) => {
    if (rows.length === 0) return
    const body = rows.map((row) => JSON.stringify(row)).join('\n')
    await clickhouse.loader.insert(generationName(table, generation), columns, new TextEncoder().encode(`${body}\n`))
  }
  const empty: StoredTables['empty'] = async (tables) => {
    for (const table of tables) await clickhouse.loader.execute(`TRUNCATE TABLE ${generationName(table, 0)}`)
  }
  const insertRows: StoredTables['insertRows'] = (table, rows) =>
    insert(table, Object.keys(rows[0] ?? {}), rows.map(Object.values))
  return {
    clickhouse,
    insert,
    insertRows,
    empty,
    clear: () => empty(COUNT_TABLES),
    storeNetwork: (facts) => storeCounts({ insert, insertRows }, NETWORK, facts),
    storeTitles: (facts) => storeCounts({ insert, insertRows }, TITLES, facts)
  }
}

async function openSchema(clickhouse: ClickHouse): Promise<ClickHouse> {
  for (const file of (await readdir(MIGRATIONS)).sort()) {
    const text = (await readFile(new URL(file, MIGRATIONS), 'utf8')).replaceAll(/--.*$/gm, '').replaceAll('__*', '__0')
    const columns = new Map<string, string>()
    for (const statement of text.split(/;$/m)) {
      const [, name, list = ''] = /^\s*COLUMNS (\w+)\s+(.*)$/s.exec(statement) ?? []
      if (name !== undefined) columns.set(name, list)
      else if (statement.trim() !== '')
        await clickhouse.loader.execute(statement.replace(/\{(\w+)\}/g, (_, each) => columns.get(each) ?? ''))
    }
  }
  const tables = await clickhouse.control.rows(
    "SELECT t.name AS name FROM system.tables AS t WHERE t.database = currentDatabase() AND t.engine LIKE '%MergeTree'"
  )
  // Those of other databases go on.
  for (const { name } of tables) await clickhouse.loader.execute(`SYSTEM STOP MERGES ${name}`)
  return clickhouse
}

const COUNT_TABLES = [
  'network_count',
  'network_count_hour',
  'title_count',
  'title_count_hour',
  'title_count_day',
  'title_latest'
]

/** A table of counts, and the columns of its rollups. */
type CountTable = {
  readonly table: string
  readonly key: string
  readonly value: string
  readonly rollups: readonly { readonly name: string; readonly widthMs: number; row(rollup: Rollup): object }[]
}

const NETWORK: CountTable = {
  table: 'network_count',
  key: 'metric',
  value: 'value',
  rollups: [
    {
      name: 'hour',
      widthMs: HOUR_MS,
      row: (h) => ({ hour: time(h.fromMs).slice(0, 19), last: h.last, last_at: time(h.lastAtMs) })
    }
  ]
}

const TITLES: CountTable = {
  table: 'title_count',
  key: 'title_id',
  value: 'online',
  rollups: [
    { name: 'hour', widthMs: HOUR_MS, row: (h) => ({ hour: time(h.fromMs).slice(0, 19) }) },
    {
      name: 'day',
      widthMs: DAY_MS,
      row: (d) => ({ day: time(d.fromMs).slice(0, 10), active_hours: d.activeHours })
    }
  ]
}

async function storeCounts({ insert, insertRows }: Stores, counts: CountTable, facts: readonly Sample[]) {
  const half = Math.ceil(facts.length / 2)
  const columns = [counts.key, 'ts', counts.value, 'position']
  const rows = facts.map(({ key, ms, value }, n) => [key, time(ms), value, n + 1])
  await insert(counts.table, columns, rows.slice(0, half))
  // The second insert repeats the last fact of the first one, as a repeated delivery does.
  await insert(counts.table, columns, rows.slice(Math.max(0, half - 1)))
  for (const [at, upTo] of [half, facts.length].entries()) {
    const samples = newestSamples(facts.slice(0, upTo))
    for (const { name, widthMs, row } of counts.rollups) {
      await insertRows(
        `${counts.table}_${name}`,
        rollupsOf(samples, widthMs).map((rollup) => ({
          [counts.key]: rollup.key,
          ...row(rollup),
          ...{ min: rollup.min, max: rollup.max, max_at: time(rollup.maxAtMs), sum: String(rollup.sum) },
          ...{ samples: rollup.samples, position: at + 1 }
        }))
      )
    }
  }
}

/** `YYYY-MM-DD HH:MM:SS.mmm` */
export function time(ms: number): string {
  return new Date(ms).toISOString().slice(0, 23).replace('T', ' ')
}

/** A catalog of titles that are only named, `{ id: name }`, and of others that are only counted. */
export function catalogNaming(names: Readonly<Record<string, string>>, counted: readonly string[] = []): Catalog {
  const facts: TitleFact[] = Object.entries(names).map(([titleId, name]) => ({
    titleId,
    field: 'name',
    value: name
  }))
  const counts: NewestCount[] = counted.map((titleId) => ({ titleId, countedAtMs: 0 }))
  return catalogOf(facts, counts)
}
