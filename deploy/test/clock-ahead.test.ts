import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { test } from 'tap'
import { clockBack, Status } from '../src/operate/status/operation.js'
import { ask } from './service/ask.js'
import { type Environment, gamenetJson, openGamenet, plainWrites, spawnedGamenet } from './service/gamenet.js'
import { startUpstream } from './service/upstream.js'

const halo = { titleId: '4d530064', name: 'Halo 2', subtitle: 'Halo 2', online: 41, lobbies: null }
const ride = { titleId: '55530036', name: '187 Ride / #1', subtitle: '', online: 5, lobbies: null }

test('a clock that was set back is named, because answers leave later scrapes out', (t) => {
  const ranMs = Date.now()
  t.match(clockBack(ranMs, ranMs - 3_600_000), [/^the newest scrape is 3600 s ahead of this clock; answers leave/])
  t.same(clockBack(ranMs, ranMs - 1000), [])
  t.end()
})

/** Sets the clock of a process two hours ahead. */
const CLOCK_AHEAD = `const Right = Date
globalThis.Date = class extends Right {
  constructor(...given) { super(...(given.length === 0 ? [Date.now()] : given)) }
  static now() { return Right.now() + 7_200_000 }
}`

test('after a start with a clock that was two hours ahead, answers show what is scraped with the right one', async (t) => {
  const directory = t.testdir({ 'ahead.mjs': CLOCK_AHEAD })
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const environment: Environment = {
    DATA_DIR: join(directory, 'data'),
    UPSTREAM_URL: upstream.url,
    SCRAPE_NETWORK_SECONDS: '0',
    SCRAPE_GAMES_SECONDS: '0',
    SCRAPE_MATCHES_SECONDS: '0',
    ...(await plainWrites(t))
  }
  upstream.show({ registered: 9, online: 87, titles: [halo, ride] })
  const ahead = { ...environment, NODE_OPTIONS: `--import ${pathToFileURL(join(directory, 'ahead.mjs'))}` }
  const scraped = await spawnedGamenet(ahead, ['scrape', 'all'])
  t.equal(scraped.code, 0, scraped.stderr)
  upstream.show({ registered: 9, online: 45, titles: [{ ...halo, online: 40 }, ride] })
  await gamenetJson(environment, ['scrape', 'all'])
  const service = await openGamenet(t, environment)
  const status = Status.parse(await gamenetJson(environment, ['status', '--wait', '60']))
  t.match(status.degraded, [/^the newest scrape is 7[12]\d\d s ahead of this clock; answers leave its values out/])
  const nowMs = Date.now()
  t.ok(status.sources.every(({ lastRun }) => lastRun === null || Date.parse(lastRun.observedAt) <= nowMs))
  const { body } = await ask(`${service.apiUrl}/api/online-users`)
  t.match(body, { 'Halo 2': { online: 40 }, '187 Ride / #1': { online: 5 } })
  t.match((await ask(`${service.apiUrl}/api/peaks`)).body, [
    { titleId: null, peak: 45 },
    { titleId: null, peak: 9 }
  ])
})
