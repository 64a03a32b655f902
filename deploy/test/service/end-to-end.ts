import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Test } from 'tap'
import { z } from 'zod'
import { type Environment, gamenet, gamenetJson } from './gamenet.js'
import type { Upstream, UpstreamBoard, UpstreamTitle } from './upstream.js'

const halo: UpstreamTitle = {
  titleId: '4d530064',
  name: 'Halo 2',
  subtitle: 'Halo 2',
  online: 41,
  lobbies: { players: 16, sessions: 3 },
  hasBoards: true
}
const ride: UpstreamTitle = {
  titleId: '55530036',
  name: "187 Ride & Die / #1 : it's +",
  subtitle: '',
  online: 5,
  lobbies: null,
  hasBoards: true
}

const Runs = z.array(z.object({ source: z.string(), outcome: z.string() }))
const Matches = z.object({
  matches: z.array(z.object({ hostName: z.string(), currentPlayers: z.int(), maxPlayers: z.int() }))
})
const Board = z.object({
  entries: z.array(z.object({ rank: z.string(), name: z.string(), timeFormatted: z.string() }))
})
const Change = z.object({
  playerName: z.string(),
  changeType: z.string(),
  previousRank: z.int().nullable(),
  newRank: z.int().nullable(),
  changedAt: z.string()
})

/**
 * Two players fewer than in `halo`, because a game's page is read slightly later than the home page; one host occurs
 * twice.
 */
const lobbies = [
  { host: 'ann', players: 8, most: 16 },
  { host: '<b>joe</b>', players: 4, most: 4 },
  { host: 'ann', players: 2, most: 16 }
]
const LAPS = 3
const TIME_MAX = 2_147_483_647

/** A board of times in the format of upstream: 2,147,483,647 minus the milliseconds. */
function laps(...entries: readonly (readonly [rank: number, name: string, timeMs: number])[]): UpstreamBoard {
  return {
    leaderboardId: LAPS,
    name: 'Laps / #1',
    entries: entries.map(([rank, name, timeMs]) => ({ rank, name, score: `${TIME_MAX - timeMs}` }))
  }
}

