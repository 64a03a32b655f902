import { existsSync, readFileSync } from 'node:fs'
import { migratePostgres, openPglite } from '@gamenet/engines'
import { until } from '@gamenet/engines/testing'
import {
  decodeEvent,
  FIRST_GENERATION,
  type LogExtents,
  type LogMessage,
  networkCountTopic,
  scrapeTopic,
  titleCountTopic,
  titleTopic,
  topics
} from '@gamenet/schemas'
import { Registry } from 'prom-client'
import { type Test, test } from 'tap'
import { createIngest, type IngestOptions, type Log } from '../../src/index.js'
import { type Answer, sendHtml, startPageServer } from '../page-server.js'

const EXAMPLE = new URL('../../../../../shared/data/upstream-home-example.html', import.meta.url)

const NO_INTERVALS = { network: 0, games: 0, matches: 0, boards: 0, players: 0 }

/** A log in memory that can refuse topics. */
function arrayLog() {
  const appended: { topic: string; message: LogMessage }[] = []
  const refusedTopics = new Set<string>()
  const log: Log & LogExtents = {
    async append(topic, messages) {
      if (refusedTopics.has(topic)) throw new Error('no space left on device')
      for (const message of messages) appended.push({ topic, message })
    },
    extents: async () => []
  }
  /** Returns the events of a topic, decoded as by a reader of the log. */
  const eventsOf = (name: string) => {
    const topic = topics.find((known) => known.name === name)
    return appended
      .filter((entry) => entry.topic === name)
      .map(({ message }) => {
        const decoded = topic === undefined ? undefined : decodeEvent(topic, { offset: 0, ...message })
        if (decoded?.ok !== true) throw new Error(`an event of ${name} cannot be read: ${decoded?.reason}`)
        return decoded.event
      })
  }
  return { log, appended, refusedTopics, eventsOf }
}

type Row = { id: string; name?: string; online?: string; lobbies?: string }

function homePage(rows: Row[], numbers: { registered?: string; games?: string; online?: string } = {}): string {
  const { registered = '21,345', games = String(rows.length), online = '87' } = numbers
  const table = rows.map(
    ({ id, name = 'Halo 2', online: players = '5', lobbies = '-' }) =>
      `<tr><td><a href="/games/${id}"><img src="/img/1.png"></a> <a href="/games/${id}">${name}</a><br><small>Sub</small></td>` +
      `<td>MS-100<br><small>${id.toUpperCase()}</small></td><td>${players}</td><td>${lobbies}</td><td></td></tr>`
  )
  return (
    `<html><body><section id="connect"><div class="row"><div><h3>${registered}</h3><p>Registered Users</p></div>` +
    `<div><h3>${games}</h3><p>Games Supported</p></div><div><h3>${online}</h3><p>Users Online Now</p></div></div></section>` +
    `<section id="games"><table><tbody>${table.join('')}</tbody></table></section></body></html>`
  )
}

async function given(t: Test, answer: Answer, options: Partial<IngestOptions> = {}) {
  const server = await startPageServer(t, answer)
  const world = arrayLog()
  const registry = new Registry()
  const clock = { ms: Date.parse('2026-03-14T20:00:00.789Z') }
  const ingest = createIngest({
    log: world.log,
    // Other tests cover the tables of matches and boards.
    tables: { rows: async () => [] },
    serving: async () => FIRST_GENERATION,
    positions: async () => [],
    // Other tests cover leases.
    writes: async () => ({ query: async (sql: string) => (/work_lease/.test(sql) ? [{}] : []) as never[] }),
    people: { seals: async () => new Map(), passedOver() {} },
    upstreamUrl: server.url,
    periods: NO_INTERVALS,
    requestsPerSecond: 1000,
    userAgent: 'gamenet-stats/test',
    registry,
    logger: { info() {}, warn() {}, error() {} },
    now: () => clock.ms,
    ...options
  })
  t.teardown(() => ingest.stop())
  return { ...world, server, registry, clock, ingest }
}

