import { projections } from '@gamenet/projector'
import { topics } from '@gamenet/schemas'

/** One projection of each kind: rows, a rollup, newest values, a list, states, a fold of boards, ratings, imports. */
const SIMULATED: readonly string[] = [
  'title-count',
  'title-count-hour',
  'title-latest',
  'leaderboard',
  'leaderboard-history',
  'leaderboard-entry',
  'rating',
  'import-run',
  'import-retraction'
]
export const simulatedProjections = projections.filter(({ name }) => SIMULATED.includes(name))
export const simulatedTopics = topics.filter((topic) => simulatedProjections.some(({ from }) => from === topic))

export const TITLE_IDS = ['4d530064', '4d530065'] as const
export const USERS = ['ann', 'Bob', 'cy'] as const
