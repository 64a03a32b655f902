import type { Fold } from './folding/fold.js'
import { foldLeaderboardEntry } from './folds/leaderboard-entry.js'
import { foldMatchSession } from './folds/match-session.js'

/** The pure functions of projections of form `fold`, by the name that a projection says. */
export const folds: Readonly<Record<string, Fold>> = {
  'leaderboard-entry': foldLeaderboardEntry,
  'match-session': foldMatchSession
}