test('a run publishes every count of the home page, and the scrape event last', async (t) => {
  const page = homePage([
    { id: '4d530064', online: '1,041', lobbies: '16 in 3 sessions' },
    { id: '4d53004b', name: 'A/B #1 &amp; Tom&#39;s: +', lobbies: '2 in 1 session' }
  ])
  const { ingest, appended, eventsOf, server } = await given(t, (_, response) => sendHtml(response, page))
  t.match(await ingest.runNow('network'), [{ source: 'network', outcome: 'succeeded', published: 5 }])
  const observedAt = '2026-03-14T20:00:00Z'
  t.same(eventsOf('network-count'), [{ observedAt, registered: 21_345, online: 87, lobbies: 4 }])
  t.same(eventsOf('title-count'), [
    { titleId: '4d530064', observedAt, online: 1041, sessions: 3, lobbyPlayers: 16 },
    { titleId: '4d53004b', observedAt, online: 5, sessions: 1, lobbyPlayers: 2 }
  ])
  t.same(eventsOf('title')[1], {
    titleId: '4d53004b',
    observedAt,
    name: "A/B #1 & Tom's: +",
    title: 'Sub',
    productCode: 'MS-100',
    image: `${server.url}/img/1.png`
  })
  t.equal(appended.at(-1)?.topic, scrapeTopic.name)
  t.equal(appended.at(-1)?.message.headers.ce_source, '/scrape/network')
})

test('an unreadable page is a failed scrape with a reason, an alert, and no sample', async (t) => {
  const { ingest, appended, eventsOf, registry } = await given(t, (_, response) =>
    sendHtml(response, homePage([{ id: '4d530064' }], { online: 'n/a' }))
  )
  t.match(await ingest.runNow('network'), [{ outcome: 'failed', published: 0, reason: /Users Online Now.*"n\/a"/ }])
  t.equal(appended.length, 1)
  t.match(eventsOf('scrape'), [{ source: 'network', outcome: 'failed', reason: /Users Online Now/ }])
  const metrics = await registry.metrics()
  t.match(metrics, /gamenet_scrape_failing\{source="network"\} 1/)
  t.match(metrics, /gamenet_scrape_runs_total\{source="network",outcome="failed"\} 1/)
})

test('an unreadable row is named and has no sample, and the lobby total is left out', async (t) => {
  const rows = [{ id: '4d530064', online: '4.1' }, { id: '4d53004b', lobbies: '2 in 1 session' }, { id: '0000aaaa' }]
  const { ingest, eventsOf } = await given(t, (_, response) =>
    sendHtml(response, homePage([...rows, { id: '0000aaaa', online: '9' }]))
  )
  const [run] = await ingest.runNow('network')
  t.match(run, { outcome: 'partial', reason: /row 1 \(4d530064\).*"4\.1".*title id 0000aaaa is on the rows 3, 4/ })
  t.match(eventsOf('title-count'), [{ titleId: '4d53004b', sessions: 1 }])
  t.equal(eventsOf('title-count').length, 1)
  t.same(eventsOf('network-count'), [{ observedAt: '2026-03-14T20:00:00Z', registered: 21_345, online: 87 }])
})

test('if rows are lost from one page to the next, the lobby total is left out once', async (t) => {
  let rows: Row[] = [
    { id: '0000000a', lobbies: '2 in 1 session' },
    { id: '0000000b', lobbies: '2 in 1 session' }
  ]
  const { ingest, eventsOf } = await given(t, (_, response) => sendHtml(response, homePage(rows, { games: '2' })))
  await ingest.runNow('network')
  rows = rows.slice(1)
  t.match(await ingest.runNow('network'), [{ outcome: 'partial', reason: /shows 1 of 2 games/ }])
  t.match(await ingest.runNow('network'), [{ outcome: 'succeeded' }])
  const lobbies = eventsOf('network-count').map((event) => (event as { lobbies?: number }).lobbies)
  t.same(lobbies, [2, undefined, 1])
})

