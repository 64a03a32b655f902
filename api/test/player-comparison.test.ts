import { deepStrictEqual } from 'node:assert'
import { runs } from '@gamenet/engines/testing'
import { measureGap, nameKey, PlayerComparison } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { openBoardApi, storeTitles } from './board-api.js'
import {
  allEntries,
  boardNameOf,
  compareText,
  describeBoards,
  NAMES,
  type Placed,
  storeWorld,
  type World,
  worlds
} from './search-model.js'

const GAMES: Record<string, string> = { '4d530001': 'Race', '4d530002': '4d530002' }

/** The best entry of a player on a board. */
function bestOn(board: readonly Placed[], name: string): Placed | undefined {
  const own = board.filter(({ playerName }) => nameKey(playerName) === nameKey(name))
  return own.sort((a, b) => a.rank - b.rank || a.place - b.place)[0]
}

/** The comparison by loops. */
function plainComparison(world: World, first: string, second: string) {
  const entries = allEntries(world)
  const keys = [...new Set(entries.map(({ titleId, leaderboardId }) => `${titleId}/${leaderboardId}`))]
  const boards = keys.map((key) => entries.filter((e) => `${e.titleId}/${e.leaderboardId}` === key))
  const pairs = boards.map((board) => [bestOn(board, first), bestOn(board, second)] as const)
  const shared = pairs.flatMap(([one, other]) => (one === undefined || other === undefined ? [] : [{ one, other }]))
  const rankOf = ({ one, other }: (typeof shared)[number]) => Math.min(one.rank, other.rank)
  shared.sort(
    (a, b) =>
      rankOf(a) - rankOf(b) || compareText(a.one.titleId, b.one.titleId) || a.one.leaderboardId - b.one.leaderboardId
  )
  const shown = ({ playerName, rank, rating, timeMs }: Placed) => ({
    playerName,
    rank,
    rating,
    timeMs: timeMs ?? 0,
    isTime: timeMs !== null
  })
  const leads = (a: 'one' | 'other', b: 'one' | 'other') => shared.filter((pair) => pair[a].rank < pair[b].rank).length
  return {
    players: [
      { playerName: first, leaderboardsOn: pairs.filter(([one]) => one).length, leads: leads('one', 'other') },
      { playerName: second, leaderboardsOn: pairs.filter(([, other]) => other).length, leads: leads('other', 'one') }
    ],
    total: shared.length,
    ties: shared.filter(({ one, other }) => one.rank === other.rank).length,
    boards: shared.map(({ one, other }) => ({
      leaderboardId: one.leaderboardId,
      leaderboardName: boardNameOf(one),
      titleId: one.titleId,
      gameName: GAMES[one.titleId],
      leader: one.rank === other.rank ? null : one.rank < other.rank ? first : second,
      gap: measureGap(one, other),
      entries: [shown(one), shown(other)]
    }))
  }
}

test('two players are compared board by board, page by page, like by plain loops', async (t) => {
  const { model, changed, get } = await openBoardApi(t)
  await storeTitles(model, { '4d530001': 'Race' })
  await describeBoards(model)
  const names = fc.constantFrom(...NAMES.filter((name) => !/[\t,]/.test(name) && name.trim() !== ''))
  const pairs = fc.tuple(names, names).filter(([a, b]) => nameKey(a) !== nameKey(b))
  await fc.assert(
    fc.asyncProperty(worlds, pairs, fc.constantFrom(1, 2, 1000), async (world, [first, second], limit) => {
      await storeWorld(model, world)
      await changed('player-entry', 'leaderboard-entry', 'leaderboard', 'title')
      const plain = plainComparison(world, first, second)
      const boards: unknown[] = []
      let url: string | undefined =
        `/api/players/compare?names=${encodeURIComponent(`${first},${second}`)}&limit=${limit}`
      while (url !== undefined) {
        const answer = await get(url)
        const page = PlayerComparison.parse(answer.json())
        deepStrictEqual({ ...page, boards: plain.boards }, plain)
        boards.push(
          ...page.boards.map(({ entries, ...board }) => ({
            ...board,
            entries: entries.map(({ timeFormatted: _, ...entry }) => entry)
          }))
        )
        url = /^<(.+)>; rel="next"$/.exec(String(answer.headers.link ?? ''))?.[1]
      }
      deepStrictEqual(boards, plain.boards)
    }),
    runs(4)
  )
  t.pass()
})

test('a comparison requires two different names', async (t) => {
  const { get } = await openBoardApi(t)
  for (const names of ['ann', 'ann,bob,eve', 'ann,ANN', 'ann,', ' ,ann', 'ann,b%00b', ',']) {
    const answer = await get(`/api/players/compare?names=${names}`)
    t.match([answer.statusCode, answer.json()], [400, { error: /^names must be 2 different names/ }], names)
  }
  t.match((await get('/api/players/compare')).json(), { error: /^names must be 2 .*; it is missing\.$/ })
  t.match((await get('/api/players/compare?names=a,b&names=c,d')).json(), { error: /it is given 2 times/ })
  t.same((await get('/api/players/compare?names=nobody, noone')).json(), {
    players: [
      { playerName: 'nobody', leaderboardsOn: 0, leads: 0 },
      { playerName: 'noone', leaderboardsOn: 0, leads: 0 }
    ],
    total: 0,
    ties: 0,
    boards: []
  })
})
