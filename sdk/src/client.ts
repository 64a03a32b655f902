import { achievementMethods } from './achievement.js'
import { calendarMethods } from './calendar.js'
import { coverageMethods } from './coverage.js'
import { datasetsMethods } from './datasets.js'
import { healthMethods } from './health.js'
import { leaderboardMethods } from './leaderboard.js'
import { leaderboardChangeMethods } from './leaderboard-change.js'
import { leaderboardEntryMethods } from './leaderboard-entry.js'
import { matchListMethods } from './match-list.js'
import { networkCountMethods } from './network-count.js'
import { playTimeMethods } from './play-time.js'
import { playerMethods } from './player.js'
import { playerComparisonMethods } from './player-comparison.js'
import { playerEntryMethods } from './player-entry.js'
import { profileMethods } from './profile.js'
import { ratingMethods } from './rating.js'
import { recordHistoryMethods } from './record-history.js'
import { type CallOptions, type ClientOptions, type Parameters, requester } from './request.js'
import { streamMethods } from './stream.js'
import { timedEntryMethods } from './timed-entry.js'
import { timelineMethods } from './timeline.js'
import { titleMethods } from './title.js'
import { titleCountMethods } from './title-count.js'
import { userGameMethods } from './user-game.js'
import { userScoreMethods } from './user-score.js'

/** One method for each operation of the service, by its `operationId`, and `liveCounts` on top of `stream`. */
export type GamenetClient = ReturnType<typeof gamenetClient>

/**
 * A client of one service. Every method gives a {@link Call}: a promise of the answer's data, with its headers and
 * pages. Answers are asked for again with their ETag, so that what has not changed is not sent twice. `stream` and
 * `liveCounts` give an iterator that reconnects, `getDatasetFile` a stream of bytes. Every method rejects with a
 * `GamenetError`, or with its signal's reason when that ended the call.
 */
export function gamenetClient(options: ClientOptions) {
  const { get, post, act, open } = requester(options)
  return {
    ...networkCountMethods(get),
    ...titleCountMethods(get),
    ...calendarMethods(get),
    ...coverageMethods(get),
    ...datasetsMethods(get, open),
    ...titleMethods(get),
    ...leaderboardMethods(get),
    ...leaderboardEntryMethods(get),
    ...recordHistoryMethods(get),
    ...leaderboardChangeMethods(get),
    ...matchListMethods(get),
    ...playerEntryMethods(get, post),
    ...timedEntryMethods(get),
    ...playerMethods(get),
    ...profileMethods(get, act),
    ...ratingMethods(get, act),
    ...userGameMethods(get),
    ...userScoreMethods(get),
    ...playTimeMethods(get),
    ...timelineMethods(get),
    ...playerComparisonMethods(get),
    ...achievementMethods(get),
    ...streamMethods(open),
    ...healthMethods(get),

    /** A question of the service's operator, by its name; an answer is a list of rows. */
    question: <Row = Readonly<Record<string, unknown>>>(
      name: string,
      parameters: Parameters = {},
      call?: CallOptions
    ) => get<readonly Row[]>('/api/questions/:questionName', { ...parameters, questionName: name }, call)
  }
}