test('a page that has not changed is a new observation with the new instant', async (t) => {
  const { ingest, eventsOf, clock, server } = await given(t, (request, response) => {
    if (request.headers['if-none-match'] === '"1"') response.writeHead(304).end()
    else sendHtml(response, homePage([{ id: '4d530064' }]), { etag: '"1"' })
  })
  await ingest.runNow('network')
  clock.ms += 60_000
  t.match(await ingest.runNow('network'), [{ outcome: 'succeeded', published: 2 }])
  t.equal(server.requests[1]?.headers['if-none-match'], '"1"')
  t.match(eventsOf('title-count'), [{ observedAt: '2026-03-14T20:00:00Z' }, { observedAt: '2026-03-14T20:01:00Z' }])
})

test('after a broken page the whole page is requested again, without a condition', async (t) => {
  const { ingest, server } = await given(t, (_, response) => sendHtml(response, '<html></html>', { etag: '"1"' }))
  await ingest.runNow('network')
  await ingest.runNow('network')
  t.equal(server.requests[1]?.headers['if-none-match'], undefined)
})

test('a title is described once, and again when its page differs', async (t) => {
  let name = 'Halo 2'
  const { ingest, eventsOf } = await given(t, (_, response) => sendHtml(response, homePage([{ id: '4d530064', name }])))
  await ingest.runNow('all')
  await ingest.runNow('all')
  t.equal(eventsOf('title').length, 2, 'one from each source')
  name = 'Halo 2 Vista'
  await ingest.runNow('games')
  t.match(eventsOf('title')[2], { name: 'Halo 2 Vista' })
  t.equal(eventsOf('title').length, 3)
})

test('a log that refuses fails the run, and the next one publishes everything', async (t) => {
  const { ingest, eventsOf, refusedTopics, registry } = await given(t, (_, response) =>
    sendHtml(response, homePage([{ id: '4d530064' }]))
  )
  refusedTopics.add(titleTopic.name)
  t.match(await ingest.runNow('network'), [{ outcome: 'failed', reason: /refused title: no space left/ }])
  t.match(eventsOf('scrape'), [{ outcome: 'failed' }])
  t.match(await registry.metrics(), /gamenet_scrape_log_refusals_total\{source="network"\} 1/)
  refusedTopics.add(scrapeTopic.name)
  t.match(await ingest.runNow('network'), [{ outcome: 'failed' }], 'not even the scrape event is taken')
  refusedTopics.clear()
  t.match(await ingest.runNow('network'), [{ outcome: 'succeeded' }])
  t.equal(eventsOf(titleTopic.name).length, 1)
  t.equal(eventsOf(titleCountTopic.name).length, 1)
  t.equal(eventsOf(networkCountTopic.name).length, 1)
  t.match(await registry.metrics(), /gamenet_published_events_total\{topic="title-count"\} 1/)
})

test('a run that needs the end of the log fails if the log does not return it, which is not a defect', async (t) => {
  const lines: string[] = []
  const logLine = (details: object, message: string) => lines.push(`${message} ${JSON.stringify(details)}`)
  const away = '7 messages wait in the spool'
  const { ingest } = await given(t, (_, response) => sendHtml(response, ''), {
    log: { append: async () => undefined, extents: async () => Promise.reject(new Error(away)) },
    logger: { info() {}, warn: logLine, error: logLine }
  })
  const reason = `earlier publications cannot be looked up: the end of title in the log is unknown: ${away}`
  t.match(await ingest.runNow('boards'), [{ outcome: 'failed', reason }])
  t.equal(lines.filter((line) => line.includes('defect')).length, 0)
  t.equal(lines.find((line) => line.startsWith('scrape of'))?.split(away).length, 2, 'a line tells its reason once')
})

test('a request during a run joins it', async (t) => {
  const { ingest, server } = await given(t, (_, response) => {
    setTimeout(() => sendHtml(response, homePage([{ id: '4d530064' }])), 20)
  })
  const [first, second] = await Promise.all([ingest.runNow('network'), ingest.runNow('network')])
  t.same(first, second)
  t.equal(server.requests.length, 1)
  t.match(ingest.status(), [{ source: 'network', lastRun: { outcome: 'succeeded' } }, {}])
})

