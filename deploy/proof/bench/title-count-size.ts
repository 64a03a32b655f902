import type { Readable } from 'node:stream'
import { createGzip } from 'node:zlib'
import { datasets } from '@gamenet/api'
import { fileStatement, rowGroupRows } from '@gamenet/api/internals'
import type { ClickHouse } from '@gamenet/engines'
import { FIRST_GENERATION, withServing } from '@gamenet/schemas'
import { figure, type Measurement, type Result } from './measurement.js'
import { openTitleCountRows, SCHEDULES } from './title-count-rows.js'

const BYTES_MAX = 0.35
const PARQUET_BYTES_MAX = 1
const MONTH_MS = 31 * 86_400_000
const COLUMNS = ['title_id', 'ts', 'online', 'sessions', 'lobby_players', 'position']

/** Bytes per sample of `title_count` over a year of minutes, and in the dataset's Parquet file of a month. */
export const titleCountSize: Measurement = {
  name: 'title-count-size',
  claim: 'a sample of a title takes 0.35 bytes or less in its table, and 1 byte or less in Parquet',
  async run(conditions) {
    const { tables, rows, toMs } = await openTitleCountRows(conditions)
    try {
      const asInserted = await bytesOf(tables)
      const results: Result[] = []
      conditions.note('merging')
      await tables.rebuild.execute('OPTIMIZE TABLE title_count__0 FINAL')
      const merged = await bytesOf(tables)
      const perColumn = await columnsOf(tables)
      results.push({
        what: `bytes a sample, ${figure(rows)} rows, merged`,
        measured: merged.bytes / merged.rows,
        unit: 'bytes',
        target: { bound: 'at most', value: BYTES_MAX, of: 'measured' },
        detail: `as inserted ${figure(asInserted.bytes / asInserted.rows)} in ${asInserted.parts} parts`
      })
      for (const column of COLUMNS) {
        results.push({
          what: `  column ${column}`,
          measured: (perColumn.get(column) ?? 0) / merged.rows,
          unit: 'bytes'
        })
      }
      const others = (perColumn.get('') ?? 0) / merged.rows
      results.push({ what: '  keys, marks, the rest', measured: others, unit: 'bytes' })
      conditions.note('writing the files of a month')
      return [...results, await fileOf(tables, toMs), ...(await instantsOf(tables, rows))]
    } finally {
      await tables.close()
    }
  }
}

async function bytesOf({ control }: ClickHouse): Promise<{ rows: number; bytes: number; parts: number }> {
  const [row] = await control.rows(
    `SELECT sum(p.rows) AS rows, sum(p.bytes_on_disk) AS bytes, count() AS parts FROM system.parts AS p
     WHERE p.active AND p.table = 'title_count__0' AND p.database = currentDatabase()`
  )
  return { rows: Number(row?.rows), bytes: Number(row?.bytes), parts: Number(row?.parts) }
}

async function columnsOf(tables: ClickHouse): Promise<Map<string, number>> {
  const rows = await tables.control.rows(
    `SELECT c.column AS column, sum(c.column_data_compressed_bytes) AS bytes FROM system.parts_columns AS c
     WHERE c.active AND c.table = 'title_count__0' AND c.database = currentDatabase() GROUP BY c.column`
  )
  const columns = new Map(rows.map((row) => [String(row.column), Number(row.bytes)]))
  const { bytes } = await bytesOf(tables)
  const known = [...columns.values()].reduce((sum, each) => sum + each, 0)
  return columns.set('', bytes - known)
}

/** The size of the last month's file, as the service writes it, and of the same rows as CSV in gzip. */
async function fileOf({ readers }: ClickHouse, toMs: number): Promise<Result> {
  const dataset = datasets.find(({ name }) => name === 'title-count')
  if (dataset === undefined) throw new Error('there is no dataset title-count')
  const { sql, parameters } = fileStatement(dataset, { fromMs: toMs - MONTH_MS, toMs })
  const tables = withServing(readers, FIRST_GENERATION)
  const [row] = await tables.rows(`SELECT count() AS rows, uniq(f.title_id) AS series FROM (${sql}) AS f`, parameters)
  const rows = Number(row?.rows)
  const groups = rowGroupRows({ rows, series: Number(row?.series), firstMs: null, lastMs: null, rowsHash: '' })
  const parquet = await tables.stream(sql, parameters, { format: 'Parquet', rowGroupRows: groups })
  const csv = await tables.stream(sql, parameters, { format: 'CSVWithNames' })
  return {
    what: `a sample in the Parquet file of a month, ${figure(rows)} rows`,
    measured: (await lengthOf(parquet)) / rows,
    unit: 'bytes',
    target: { bound: 'at most', value: PARQUET_BYTES_MAX, of: 'measured' },
    baseline: { what: 'CSV in gzip', measured: (await lengthOf(csv.pipe(createGzip()))) / rows }
  }
}

async function lengthOf(stream: Readable): Promise<number> {
  let bytes = 0
  for await (const chunk of stream) bytes += (chunk as Uint8Array).length
  return bytes
}

/** The size of the column of instants on each schedule; the instants are the same for all titles. */
async function instantsOf(tables: ClickHouse, rows: number): Promise<Result[]> {
  const { control, rebuild } = tables
  const titles = 20
  const minutes = Math.min(525_600, Math.floor(rows / titles))
  const results: Result[] = []
  for (const [name, sql] of Object.entries(SCHEDULES)) {
    await control.execute(`DROP TABLE IF EXISTS instants`)
    await control.execute(
      `CREATE TABLE instants (title UInt16 CODEC(ZSTD(1)), ts DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1))) ENGINE = MergeTree ORDER BY (title, ts)`
    )
    await rebuild.execute(
      `INSERT INTO instants SELECT title, fromUnixTimestamp64Milli(1735689600000 + ${sql}, 'UTC')
       FROM (SELECT number AS title FROM numbers(${titles})) AS t, (SELECT number AS minute FROM numbers(${minutes})) AS m`
    )
    await rebuild.execute('OPTIMIZE TABLE instants FINAL')
    const [row] = await control.rows(
      `SELECT sum(c.column_data_compressed_bytes) / sum(c.rows) AS bytes FROM system.parts_columns AS c
       WHERE c.active AND c.table = 'instants' AND c.column = 'ts' AND c.database = currentDatabase()`
    )
    results.push({
      what: `column ts alone, ${DESCRIPTIONS[name as keyof typeof SCHEDULES]}`,
      measured: Number(row?.bytes),
      unit: 'bytes'
    })
  }
  await control.execute(`DROP TABLE IF EXISTS instants`)
  return results
}

const DESCRIPTIONS: Readonly<Record<keyof typeof SCHEDULES, string>> = {
  minutes: 'on whole minutes',
  scrapes: 'one offset for all scrapes',
  jittered: 'a random delay of up to 3 s per scrape'
}
