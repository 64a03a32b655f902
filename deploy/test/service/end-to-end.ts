import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Test } from 'tap'
import { type Environment, gamenet, gamenetJson } from './gamenet.js'
import type { Upstream, UpstreamTitle } from './upstream.js'

const halo: UpstreamTitle = {
  titleId: '4d530064',
  name: 'Halo 2',
  subtitle: 'Halo 2',
  online: 41,
  lobbies: { players: 16, sessions: 3 }
}
const ride: UpstreamTitle = {
  titleId: '55530036',
  name: "187 Ride & Die / #1 : it's +",
  subtitle: '',
  online: 5,
  lobbies: null
}

/** The whole way, from an upstream page and a file to answers, whatever the engines and however many processes. */
export async function provesTheWholeWay(
  t: Test,
  options: { upstream: Upstream; apiUrl: string; operatorUrl: string; directory: string }
): Promise<void> {
  const { upstream, apiUrl, directory } = options
  const client: Environment = { OPERATOR_URL: options.operatorUrl }
  const get = async (path: string) => {
    const response = await fetch(apiUrl + path)
    return { status: response.status, body: (await response.json()) as unknown }
  }
  const settle = () => gamenetJson(client, ['status', '--wait', '60'])

  await t.test('a scraped page is in the answers', async (t) => {
    upstream.show({ registered: 21_345, online: 87, titles: [halo, ride] })
    t.match(await gamenetJson(client, ['scrape', 'all']), [{ outcome: 'succeeded' }, { outcome: 'succeeded' }])
    t.match(await settle(), { settled: { settled: true } })
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

  await t.test('a page that cannot be read is a failed scrape and no sample', async (t) => {
    upstream.showText('<html><body>Back soon</body></html>')
    const failed = await gamenet(client, ['scrape', 'network', '--json'])
    t.equal(failed.code, 1)
    t.match(JSON.parse(failed.stdout), [{ outcome: 'failed', published: 0, reason: String }])
    await settle()
    t.match((await get('/api/online-users')).body, { 'Halo 2': { online: 41 } })
    t.match((await get('/api/network-stats/activity-summary')).body, { totalSnapshotCount: 1 })
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

  await t.test('what cannot be asked is refused with one sentence', async (t) => {
    for (const [path, status] of [
      ['/api/title/4d53006/online-users/history', 400],
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
