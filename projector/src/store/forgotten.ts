import { linesOf, operation } from './operation.js'

/** An erasure that was applied to these tables, by the hash of the user's name. */
export type AppliedErasure = { readonly nameHash: string; readonly forgottenAtMs: number }

/** Reads the newest erasure of each name that was applied to these tables. */
export const readAppliedErasures = operation('reads applied erasures', async (tables): Promise<AppliedErasure[]> => {
  const rows = await tables.rows(
    `SELECT f.name_hash AS nameHash, toUnixTimestamp64Milli(max(f.forgotten_at)) AS forgottenAtMs
     FROM forgotten AS f GROUP BY f.name_hash ORDER BY f.name_hash`
  )
  return rows.map(({ nameHash, forgottenAtMs }) => ({
    nameHash: String(nameHash),
    forgottenAtMs: Number(forgottenAtMs)
  }))
})

/** Records in the tables themselves that erasures were applied, all or none; an older copy lacks the record. */
export const storeAppliedErasures = operation(
  'stores applied erasures',
  async (tables, erasures: readonly AppliedErasure[]): Promise<void> => {
    const rows = erasures.map(({ nameHash, forgottenAtMs }) => {
      return [nameHash, new Date(forgottenAtMs).toISOString().slice(0, -1).replace('T', ' ')]
    })
    await tables.insert('forgotten', ['name_hash', 'forgotten_at'], linesOf(rows))
  }
)
