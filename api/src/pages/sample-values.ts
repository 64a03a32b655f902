import { shownInstant, timeText } from '@gamenet/schemas'
import { atOneInstant, type ReadNeeds } from '../http/one-instant.js'
import type { PipelineNeeds } from '../http/pipeline.js'
import { highestScores } from '../queries/achievement-score.js'
import { rowsOf } from '../queries/query.js'
import { sampleBoard } from '../queries/sample.js'
import { newestTitleCounts } from '../queries/title-count.js'

/** Values of samples that exist in this service. */
export type SampleValues = {
  /** By name of a parameter or of a field of a body. A name of `SAMPLED` is absent while the tables have none. */
  readonly named: Readonly<Record<string, unknown>>
  /** The auth service and the account of samples that need a session. */
  readonly signIn: SignIn
}

/** `url` is absent without an auth service. Only the demo network has a user for samples. */
export type SignIn = {
  readonly url?: string
  readonly username: string
  readonly email: string
  readonly password: string
}

/** The names whose values only the tables know, and what they are in words. */
export const SAMPLED: Readonly<Record<string, string>> = {
  titleId: 'title',
  game: 'title',
  leaderboardId: 'board with two players',
  playerName: 'board with two players',
  names: 'board with two players',
  players: 'board with two players',
  q: 'board with two players',
  time: 'board of times',
  username: 'user with an achievement'
}

const READ_MS_MAX = 5000

export type SampleNeeds = ReadNeeds & Pick<PipelineNeeds, 'now'>

/** Reads the values from the tables. Without tables there are none, and samples say so. */
export async function readSampleValues(needs: SampleNeeds, signIn: SignIn): Promise<SampleValues> {
  const named = await atOneInstant(needs, AbortSignal.timeout(READ_MS_MAX), async ({ tables, catalog, signal }) => {
    const [[board], [title], users, titles] = await Promise.all([
      rowsOf(tables, sampleBoard, {}, { signal }),
      rowsOf(tables, newestTitleCounts, { to: needs.now() }, { signal }),
      rowsOf(tables, highestScores, { limit: 2 }, { signal }),
      catalog()
    ])
    const titleId = board?.titleId ?? title?.titleId
    const username = users.find((user) => user.username !== signIn.username)?.username
    return {
      ...(titleId === undefined ? {} : { titleId, game: titles.named(titleId).shownName }),
      ...(board === undefined ? {} : ofBoard(board)),
      ...(username === undefined ? {} : { username })
    }
  }).catch(() => ({}))
  return { named, signIn }
}

function ofBoard({ leaderboardId, players: names, timeMs, sinceMs }: (typeof sampleBoard)['row']['_output']) {
  const [playerName = ''] = names
  return {
    leaderboardId,
    playerName,
    names: names.join(','),
    players: names.map((each, at) => ({ playerName: each, rank: at + 1 })),
    q: [...playerName].slice(0, 3).join(''),
    linked_gamertag: playerName,
    from: shownInstant(sinceMs),
    ...(timeMs === null ? {} : { time: timeText(timeMs) })
  }
}
