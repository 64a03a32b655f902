import { linesOf, operation } from './operation.js'

/** An erasure that was applied to these tables, by the hash of the user's name. */
export type AppliedErasure = { readonly nameHash: string; readonly erasedAtMs: number }

/** Reads the newest erasure of each name that was applied to these tables. */
export const readAppliedErasures = operation('reads applied erasures', async (tables): Promise<AppliedErasure[]> => {
  const rows = await tables.rows(
    `SELECT f.name_hash AS nameHash, toUnixTimestamp64Milli(max(f.erased_at)) AS erasedAtMs
     FROM erasure AS f GROUP BY f.name_hash ORDER BY f.name_hash`
  )
  return rows.map(({ nameHash, erasedAtMs }) => ({
    nameHash: String(nameHash),
    erasedAtMs: Number(erasedAtMs)
  }))
})

/** Records in the tables themselves that erasures were applied, all or none; an older copy lacks the record. */
export const storeAppliedErasures = operation(
  'stores applied erasures',
  async (tables, erasures: readonly AppliedErasure[]): Promise<void> => {
    const rows = erasures.map(({ nameHash, erasedAtMs }) => {
      return [nameHash, new Date(erasedAtMs).toISOString().slice(0, -1).replace('T', ' ')]
    })
    await tables.insert('erasure', ['name_hash', 'erased_at'], linesOf(rows))
  }
)
