import { linesOf, operation } from './operation.js'

/** A swap of tables, as it is announced to other processes. */
export type Announcement = { readonly id: number; readonly state: 'announced' | 'begun' | 'ended' }

/** Reads the newest announcement; undefined where nothing was ever announced. */
export const readNewestAnnouncement = operation(
  'reads the newest announcement',
  async (tables): Promise<Announcement | undefined> => {
    const [row] = await tables.rows(
      'SELECT e.id AS id, e.state AS state FROM exchange AS e ORDER BY e.id DESC, e.state DESC LIMIT 1'
    )
    return row === undefined ? undefined : { id: Number(row.id), state: row.state as Announcement['state'] }
  }
)

/** Announces a state of a swap of these projections' tables. */
export const storeAnnouncement = operation(
  'announces a swap',
  async (tables, { id, state }: Announcement, projections: readonly string[]): Promise<void> => {
    await tables.insert('exchange', ['id', 'state', 'projections'], linesOf([[id, state, projections]]))
  }
)
