import type { Tables } from './tables.js'

/**
 * The checkpoint whose `next` is above the number of every person whose events were opened: with it a write side that was put back
 * from an older copy is recognised, which would number new people as others before.
 */
export const PEOPLE_CHECKPOINT = 'people'

/** What these tables know of the write side. */
export type NewestWrites = {
  /** The highest revision of a profile or rating; 0 without any. */
  readonly revision: number
  /** The highest number of a person; 0 without any. */
  readonly person: number
}

export async function newestWrites(tables: Pick<Tables, 'rows'>): Promise<NewestWrites> {
  const [row] = await tables.rows(
    `SELECT (SELECT max(e.revision) FROM event_profile AS e) AS profile, (SELECT max(e.revision) FROM event_rating AS e) AS rating,
       (SELECT max(c.next) FROM checkpoint AS c WHERE c.name = {people: String}) AS people`,
    { people: PEOPLE_CHECKPOINT }
  )
  return {
    revision: Math.max(Number(row?.profile ?? 0), Number(row?.rating ?? 0)),
    person: Math.max(0, Number(row?.people ?? 0) - 1)
  }
}