test('sources run by themselves from the start, and those without a period only on request', async (t) => {
  let asked = () => {}
  const twice = new Promise<void>((resolve) => {
    let left = 2
    asked = () => {
      left -= 1
      if (left === 0) resolve()
    }
  })
  const { ingest, server } = await given(
    t,
    (_, response) => {
      asked()
      sendHtml(response, homePage([{ id: '4d530064' }]))
    },
    { periods: { ...NO_INTERVALS, network: 1 } }
  )
  ingest.start()
  await twice
  t.ok(server.requests.every(({ url }) => url === '/'))
})

test('one of two processes scrapes a source by schedule, and the other when that stops', {
  timeout: 60_000
}, async (t) => {
  const writes = await openPglite({ dir: t.testdir() })
  t.teardown(() => writes.close())
  await migratePostgres(writes)
  const process = (network: number) =>
    given(t, (_, response) => sendHtml(response, homePage([{ id: '4d530064' }])), {
      writes: async () => writes,
      periods: { ...NO_INTERVALS, network }
    })
  const [first, second] = [await process(60), await process(1)]
  first.ingest.start()
  await until(() => first.appended.length > 0)
  second.clock.ms += 5_000
  const age = /gamenet_scrape_age_seconds\{source="network"\} 0\n/
  t.notMatch(await second.registry.metrics(), age)
  second.ingest.start()
  await until(async () => age.test(await second.registry.metrics()))
  t.same(second.server.requests, [])
  await first.ingest.stop()
  await until(() => second.appended.length > 0)
  t.equal((await second.ingest.runNow('network'))[0]?.outcome, 'succeeded')
})

test('stopping aborts the running fetch and publishes nothing about it', async (t) => {
  const { ingest, server, appended } = await given(t, () => {}, {
    periods: { ...NO_INTERVALS, network: 60, games: 60 }
  })
  ingest.start()
  while (server.requests.length === 0) await new Promise(setImmediate)
  await ingest.stop()
  t.same(appended, [])
  t.match(await ingest.runNow('network'), [{ outcome: 'failed', reason: 'the service is stopping' }])
  t.same(appended, [])
})

test('the age of a source counts from its last run with samples', async (t) => {
  const { ingest, clock, registry } = await given(
    t,
    (_, response) => sendHtml(response, homePage([{ id: '4d530064' }])),
    { periods: { ...NO_INTERVALS, network: 60 } }
  )
  clock.ms += 5_000
  t.match(await registry.metrics(), /gamenet_scrape_age_seconds\{source="network"\} 5\n/)
  await ingest.runNow('network')
  clock.ms += 2_000
  const metrics = await registry.metrics()
  t.match(metrics, /gamenet_scrape_age_seconds\{source="network"\} 2\n/)
  t.notMatch(metrics, /gamenet_scrape_age_seconds\{source="games"\}/)
})

test('an invalid period is refused at once', async (t) => {
  for (const network of [-1, 0.5, Number.NaN, 1e9]) {
    await t.rejects(
      given(t, () => {}, { periods: { ...NO_INTERVALS, network } }),
      /The period of network must be/
    )
  }
})

test('the example page of a network is read completely', {
  skip: existsSync(EXAMPLE) ? false : 'SKIPPED: ../shared/data/upstream-home-example.html is not here'
}, async (t) => {
  const html = readFileSync(EXAMPLE, 'utf8')
  const { ingest, eventsOf } = await given(t, (_, response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end(html)
  )
  t.match(await ingest.runNow('network'), [{ outcome: 'succeeded', published: 5 }])
  t.match(eventsOf('network-count'), [{ registered: 21_345, online: 87, lobbies: 3 }])
  t.match(eventsOf('title-count'), [
    { titleId: '4d530064', online: 41, sessions: 3, lobbyPlayers: 16 },
    { titleId: '4d53004b', online: 5, sessions: 0, lobbyPlayers: 0 }
  ])
  t.match(eventsOf('title'), [{ name: 'Halo 2' }, { name: 'Project Gotham Racing 2', title: 'PGR2' }])
})