/** The complete path from an upstream page and a file to answers, for any engines and any number of processes. */
export async function provesEndToEnd(
  t: Test,
  options: { upstream: Upstream; apiUrl: string; operatorUrl: string; directory: string }
): Promise<void> {
  const { upstream, apiUrl, directory } = options
  const client: Environment = { OPERATOR_URL: options.operatorUrl }
  const get = async (path: string) => {
    const response = await fetch(apiUrl + path)
    return { status: response.status, body: (await response.json()) as unknown }
  }
  const settle = () => gamenetJson(client, ['status', '--wait', '180'])

  await t.test('a scraped page is in the answers', async (t) => {
    upstream.show({ registered: 21_345, online: 87, titles: [halo, ride] })
    upstream.showGame(halo.titleId, {
      lobbies,
      boards: [laps([1, 'ann', 61_000], [1, 'Bob', 61_000], [3, 'eve', 61_500])]
    })
    const runs = Runs.parse(await gamenetJson(client, ['scrape', 'all']))
    t.same(
      runs.map(({ source, outcome }) => `${source} ${outcome}`),
      ['network succeeded', 'games succeeded', 'matches succeeded', 'boards succeeded', 'players succeeded']
    )
    t.match(await settle(), { wait: { caughtUp: true } })
    t.match((await get('/api/online-users')).body, {
      'Halo 2': {
        name: 'Halo 2',
        online: 41,
        titleId: '4d530064',
        activeLobbies: 3,
        activeLobbyPlayers: 16,
        hasActiveSession: true
      },
      [ride.name]: { online: 5, titleId: '55530036', hasActiveSession: false }
    })
    t.match((await get(`/api/game/${encodeURIComponent(ride.name.toUpperCase())}`)).body, {
      titleId: '55530036',
      name: ride.name
    })
    t.same((await get('/api/games')).body, [ride.name, 'Halo 2'].sort(new Intl.Collator('en').compare))
    t.match((await get('/api/network-stats/online-24h')).body, [{ online_count: 87 }])
    t.match((await get('/api/network-stats/lobbies-24h')).body, [{ lobby_count: 3 }])
    t.match((await get('/api/network-stats/registered-users')).body, [{ registered_count: 21_345 }])
    t.match((await get('/api/title/4D530064/online-users/history')).body, [{ online_count: 41 }])
    t.match((await get('/api/network-stats/activity-summary')).body, {
      peakOnline: 87,
      peakLobbies: 3,
      mostPlayedGame: { name: 'Halo 2', titleId: '4d530064', peak: 41 },
      gamesWithActivityCount: 2,
      totalSnapshotCount: 1
    })
  })

  await t.test('the matches of a game are in the answers', async (t) => {
    const { matches } = Matches.parse((await get('/api/title/4D530064/matches')).body)
    t.same(
      matches.map(({ hostName, currentPlayers, maxPlayers }) => [hostName, currentPlayers, maxPlayers]).sort(),
      lobbies.map(({ host, players, most }) => [host, players, most]).sort()
    )
    t.match((await get('/api/title/4d530064/matches/stats')).body, { currentMatches: 3, currentPlayers: 14 })
    t.match((await get('/api/title/4d530064/matches/history')).body, [
      { isOpen: true, durationMinutes: 0 },
      { isOpen: true },
      { isOpen: true }
    ])
  })

  await t.test('a board, its changes and its players are in the answers', async (t) => {
    const path = `/api/game/${encodeURIComponent('HALO 2')}`
    t.match((await get(`${path}/leaderboards`)).body, [{ id: LAPS, name: 'Laps / #1', titleId: '4d530064' }])
    const before = Board.parse((await get(`${path}/leaderboards/${LAPS}`)).body)
    t.same(shownOf(before), ['1 ann 1:01.000', '1 Bob 1:01.000', '3 eve 1:01.500'])
    const { changedAt } = z.array(Change).parse((await get('/api/leaderboard-changes')).body)[0] ?? { changedAt: '' }

    upstream.showGame(halo.titleId, { lobbies: [], boards: [laps([1, 'Bob', 60_500], [2, 'ann', 61_000])] })
    t.match(await gamenetJson(client, ['scrape', 'boards']), [{ source: 'boards', outcome: 'succeeded' }])
    t.match(await settle(), { wait: { caughtUp: true } })
    const now = Board.parse((await get(`${path}/leaderboards/${LAPS}`)).body)
    t.same(shownOf(now), ['1 Bob 1:00.500', '2 ann 1:01.000'])
    const then = Board.parse((await get(`${path}/leaderboards/${LAPS}?asOf=${changedAt}`)).body)
    t.same(then.entries, before.entries, 'as of the instant of the first scrape it is what it was')
    const changes = z.array(Change).parse((await get('/api/leaderboard-changes?game=Halo%202')).body)
    t.same(
      changes
        .filter((change) => change.changedAt !== changedAt)
        .map(({ playerName, changeType, previousRank, newRank }) => [playerName, changeType, previousRank, newRank])
        .sort(),
      [
        ['Bob', 'updated', 1, 1],
        ['eve', 'removed', 3, null]
      ]
    )
    t.equal(changes.length, 5)
    t.match((await get(`${path}/leaderboards/${LAPS}/records`)).body, {
      total: 2,
      records: [{ playerName: /^(ann|Bob)$/ }, { playerName: /^(ann|Bob)$/ }]
    })
    t.match((await get('/api/datasearch/time?time=1:00.499&tolerance=1')).body, {
      count: 1,
      results: [{ player_name: 'Bob', rank: 1, time_ms: 60_500, difference_ms: 1, leaderboard_id: LAPS }]
    })
    t.match((await get('/api/datasearch/player/BOB')).body, { count: 1, results: [{ player_name: 'Bob', rank: 1 }] })
    t.match((await get('/api/datasearch/player/eve')).body, { count: 0, results: [] }, 'who left is found no more')
  })

  await t.test('an unreadable page is a failed scrape without a sample', async (t) => {
    upstream.showText('<html><body>Back soon</body></html>')
    const failed = await gamenet(client, ['scrape', 'network', '--json'])
    t.equal(failed.code, 1)
    t.match(JSON.parse(failed.stdout), [{ outcome: 'failed', published: 0, reason: String }])
    await settle()
    t.match((await get('/api/online-users')).body, { 'Halo 2': { online: 41 } })
    t.match((await get('/api/network-stats/activity-summary')).body, { totalSnapshotCount: 1 })
    upstream.showGame(ride.titleId, { lobbies: [], boards: [laps()] })
    upstream.showGame(halo.titleId, null)
    const partial = await gamenet(client, ['scrape', 'boards', '--json'])
    t.equal(partial.code, 1, 'as is one page among others')
    t.match(JSON.parse(partial.stdout), [{ source: 'boards', outcome: 'partial', reason: /404/ }])
  })

  await t.test('an imported file is in the answers, and a second import changes nothing', async (t) => {
    const file = join(directory, 'online.csv.gz')
    const rows = [
      'Timestamp,Peak',
      '2017-02-17 06:00:00,9234',
      '2017-02-17 07:00:00,',
      '2017-02-17 08:00:00,0',
      'yesterday,5'
    ]
    await writeFile(file, gzipSync(rows.join('\n')))
    const command = ['import', 'network-count', file, '--columns', 'observedAt=Timestamp,online=Peak', '--json']
    const first = await gamenet(client, command)
    t.equal(first.code, 1, 'a bad row is reported by the exit code')
    t.match(JSON.parse(first.stdout), [
      { published: 2, missing: 1, rejected: 1, faults: [{ line: 5, reason: String }] }
    ])
    const path = '/api/network-stats/online-24h?from=2017-02-17T00:00:00Z&to=2017-02-18T00:00:00Z'
    const points = [
      { recorded_at: '2017-02-17 06:00:00', online_count: 9234 },
      { recorded_at: '2017-02-17 08:00:00', online_count: 0 }
    ]
    t.same((await get(path)).body, points)
    t.match(JSON.parse((await gamenet(client, command)).stdout), [{ alreadyDone: true, published: 0 }])
    t.same((await get(path)).body, points)
    t.match((await get('/api/network-stats/daily-online?from=2017-02-16T00:00:00Z&to=2017-02-19T00:00:00Z')).body, [
      { date: '2017-02-17', min_online: 0, max_online: 9234, samples: 2, coverage: 0.083 }
    ])
  })

  await t.test('an invalid request is refused with one sentence', async (t) => {
    for (const [path, status] of [
      ['/api/title/4d53006/online-users/history', 404],
      ['/api/title/ffffffff/online-users/history', 404],
      ['/api/game/No%20Such%20Game', 404],
      ['/api/network-stats/online-24h?days=1e1', 400],
      ['/api/nothing', 404]
    ] as const) {
      const answer = await get(path)
      t.equal(answer.status, status, path)
      t.match(answer.body, { error: /\S/ })
    }
  })
}

function shownOf({ entries }: z.infer<typeof Board>): string[] {
  return entries.map(({ rank, name, timeFormatted }) => `${rank} ${name} ${timeFormatted}`)
}
