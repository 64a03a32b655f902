import { linesOf, operation } from './operation.js'

/** What a step changed: its projection, a key or `*`, and a half-open span of ms; see the table's migration. */
export type DataChange = {
  readonly projection: string
  readonly key: string
  readonly fromMs: number
  readonly toMs: number
}

/** Reads the newest version; 0 where nothing has changed yet. */
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
