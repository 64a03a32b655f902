import type { Fold } from '../project/folding/fold.js'
import { foldLeaderboardEntry, foldLeaderboardEntryByValue } from './leaderboard-entry.js'
import { foldMatchSession } from './match-session.js'

/** The folds of projections of form `fold`, by the name in the projection. */
const folds: Readonly<Record<string, Fold>> = {
  'leaderboard-entry': { fold: foldLeaderboardEntry, basis: { table: 'leaderboard_history' } },
  'leaderboard-entry-by-value': { fold: foldLeaderboardEntryByValue, basis: { table: 'leaderboard_history' } },
  'match-session': { fold: foldMatchSession, basis: { table: 'match_list', rowsBeginAt: 'first_seen' } }
}

/** Returns the fold with a name. Throws if there is none. */
export function foldNamed(name: string): Fold {
  const fold = folds[name]
  if (fold === undefined) throw new Error(`There is no fold ${name} in folds.ts.`)
  return fold
}
