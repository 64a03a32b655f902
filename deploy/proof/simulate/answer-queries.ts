import type { DataVersions, Dependency } from '@gamenet/api'
import { identityOf } from '@gamenet/api/internals'
import { nameKey, type ServingTables } from '@gamenet/schemas'
import { TITLE_IDS, USERS } from './simulated.js'
import { HOUR_MS } from './tables/plain-folds.js'
import type { Row } from './tables/replacing-table.js'
import { BEGIN_MS } from './virtual-time.js'

/** A query: the reads of its answer, one statement per table. */
export type SimulatedQuery = {
  readonly name: string
  readonly reads: readonly (Dependency & { readonly table: string; isWanted?(row: Row): boolean })[]
}

/** Returns the identity of an answer. */
export function identityOfAnswer(
  { name, reads }: SimulatedQuery,
  serving: Pick<ServingTables, 'counterOf'>,
  versions: Pick<DataVersions, 'versionOf'>
): string {
  const counter = Math.max(...reads.map(({ projection }) => serving.counterOf(projection)))
  return identityOf(
    name,
    '{}',
    reads.map((each) => versions.versionOf(each)),
    counter
  )
}

const now = BEGIN_MS - (BEGIN_MS % HOUR_MS)

/** Queries of every table with published changes, some of several tables of one unit. */
export const QUERIES: readonly SimulatedQuery[] = [
  ...TITLE_IDS.flatMap((titleId): SimulatedQuery[] => {
    const ofTitle = (row: Row) => row.title_id === titleId
    const isIn = (column: string) => (row: Row) =>
      ofTitle(row) && Number(row[column]) >= now && Number(row[column]) < now + HOUR_MS
    const window = { key: titleId, fromMs: now, toMs: now + HOUR_MS }
    const counts = { projection: 'title-count', table: 'title_count', ...window, isWanted: isIn('ts') }
    const hours = { projection: 'title-count-hour', table: 'title_count_hour', ...window, isWanted: isIn('hour') }
    const latest = { projection: 'title-latest', table: 'title_latest', key: titleId, isWanted: ofTitle }
    const boards = { projection: 'leaderboard', table: 'leaderboard', key: titleId, isWanted: ofTitle }
    return [
      { name: `counts of ${titleId}`, reads: [counts] },
      { name: `hour of ${titleId}`, reads: [hours] },
      { name: `hour begun of ${titleId}`, reads: [{ ...hours, toMs: now + HOUR_MS / 6 }] },
      { name: `latest of ${titleId}`, reads: [latest] },
      { name: `boards of ${titleId}`, reads: [boards] },
      { name: `counts, hour and latest of ${titleId}`, reads: [counts, hours, latest] }
    ]
  }),
  { name: 'all entries', reads: [{ projection: 'leaderboard-entry', table: 'leaderboard_entry' }] },
  {
    name: 'all states and entries',
    reads: [
      { projection: 'leaderboard-history', table: 'leaderboard_history' },
      { projection: 'leaderboard-entry', table: 'leaderboard_entry' },
      { projection: 'leaderboard-entry', table: 'leaderboard_change' }
    ]
  },
  ...USERS.map((user): SimulatedQuery => {
    const isWanted = (row: Row) => row.user_key === nameKey(user)
    return {
      name: `ratings of ${user}`,
      reads: [{ projection: 'rating', table: 'rating', key: nameKey(user), isWanted }]
    }
  })
]
