import { deepStrictEqual } from 'node:assert'
import { runs } from '@gamenet/engines/testing'
import { EntryMatches, nameKey, RosterMatches, TimeMatches } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { openBoardApi, storeTitles } from './board-api.js'
import {
  allEntries,
  boardNameOf,
  compareKeys,
  describeBoards,
  NAMES,
  type Placed,
  storeWorld,
  TITLES,
  type World,
  worlds
} from './search-model.js'

const GAMES: Record<string, string> = { '4d530001': 'Älpha / "Race"', '4d530002': '4d530002' }
const PROJECTIONS = [
  'player-entry',
  'leaderboard-entry',
  'timed-entry',
  'player',
  'leaderboard',
  'title',
  'title-latest'
]

/** An API with two titles, one of them undescribed, and named boards. */
async function openSearch(t: Parameters<typeof openBoardApi>[0]) {
  const api = await openBoardApi(t)
  await storeTitles(api.model, { '4d530001': GAMES['4d530001'] ?? '' })
  await api.model.insert(
    'title_latest',
    ['title_id', 'ts', 'online', 'version'],
    [['4d530002', '2026-03-14 20:00:00', 1, '1']]
  )
  await describeBoards(api.model)
  const show = async (world: World) => {
    await storeWorld(api.model, world)
    await api.changed(...PROJECTIONS)
  }
  return { ...api, show }
}

/** An entry in searches, without its id. */
function shownOf(entry: Placed) {
  const { timeMs } = entry
  const seconds = String(Math.floor((timeMs ?? 0) / 1000) % 60).padStart(2, '0')
  const text = `${Math.floor((timeMs ?? 0) / 60_000)}:${seconds}.${String((timeMs ?? 0) % 1000).padStart(3, '0')}`
  return {
    leaderboard_id: entry.leaderboardId,
    leaderboard_name: boardNameOf(entry),
    title_id: entry.titleId,
    game_name: GAMES[entry.titleId],
    player_name: entry.playerName,
    rank: entry.rank,
    rating: entry.rating,
    time_ms: timeMs ?? 0,
    time_formatted: timeMs === null ? '' : text,
    is_time: timeMs !== null
  }
}

function withoutIds(found: readonly { id: string }[]): object[] {
  return found.map(({ id: _, ...rest }) => rest)
}

const titleFilter = fc.constantFrom(undefined, ...TITLES)
const queryOf = (given: Record<string, string | number | undefined>): string =>
  new URLSearchParams(
    Object.entries(given).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)] as [string, string]]
    )
  ).toString()

test('a search by names finds every spelling on every board, best rank first', async (t) => {
  const { get, show } = await openSearch(t)
  const askable = NAMES.filter((name) => !name.includes(',') && !name.includes('\t') && name.trim() !== '')
  await fc.assert(
    fc.asyncProperty(worlds, fc.subarray(askable, { minLength: 1 }), titleFilter, async (world, names, titleId) => {
      await show(world)
      const plain = (words: readonly string[], title: string | undefined) =>
        allEntries(world)
          .filter((entry) => words.some((name) => nameKey(name) === nameKey(entry.playerName)))
          .filter((entry) => title === undefined || entry.titleId === title)
          .sort((a, b) => a.rank - b.rank || compareKeys(a, b))
          .map(shownOf)
      const answer = await get(`/api/datasearch/players?${queryOf({ names: names.join(','), titleId })}`)
      const { results, count } = EntryMatches.parse(answer.json())
      deepStrictEqual(withoutIds(results), plain(names, titleId))
      deepStrictEqual(count, results.length)
      deepStrictEqual(new Set(results.map(({ id }) => id)).size, count, 'ids are unique')
      const [name = ''] = names
      const one = await get(`/api/datasearch/player/${encodeURIComponent(name.toUpperCase())}`)
      deepStrictEqual(withoutIds(EntryMatches.parse(one.json()).results), plain([name], undefined))
    }),
    runs(3)
  )
  t.pass()
})

