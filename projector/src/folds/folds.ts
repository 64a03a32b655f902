import type { Fold } from './fold.js'
import { BOARD_TABLES, foldLeaderboardEntry } from './leaderboard-entry.js'
import { foldMatchSession, MATCH_TYPES } from './match-session.js'

/** The folds of projections of form `fold`, by the projection's name. */
const folds: Readonly<Record<string, Fold>> = {
  'leaderboard-entry': {
    fold: foldLeaderboardEntry,
    tables: BOARD_TABLES,
    copies: { leaderboard_change: 'leaderboard_feed' },
    basis: { table: 'leaderboard_history' }
  },
  'match-session': {
    fold: foldMatchSession,
    tables: { match_session: MATCH_TYPES },
    basis: { table: 'match_list', rowsBeginAt: 'first_seen' }
  }
}

/** Returns the fold with a name. Throws if there is none. */
export function foldNamed(name: string): Fold {
  const fold = folds[name]
  if (fold === undefined) throw new Error(`There is no fold ${name} in folds.ts.`)
  return fold
}

/** Returns the tables whose rows a projection's fold stores in another order too: by table, the other one. */
export function copiesOf({ name }: { readonly name: string }): Readonly<Record<string, string>> {
  return foldNamed(name).copies ?? {}
}
