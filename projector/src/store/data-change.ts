import { INSTANTS_END_MS, type VersionedChange } from '@gamenet/schemas'
import { linesOf, operation } from './operation.js'

/** What a step changed: its projection, a key or `*`, and a half-open span of ms; see the table's migration. */
export type DataChange = Omit<VersionedChange, 'version'>

/** Reads the newest version; 0 before the first change. */
export const readNewestVersion = operation('reads the newest data version', async (tables): Promise<number> => {
  const [row] = await tables.rows('SELECT max(d.version) AS version FROM data_change AS d')
  return Number(row?.version ?? 0)
})

/** Stores changes under one version, all or none. Storing them again changes nothing. */
export const storeChanges = operation(
  'stores data changes',
  async (tables, version: number, changes: readonly DataChange[]): Promise<void> => {
    const rows = changes.map(({ projection, key, fromMs, toMs }) => [version, projection, key, fromMs, toMs])
    await tables.insert('data_change', ['version', 'projection', 'key', 'from_ms', 'to_ms'], linesOf(rows))
  }
)

/** Reads the newest instant in which a change begins, in ms since 1970; 0 before the first change. */
export const readNewestBegin = operation('reads where the newest data change begins', async (tables) => {
  const [row] = await tables.rows(
    'SELECT max(least(d.from_ms, {end: Int64} - 1)) AS newest_from_ms FROM data_change AS d',
    { end: String(INSTANTS_END_MS) }
  )
  return wholeNumber(row, 'newest_from_ms')
})

/**
 * Reads the changes above a version. Years of changes are a row per span of whole hours, not one per step: spans that
 * end after `minutesFromMs` are widened to whole minutes, others to whole hours. Rejects at a number of 2^53 and above.
 */
export const readChangesSince = operation(
  'reads data changes',
  async (tables, version: number, minutesFromMs: number): Promise<VersionedChange[]> => {
    const rows = await tables.rows(
      `SELECT d.projection AS projection,
         d.key AS key,
         if(d.to_ms > {minutes_from: Int64}, 60000, 3600000) AS width_ms,
         intDiv(greatest(d.from_ms, 0), width_ms) * width_ms AS first_ms,
         intDiv(greatest(least(d.to_ms, {end: Int64}), d.from_ms + 1) + width_ms - 1, width_ms) * width_ms AS last_ms,
         max(d.version) AS newest_version
       FROM data_change AS d
       WHERE d.version > {after: UInt64}
       GROUP BY projection, key, width_ms, first_ms, last_ms`,
      { after: String(version), minutes_from: String(minutesFromMs), end: String(INSTANTS_END_MS) }
    )
    return rows.map((row) => ({
      projection: String(row.projection),
      key: String(row.key),
      fromMs: wholeNumber(row, 'first_ms'),
      toMs: wholeNumber(row, 'last_ms'),
      version: wholeNumber(row, 'newest_version')
    }))
  }
)

function wholeNumber(row: Record<string, unknown> | undefined, column: string): number {
  const value = Number(row?.[column])
  if (Number.isSafeInteger(value)) return value
  throw new Error(`data_change gave ${JSON.stringify(row?.[column])} as ${column}, expected an integer below 2^53`)
}
