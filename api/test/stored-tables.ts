import { readFile } from 'node:fs/promises'
import { type ClickHouse, openChdb } from '@gamenet/engines'
import { generationName, nameKey } from '@gamenet/schemas'
import tap from 'tap'
import { type Catalog, catalogOf, type NewestCount, type TitleFact } from '../src/queries/catalog.js'
import { type Fact, foldOf, hoursOf, titleDaysOf } from './plain-counts.js'

/*
 * The real engine with the real tables, filled by hand: rollups are the projections' work in the product, here the
 * plain computation makes them.
 */

/** What the migrations make, as a test of the projector proves. */
const SCHEMA = new URL('../../../projector/schema.sql', import.meta.url)

export type StoredTables = {
  readonly clickhouse: ClickHouse
  /** Empties tables. */
  empty(tables: readonly string[]): Promise<void>
  /** Empties the tables of counts. */
  clear(): Promise<void>
  /**
   * Stores counts of the network by metric. Later facts of an instant correct earlier ones; both rows stay unmerged,
   * rollups as they were half way too.
   */
  storeNetwork(facts: readonly Fact[]): Promise<void>
  /** The same of titles, by id. */
  storeTitles(facts: readonly Fact[]): Promise<void>
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

let opened: Promise<ClickHouse> | undefined

/** Empty tables for a test. The tests of a file share one engine, because its start costs 300 ms of processor time. */
export async function openStoredTables(): Promise<StoredTables> {
  opened ??= openSchema()
  const clickhouse = await opened
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
    storeNetwork: (facts) => storeNetwork({ insert, insertRows }, facts),
    storeTitles: (facts) => storeTitles({ insert, insertRows }, facts)
  }
}

async function openSchema(): Promise<ClickHouse> {
  const clickhouse = await openChdb({ path: tap.testdir() })
  tap.teardown(() => clickhouse.close())
  for (const statement of (await readFile(SCHEMA, 'utf8')).split(/;$/m)) {
    if (statement.trim() !== '') await clickhouse.loader.execute(statement)
  }
  await clickhouse.loader.execute('SYSTEM STOP MERGES')
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

async function storeNetwork({ insert, insertRows }: Stores, facts: readonly Fact[]): Promise<void> {
  const half = Math.ceil(facts.length / 2)
  const columns = ['metric', 'ts', 'value', 'position']
  const row = ({ key, ms, value }: Fact, position: number) => [key, time(ms), value, position + 1]
  await insert('network_count', columns, facts.map(row).slice(0, half))
  // The second insert holds the last fact of the first one again, as a repeated delivery does.
  await insert('network_count', columns, facts.map(row).slice(Math.max(0, half - 1)))
  for (const [upTo, position] of [
    [half, 1],
    [facts.length, 2]
  ] as const) {
    const hours = hoursOf(foldOf(facts.slice(0, upTo)))
    await insertRows(
      'network_count_hour',
      hours.map((h) => ({
        metric: h.key,
        hour: time(h.fromMs).slice(0, 19),
        min: h.min,
        max: h.max,
        max_at: time(h.maxAtMs),
        sum: String(h.sum),
        samples: h.samples,
        last: h.last,
        last_at: time(h.lastAtMs),
        position
      }))
    )
  }
}

async function storeTitles({ insert, insertRows }: Stores, facts: readonly Fact[]): Promise<void> {
  const half = Math.ceil(facts.length / 2)
  const columns = ['title_id', 'ts', 'online', 'position']
  const row = ({ key, ms, value }: Fact, position: number) => [key, time(ms), value, position + 1]
  await insert('title_count', columns, facts.map(row).slice(0, half))
  await insert('title_count', columns, facts.map(row).slice(Math.max(0, half - 1)))
  for (const [upTo, position] of [
    [half, 1],
    [facts.length, 2]
  ] as const) {
    const fold = foldOf(facts.slice(0, upTo))
    await insertRows(
      'title_count_hour',
      hoursOf(fold).map((h) => ({
        title_id: h.key,
        hour: time(h.fromMs).slice(0, 19),
        min: h.min,
        max: h.max,
        max_at: time(h.maxAtMs),
        sum: String(h.sum),
        samples: h.samples,
        position
      }))
    )
    await insertRows(
      'title_count_day',
      titleDaysOf(fold).map((d) => ({
        title_id: d.key,
        day: time(d.fromMs).slice(0, 10),
        min: d.min,
        max: d.max,
        max_at: time(d.maxAtMs),
        sum: String(d.sum),
        samples: d.samples,
        active_hours: d.activeHours,
        position
      }))
    )
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
    value: name,
    nameKey: nameKey(name)
  }))
  const counts: NewestCount[] = counted.map((titleId) => ({ titleId, countedAtMs: 0 }))
  return catalogOf(facts, counts)
}