test('a search by time finds the entries that have it now, nearest first, and no former time', async (t) => {
  const { get, show } = await openSearch(t)
  const tolerances = fc.constantFrom(undefined, 0, 1, 500, 1000, 1001, 30_000, 60_000)
  await fc.assert(
    fc.asyncProperty(
      worlds,
      fc.constantFrom('0:00.000', '1:00.000', '0060.001', '01:01.000', '2:30.000', '71582:47.295', '99999:59.999'),
      tolerances,
      titleFilter,
      fc.constantFrom(undefined, 1, 3, 500),
      async (world, time, tolerance, titleId, limit) => {
        await show(world)
        const [minutes, seconds] = time.includes(':') ? time.split(':').map(Number) : [0, Number(time)]
        const ms = Math.round(((minutes ?? 0) * 60 + (seconds ?? 0)) * 1000)
        const plain = allEntries(world)
          .filter((entry): entry is Placed & { timeMs: number } => entry.timeMs !== null)
          .filter((entry) => Math.abs(entry.timeMs - ms) <= (tolerance ?? 0))
          .filter((entry) => titleId === undefined || entry.titleId === titleId)
          .sort((a, b) => Math.abs(a.timeMs - ms) - Math.abs(b.timeMs - ms) || a.timeMs - b.timeMs || compareKeys(a, b))
          .slice(0, limit ?? 100)
          .map((entry) => ({ ...shownOf(entry), difference_ms: Math.abs(entry.timeMs - ms) }))
        const answer = await get(`/api/datasearch/time?${queryOf({ time, tolerance, titleId, limit })}`)
        const { results, ...matches } = TimeMatches.parse(answer.json())
        deepStrictEqual(withoutIds(results), plain)
        const searchTime = `${Math.floor(ms / 60_000)}:${String(Math.floor(ms / 1000) % 60).padStart(2, '0')}.${String(ms % 1000).padStart(3, '0')}`
        deepStrictEqual(matches, { searchTime, searchTimeMs: ms, tolerance: tolerance ?? 0, count: plain.length })
      }
    ),
    runs(4)
  )
  t.pass()
})

test('a roster finds the boards on which all players have their ranks, within the tolerance, the closest first', async (t) => {
  const { app, show } = await openSearch(t)
  const words = fc.array(
    fc.record({
      playerName: fc.constantFrom(...NAMES.filter((name) => !name.includes('\t'))),
      rank: fc.integer({ min: 1, max: 9 })
    }),
    { minLength: 1, maxLength: 3 }
  )
  let found = 0
  await fc.assert(
    fc.asyncProperty(
      worlds,
      words,
      fc.constantFrom(undefined, 0, 1, 5, 60_000),
      titleFilter,
      async (world, players, tolerance, titleId) => {
        await show(world)
        const plain = world.now
          .filter((board) => titleId === undefined || board.titleId === titleId)
          .flatMap((board) => {
            const chosen = players.map(({ playerName, rank }) => {
              const fitting = board.entries
                .filter((entry) => nameKey(entry.playerName) === nameKey(playerName))
                .map((entry) => ({ ...entry, titleId: board.titleId, leaderboardId: board.leaderboardId }))
                .filter((entry) => Math.abs(entry.rank - rank) <= (tolerance ?? 0))
              return fitting.sort((a, b) => Math.abs(a.rank - rank) - Math.abs(b.rank - rank) || compareKeys(a, b))[0]
            })
            const whole = chosen.filter((entry) => entry !== undefined)
            if (whole.length < players.length) return []
            const distance = whole.reduce((sum, entry, n) => sum + Math.abs(entry.rank - (players[n]?.rank ?? 0)), 0)
            return [
              { distance, titleId: board.titleId, leaderboardId: board.leaderboardId, players: whole.map(shownOf) }
            ]
          })
          .sort(
            (a, b) =>
              a.distance - b.distance ||
              (a.titleId < b.titleId ? -1 : Number(a.titleId > b.titleId)) ||
              a.leaderboardId - b.leaderboardId
          )
        const answer = await app.inject({
          method: 'POST',
          url: '/api/datasearch/roster',
          payload: { players, tolerance, titleId, more: 1 }
        })
        const { results, count } = RosterMatches.parse(answer.json())
        deepStrictEqual(
          results.map((board) => ({ ...board, players: withoutIds(board.players) })),
          plain.map(({ titleId: id, leaderboardId, players: whole }) => ({
            leaderboard_id: leaderboardId,
            leaderboard_name: boardNameOf({ titleId: id, leaderboardId }),
            title_id: id,
            game_name: GAMES[id],
            players: whole
          }))
        )
        deepStrictEqual(count, results.length)
        found += count
      }
    ),
    runs(8)
  )
  t.ok(found > 0, `${found} rosters were found`)
})
