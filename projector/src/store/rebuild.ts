import { linesOf, operation } from './operation.js'

/** Reads the newest record of each rebuild as JSON, the newest rebuild first. */
export const readRebuildRecords = operation('reads rebuilds', async (tables): Promise<string[]> => {
  const rows = await tables.rows(
    'SELECT r.id AS id, argMax(r.record, r.version) AS newest FROM rebuild AS r GROUP BY r.id ORDER BY r.id DESC'
  )
  return rows.map(({ newest }) => String(newest))
})

/** Stores a record of a rebuild, as JSON. The highest version counts; of equal ones, one. */
export const storeRebuildRecord = operation(
  'stores a rebuild',
  async (tables, id: number, version: number, record: string): Promise<void> => {
    await tables.insert('rebuild', ['id', 'record', 'version'], linesOf([[id, record, version]]))
  }
)

/** The process that last reported to fill a rebuild, and how many ms ago by the engine's clock. */
export type RebuildOwner = { readonly process: string; readonly ageMs: number }

/** Reads the owner of a rebuild; undefined if it never had one. */
export const readRebuildOwner = operation('reads the owner of a rebuild', async (tables, id: number) => {
  const [owner] = await tables.rows(
    `SELECT argMax(o.process, o.seen_at) AS process, dateDiff('millisecond', max(o.seen_at), now64(3)) AS age,
      count() AS owners
     FROM rebuild_owner AS o WHERE o.id = {id: UInt32}`,
    { id }
  )
  if (Number(owner?.owners) === 0) return undefined
  return { process: String(owner?.process), ageMs: Number(owner?.age) }
})

/** Reports that a process fills a rebuild now, by the engine's clock. */
export const storeRebuildOwner = operation(
  'stores the owner of a rebuild',
  async (tables, id: number, process: string): Promise<void> => {
    await tables.insert('rebuild_owner', ['id', 'process'], linesOf([[id, process]]))
  }
)
