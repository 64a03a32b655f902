import { join } from 'node:path'
import { test } from 'tap'
import { ask } from './service/ask.js'
import { gamenetJson, openGamenet, startGamenet } from './service/gamenet.js'
import { startUpstream, type UpstreamTitle } from './service/upstream.js'

const DAY = 'from=2017-02-17T00:00:00Z&to=2017-02-18T00:00:00Z'
const COUNTS = 'observedAt,online\n2017-02-17 06:00:00,9234\n2017-02-17 08:00:00,0\n'
const COUNTED = [
  { recorded_at: '2017-02-17 06:00:00', online_count: 9234 },
  { recorded_at: '2017-02-17 08:00:00', online_count: 0 }
]
const halo: UpstreamTitle = { titleId: '4d530064', name: 'Halo 2', subtitle: '', online: 41, lobbies: null }
const ride: UpstreamTitle = { titleId: '55530036', name: '187 Ride / #1', subtitle: '', online: 5, lobbies: null }

/* The short form is stopped-service.test.ts, whose commands find the service by its folder. */

test('two services on one machine do not affect each other', async (t) => {
  const directory = t.testdir({ 'counts.csv': COUNTS })
  const worldOf = async (title: UpstreamTitle) => {
    const upstream = await startUpstream()
    t.teardown(() => upstream.close())
    upstream.show({ registered: 100, online: title.online, titles: [title] })
    return {
      title,
      environment: {
        DATA_DIR: join(directory, title.titleId),
        UPSTREAM_URL: upstream.url,
        SCRAPE_NETWORK_SECONDS: '0',
        SCRAPE_GAMES_SECONDS: '0'
      }
    }
  }
  const [ofLeft, ofRight] = await Promise.all([worldOf(halo), worldOf(ride)])
  const left = { ...ofLeft, service: await startGamenet(ofLeft.environment) }
  t.teardown(() => left.service.kill())
  const right = { ...ofRight, service: await openGamenet(t, ofRight.environment) }
  t.not(left.service.apiUrl, right.service.apiUrl)
  // The command line finds each service by its folder.
  await Promise.all([left, right].map(({ environment }) => gamenetJson(environment, ['scrape', 'all'])))
  const file = join(directory, 'counts.csv')
  t.match(await gamenetJson(left.environment, ['import', 'network-count', file]), [{ published: 2 }])
  await Promise.all([left, right].map(({ environment }) => gamenetJson(environment, ['status', '--wait', '180'])))
  const get = async (side: typeof left | typeof right, path: string) =>
    (await ask(`${side.service.apiUrl}${path}`)).body
  for (const side of [left, right]) {
    const other = side === left ? right : left
    t.same(await get(side, '/api/games'), [side.title.name])
    t.match(await get(side, '/api/network-stats/online-24h'), [{ online_count: side.title.online }])
    t.equal((await ask(`${side.service.apiUrl}/api/game/${other.title.titleId}`)).status, 404)
    t.equal((await ask(`${side.service.apiUrl}/api/title/${other.title.titleId}/online-users/history`)).status, 404)
  }
  t.same(await get(left, `/api/network-stats/online-24h?${DAY}`), COUNTED)
  t.same(await get(right, `/api/network-stats/online-24h?${DAY}`), [], 'an import belongs to one of them')
  t.match(
    await gamenetJson(right.environment, ['import', 'network-count', file]),
    [{ published: 2, alreadyDone: false }],
    'and so does what is known of it'
  )

  const before = await ask(`${right.service.apiUrl}/api/online-users`)
  t.equal(await left.service.stop(), 0, 'one ends')
  const after = await ask(`${right.service.apiUrl}/api/online-users`)
  t.same([after.status, after.text], [200, before.text], 'the other one continues')
  t.match(await gamenetJson(right.environment, ['scrape', 'network']), [{ outcome: 'succeeded' }])
})
