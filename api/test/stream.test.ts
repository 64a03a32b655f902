import { deepStrictEqual, ok } from 'node:assert'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { PassThrough, Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { mock } from 'node:test'
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { gunzipSync } from 'node:zlib'
import { runs, until } from '@gamenet/engines/testing'
import { nameKey } from '@gamenet/schemas'
import fc from 'fast-check'
import { Registry } from 'prom-client'
import { type Test, test } from 'tap'
import { clientAddresses } from '../src/request/client-address.js'
import { Channel, Progress } from '../src/stream/channel.js'
import { CURSOR_CHARACTERS_MAX, cursorOf, partitionIdOf, positionText, readCursor } from '../src/stream/cursor.js'
import { Feed } from '../src/stream/feed.js'
import { Hub } from '../src/stream/hub.js'
import type { StreamFilter } from '../src/stream/kinds.js'
import { Listener } from '../src/stream/listener.js'
import { LiveCounts } from '../src/stream/live-counts.js'
import { Share } from '../src/stream/share.js'
import { nameOf, type Recorded, StreamWorld, TestListener, TITLES } from './stream-api.js'
import { exchange, logOfLines } from './support/test-app.js'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

const ROUNDS = 6

type Filter = { kinds?: string[]; titleId?: string; leaderboardId?: number; player?: string; contested?: true }

const KINDS = ['count', 'title-count', 'change', 'record', 'match', 'achievement'] as const

function passes({ kind, titleId, leaderboardId, player, isContested }: Recorded, filter: Filter): boolean {
  return (
    (filter.kinds === undefined || filter.kinds.includes(kind)) &&
    (filter.titleId === undefined || titleId === filter.titleId) &&
    (filter.leaderboardId === undefined || leaderboardId === filter.leaderboardId) &&
    (filter.contested === undefined || isContested === true) &&
    (filter.player === undefined || (player !== undefined && nameKey(player) === nameKey(filter.player)))
  )
}

function drawFilter(draw: () => number): Filter {
  const kind = draw()
  if (kind < 0.3) return { kinds: KINDS.filter(() => draw() < 0.5) }
  if (kind < 0.5) return { titleId: TITLES[Math.floor(draw() * 3)] ?? '' }
  if (kind < 0.7) return { titleId: TITLES[Math.floor(draw() * 3)] ?? '', leaderboardId: 1 }
  if (kind < 0.8) return { player: 'Ann', kinds: ['change', 'record'] }
  if (kind < 0.9) return draw() < 0.5 ? { contested: true } : { contested: true, player: 'Ann' }
  return {}
}

function pathOf(filter: Filter, more: Record<string, string> = {}): string {
  const { kinds = [], titleId, leaderboardId, player, contested } = filter
  const query = new URLSearchParams(more)
  if (kinds.length > 0) query.set('kinds', kinds.join(','))
  if (titleId !== undefined) query.set('titleId', titleId)
  if (leaderboardId !== undefined) query.set('leaderboardId', String(leaderboardId))
  if (player !== undefined) query.set('player', player)
  if (contested !== undefined) query.set('contested', 'true')
  return `/api/stream?${query}`
}

/** What a listener of everything from the start receives, by kind and partition. */
function expected(recorded: readonly Recorded[], filter: Filter): Record<string, string[]> {
  const partitions: Record<string, string[]> = {}
  const inOrder = [...recorded].sort((a, b) => a.epoch - b.epoch || a.offset - b.offset)
  for (const event of inOrder) {
    if (!passes(event, filter.kinds?.length === 0 ? { ...filter, kinds: [...KINDS] } : filter)) continue
    const partitionId = `${event.kind}/${event.epoch}/${event.partition}`
    partitions[partitionId] = [...(partitions[partitionId] ?? []), event.name]
  }
  return partitions
}

test('random listeners with random filters receive each event once, in order, over disconnections', async (t) => {
  let dropRecent = (): void => undefined
  const world = await StreamWorld.open(t, {
    limits: { streamRecentOffsets: 10 },
    onDrop: (drop) => {
      dropRecent = drop
    }
  })
  const draw = random(21)
  await world.record(150, draw)
  const clients = Array.from({ length: runs(12).numRuns }, () => ({
    filter: drawFilter(draw),
    journal: [] as { kind: string; name: string }[],
    cursor: undefined as string | undefined,
    listener: undefined as TestListener | undefined
  }))
  const connect = (client: (typeof clients)[number]): void => {
    const { filter, cursor } = client
    // Half of them resume as EventSource does, the others by the parameter.
    client.listener =
      cursor !== undefined && draw() < 0.5
        ? new TestListener(world.port, pathOf(filter, { after: 'start' }), `Last-Event-ID: ${cursor}\r\n`)
        : new TestListener(world.port, pathOf(filter, { after: cursor ?? 'start' }))
  }
  const disconnect = (client: (typeof clients)[number]): void => {
    for (const event of client.listener?.received ?? []) client.journal.push({ kind: event.kind, name: nameOf(event) })
    client.cursor = client.listener?.cursor ?? client.cursor
    client.listener?.disconnect()
    client.listener = undefined
  }
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const client of clients) {
      if (client.listener === undefined) connect(client)
      else if (draw() < 0.5) disconnect(client)
    }
    await world.record(Math.floor(draw() * 60), draw, round < ROUNDS / 2 ? 1 : 2)
    if (round === ROUNDS / 2) dropRecent()
  }
  for (const client of clients) {
    if (client.listener === undefined) connect(client)
    const total = Object.values(expected(world.recorded, client.filter)).flat().length
    await client.listener?.until(({ received }) => received.length + client.journal.length >= total)
    disconnect(client)
    const partitionId = (name: string, kind: string) => {
      const event = world.recorded.find((each) => each.kind === kind && each.name === name)
      return `${kind}/${event?.epoch}/${event?.partition}`
    }
    const partitions: Record<string, string[]> = {}
    for (const { kind, name } of client.journal) {
      partitions[partitionId(name, kind)] = [...(partitions[partitionId(name, kind)] ?? []), name]
    }
    deepStrictEqual(partitions, expected(world.recorded, client.filter), JSON.stringify(client.filter))
  }
  t.pass()
})

const get = (world: StreamWorld, query: string, headers: Record<string, string> = {}) =>
  world.api.get(`/api/stream${query}`, headers)

test('a request that cannot be followed is refused in a sentence that says why', async (t) => {
  const world = await StreamWorld.open(t)
  await world.record(50, random(1))
  const cursor = (await get(world, '?wait=0&kinds=change&after=start')).json().cursor
  const refused = async (query: string, sentence: RegExp, headers: Record<string, string> = {}, status = 400) => {
    const { statusCode, body } = await get(world, query, headers)
    t.match([statusCode, JSON.parse(body).error], [status, sentence], query.slice(0, 60))
  }
  await refused(
    '?kinds=count,x',
    /^kinds must be some of count, title-count, change, record, match, achievement, live-counts, sep/
  )
  await refused('?kinds=', /kinds must be/)
  await refused('?knownAt=2026-03-14T20:00:00Z', /^knownAt is not a parameter of \/api\/stream, but of \/api\//)
  await refused(
    '?kinds=count&titleId=4d530001',
    /kinds=count cannot be filtered by titleId; leave it out or ask for title-/
  )
  await refused('?kinds=title-count&player=ann', /cannot be filtered by player/)
  await refused(
    '?kinds=record,change&contested=true',
    /kinds=change cannot be filtered by contested; .* ask for record\.$/
  )
  await refused('?contested=yes', /contested must be/)
  await refused('?titleId=4d530001&game=Halo', /give one of them/)
  await refused('?leaderboardId=1', /needs titleId or game/)
  await refused('?kinds=live-counts&wait=0', /live-counts has no events to wait for; leave out wait/)
  await refused('?game=nothing', /No game "nothing"/, {}, 404)
  for (const text of ['x', '~~', cursor.slice(1), `${cursor}A`, cursor.toLowerCase(), encodeURIComponent('é')]) {
    await refused(`?kinds=change&after=${text}`, /it is broken/)
  }
  // With a right checksum.
  const fingerprint = fingerprintIn(cursor)
  for (const position of ['70000E0P1', '0E70000P1', '0E65535P1-1', '1', '0E0P1E1E1E1E1', `0E0P${'z'.repeat(300)}`]) {
    await refused(`?kinds=change&after=${cursorOf(fingerprint, [position, ''])}`, /it is broken/)
  }
  for (const position of ['1E0Pzzz', '1E9P0']) {
    await refused(`?kinds=change&after=${cursorOf(fingerprint, [position, ''])}`, /it is beyond everything/)
  }
  await refused(`?kinds=record&after=${cursor}`, /it belongs to another filter/)
  await refused(`?kinds=change&titleId=4d530001&after=${cursor}`, /it belongs to another filter/)
  const ofRecords = (await get(world, '?wait=0&kinds=record&after=start')).json().cursor
  await refused(`?kinds=record&contested=true&after=${ofRecords}`, /it belongs to another filter/)
  t.equal((await get(world, `?wait=0&kinds=record&contested=false&after=${ofRecords}`)).statusCode, 200)
  for (const [lastEventId, reason] of [
    ['x', 'it is broken'],
    [ofRecords, 'it belongs to another filter'],
    [cursorOf(fingerprint, ['1E0Pzzz', '']), 'it is beyond everything']
  ]) {
    const sentence = new RegExp(`^The header Last-Event-ID is not a cursor of this feed: ${reason}`)
    await refused('?kinds=change&after=now', sentence, { 'last-event-id': lastEventId })
  }
  await refused('?kinds=change&after=x', /^after is not a cursor of this feed: it is broken/, { 'last-event-id': '' })
  await refused('?kinds=change', /Last-Event-ID must be a cursor of at most 12000 characters/, {
    'last-event-id': 'x'.repeat(12_001)
  })
  const restarted = await StreamWorld.reopen(t, world)
  const { statusCode, body } = await restarted.inject({ url: `/api/stream?kinds=change&after=${cursor}` })
  t.match([statusCode, JSON.parse(body).error], [400, /it is beyond everything/])
  t.equal((await world.api.get('/api/events')).statusCode, 404, 'clients poll it and parse one JSON body')
  t.equal((await world.api.app.inject({ url: '/api/stream', method: 'HEAD' })).statusCode, 200)
  t.equal((await world.api.app.inject({ url: '/api/stream', method: 'POST' })).statusCode, 405)
  const huge = new TestListener(world.port, '/api/stream', `Last-Event-ID: ${'x'.repeat(1_000_000)}\r\n`)
  await huge.closed
  t.match(huge.text, /^HTTP\/1.1 431 /)
})

test('only contested records are streamed on request, from the past and live, in every format', async (t) => {
  const world = await StreamWorld.open(t)
  await world.record(150, random(24))
  const names = () => world.recorded.filter(({ isContested }) => isContested).map(({ name }) => name)
  const past = names()
  t.ok(past.length < world.recorded.filter(({ kind }) => kind === 'record').length && past.length > 0)
  const listener = new TestListener(world.port, pathOf({ contested: true }, { after: 'start' }))
  await listener.until(({ received }) => received.length >= past.length)
  const poll = (await get(world, '?wait=0&contested=true&after=start')).json()
  const url = `http://127.0.0.1:${world.port}/api/stream?kinds=record&contested=true&after=`
  const lines = linesOf(`${url}start`, { accept: 'application/x-ndjson' }, past.length)
  const shown = (events: readonly Line[]) =>
    events.map((event) => nameOf({ cursor: undefined, kind: event.kind, data: event })).toSorted()
  t.same(shown(poll.events), past.toSorted())
  t.same(shown(await lines), past.toSorted())
  await world.record(60, random(25))
  await world.retract('9'.repeat(32), 'leaderboard-entry')
  const all = names()
  t.ok(all.length > past.length)
  await listener.until(({ received }) => received.length > all.length)
  const received = listener.received.map(({ kind, data }) =>
    kind === 'retracted' ? kind : nameOf({ cursor: undefined, kind, data })
  )
  t.same(received.toSorted(), [...all, 'retracted'].toSorted())
  // A poll answers as soon as there is one event, and another kind may be read first.
  const news: Line[] = []
  for (let { cursor } = poll; news.length <= all.length - past.length; ) {
    const page = (await get(world, `?wait=5&contested=true&after=${cursor}`)).json()
    if (page.events.length === 0) break
    news.push(...page.events)
    cursor = page.cursor
  }
  t.same(shown(news.filter(({ kind }) => kind === 'record')), all.slice(past.length).toSorted())
})

test('a long poll answers with what is there, else when something comes, else at its end', async (t) => {
  const world = await StreamWorld.open(t)
  await world.record(1200, random(2))
  const names: string[] = []
  let cursor = 'start'
  for (let hasMore = true; hasMore; ) {
    const page = (await get(world, `?wait=0&kinds=count&after=${cursor}`)).json()
    t.ok(page.events.length <= 500)
    names.push(...page.events.map((each: { data: { online_count: number } }) => String(each.data.online_count)))
    hasMore = page.events.length > 0
    cursor = page.cursor
  }
  t.same(
    names.sort(),
    Object.values(expected(world.recorded, { kinds: ['count'] }))
      .flat()
      .sort()
  )
  const path = '/api/stream?wait=0&kinds=count&after=start'
  const [plain, zipped] = await Promise.all([world.api.get(path), world.api.get(path, { 'accept-encoding': 'gzip' })])
  t.equal(zipped.headers['content-encoding'], 'gzip')
  t.equal(String(gunzipSync(zipped.rawPayload)), plain.body)
  t.ok(
    zipped.rawPayload.length < plain.rawPayload.length / 4,
    `${zipped.rawPayload.length} of ${plain.rawPayload.length}`
  )
  const waiting = get(world, `?wait=60&kinds=count&after=${cursor}`)
  await get(world, '?wait=0&kinds=count&after=now')
  await world.record(40, random(3))
  const { events, cursor: next } = (await waiting).json()
  t.match(events[0], { kind: 'count', data: { lobby_count: 3 }, cursor: /^[\w-]+$/ })
  t.same((await get(world, '?wait=0&kinds=count&after=now')).json().events, [])
  t.not(next, cursor)
})

test('a long poll ends in time, also while older tables are served', async (t) => {
  const world = await StreamWorld.open(t, { limits: { streamRecentOffsets: 10 } })
  await world.record(600, random(8))
  await get(world, '?wait=0&kinds=count&after=now')
  // After a rollback the tables have to catch up.
  for (const position of world.api.positions) {
    if (position.name === 'project:network-count') Object.assign(position, { next: 5 })
  }
  await world.api.changed('network-count')
  let cursor = 'start'
  for (let events = [undefined]; events.length > 0; ) {
    const page = (await get(world, `?wait=0&kinds=count&after=${cursor}`)).json()
    events = page.events
    cursor = page.cursor
  }
  t.not(cursor, 'start')
})

test('a long poll whose client left before the first look at the tables takes no slot', async (t) => {
  const look = gate()
  const world: StreamWorld = await StreamWorld.open(t, {
    limits: { streamsMax: 1 },
    positions: async (_serving, names) => {
      await look.opened
      return world.api.positions.filter(({ name }) => names.includes(name))
    }
  })
  const { server } = world.api.app
  const requested = once(server, 'request')
  const poll = new TestListener(world.port, '/api/stream?wait=60&kinds=count')
  const [{ socket }] = (await requested) as [{ socket: Socket }]
  const closed = once(socket, 'close')
  poll.disconnect()
  await closed
  t.equal((await get(world, '?wait=0&kinds=count')).statusCode, 503)
  look.open()
  let status = 503
  for (let n = 0; n < 100 && status === 503; n += 1) {
    await nextTurn()
    status = (await get(world, '?wait=0&kinds=count')).statusCode
  }
  t.equal(status, 200)
})

test('a connection whose stream has not begun when the service stops is broken, so that EventSource reconnects', async (t) => {
  const registry = new Registry()
  const { logger, lines } = logOfLines('warn')
  const look = gate()
  const world: StreamWorld = await StreamWorld.open(t, {
    registry,
    logger,
    positions: async (_serving, names) => {
      await look.opened
      return world.api.positions.filter(({ name }) => names.includes(name))
    }
  })
  await world.record(50, random(17))
  const listeners = ['', '?wait=60'].map((query) => new TestListener(world.port, `/api/stream${query}`))
  await until(async () => (await openStreams(registry)) >= listeners.length, nextTurn)
  for (let n = 0; n < 100; n += 1) await nextTurn()
  const stopped = world.api.app.close()
  await nextTurn()
  look.open()
  await stopped
  for (const { closed } of listeners) await closed
  t.same(
    listeners.map(({ text }) => text),
    ['', '']
  )
  t.same(lines, [])
})

test('nothing is read for polls that wait for a page when their clients leave or the service stops', async (t) => {
  for (const ends of ['clients', 'service'] as const) {
    const registry = new Registry()
    const { logger, lines } = logOfLines('warn')
    let reads = 0
    const read = gate()
    let isHeld = false
    const world: StreamWorld = await StreamWorld.open(t, {
      limits: { streamRecentOffsets: 10 },
      registry,
      logger,
      positions: async (_serving, names) => {
        reads += 1
        if (isHeld) await read.opened
        return world.api.positions.filter(({ name }) => names.includes(name))
      }
    })
    await world.record(600, random(16))
    await get(world, '?wait=0&kinds=count&after=now')
    isHeld = true
    reads = 0
    const left: Promise<unknown>[] = []
    world.api.app.server.on('connection', (socket: Socket) => left.push(once(socket, 'close')))
    const path = '/api/stream?wait=60&kinds=count&after=start'
    const polls = Array.from({ length: 20 }, () => new TestListener(world.port, path))
    await until(async () => reads >= 2 && (await openStreams(registry)) >= polls.length, nextTurn)
    if (ends === 'clients') for (const poll of polls) poll.disconnect()
    else void world.api.app.close()
    if (ends === 'clients') await Promise.all(left)
    read.open()
    await Promise.all(left)
    await until(async () => (await openStreams(registry)) === 0, nextTurn)
    t.equal(reads, 2)
    if (ends === 'service') for (const { text } of polls) t.match(text, /^HTTP\/1.1 200 /)
    else t.equal((await get(world, '?wait=0&kinds=count&after=start')).statusCode, 200)
    t.notMatch(await registry.metrics(), /route="\/api\/stream",method="GET",status="5/)
    t.same(lines, [])
  }
})

test('a long poll ends with the service, also while its page cannot be read', async (t) => {
  let looks = 0
  const world: StreamWorld = await StreamWorld.open(t, {
    limits: { streamRecentOffsets: 10 },
    positions: async (_serving, names) => {
      looks += 1
      return world.api.positions.filter(({ name }) => names.includes(name))
    }
  })
  await world.record(600, random(8))
  await get(world, '?wait=0&kinds=count&after=now')
  for (const position of world.api.positions) {
    if (position.name === 'project:network-count') Object.assign(position, { next: 0 })
  }
  const before = looks
  const polling = get(world, '?wait=60&kinds=count&after=start')
  await until(() => looks !== before, nextTurn)
  const during = looks
  await world.api.app.close()
  t.match([(await polling).statusCode, (await polling).json()], [200, { events: [] }])
  t.ok(looks <= during + 1, `${looks - during} looks at the tables since`)
})

test('streams that wait for the first look at the tables begin in turns', async (t) => {
  const look = gate()
  const world: StreamWorld = await StreamWorld.open(t, {
    positions: async (_serving, names) => {
      await look.opened
      return world.api.positions.filter(({ name }) => names.includes(name))
    }
  })
  await world.record(50, random(14))
  const { server } = world.api.app
  const sockets: Socket[] = []
  server.on('connection', (socket: Socket) => sockets.push(socket))
  let requests = 0
  server.on('request', () => {
    requests += 1
  })
  const listeners = Array.from({ length: 200 }, () => new TestListener(world.port, '/api/stream?after=start'))
  await until(() => requests >= listeners.length, nextTurn)
  for (let n = 0; n < listeners.length; n += 1) await nextTurn()
  look.open()
  let [begun, most] = [0, 0]
  await until(() => {
    const now = sockets.filter(({ bytesWritten }) => bytesWritten > 0).length
    most = Math.max(most, now - begun)
    begun = now
    return begun >= listeners.length
  }, nextTurn)
  t.ok(most <= 16, `${most} in one turn`)
  for (const listener of listeners) listener.disconnect()
})

test('a request is accepted before most of the streams have begun that came before it', async (t) => {
  const world = await StreamWorld.open(t)
  await world.record(50, random(18))
  await get(world, '?wait=0')
  const { server } = world.api.app
  const sockets: Socket[] = []
  server.on('connection', (socket: Socket) => sockets.push(socket))
  const accepted = new Promise<number>((resolve) =>
    server.on('request', ({ url }) => {
      if (url === '/api/online-users') resolve(sockets.filter(({ bytesWritten }) => bytesWritten > 0).length)
    })
  )
  const listeners = Array.from({ length: 200 }, () => new TestListener(world.port, '/api/stream?after=start'))
  const other = new TestListener(world.port, '/api/online-users')
  t.ok((await accepted) <= 100, `${await accepted} of 200 have begun`)
  for (const each of [...listeners, other]) each.disconnect()
})

test('streams begin soon also while other work fills each turn', async (t) => {
  const world = await StreamWorld.open(t)
  await world.record(50, random(19))
  await get(world, '?wait=0')
  const sockets: Socket[] = []
  world.api.app.server.on('connection', (socket: Socket) => sockets.push(socket))
  const listeners = Array.from({ length: 50 }, () => new TestListener(world.port, '/api/stream?after=start'))
  let turns = 0
  const busyTurn = async () => {
    for (const endsAt = performance.now() + 5; performance.now() < endsAt; );
    await nextTurn()
    turns += 1
  }
  await until(() => sockets.filter(({ bytesWritten }) => bytesWritten > 0).length >= listeners.length, busyTurn)
  t.ok(turns < 200, `${turns} turns`)
  for (const listener of listeners) listener.disconnect()
})

test('a long poll of a quiet stream ends in time, also when garbage is collected', async (t) => {
  const world = await StreamWorld.open(t)
  const answered = new AbortController()
  const polling = get(world, '?wait=1&kinds=count').finally(() => answered.abort())
  for (let n = 0; n < 50 && !answered.signal.aborted; n += 1) {
    await wait(100, undefined, { signal: answered.signal }).catch(() => undefined)
    collectGarbage()
  }
  t.ok(answered.signal.aborted)
  await world.record(40, random(11))
  t.equal((await polling).statusCode, 200)
})

test('after a restore, listeners behind the end of the backup continue with the next epoch', async (t) => {
  const world = await StreamWorld.open(t, { epoch: 2, limits: { streamKeepAliveMs: 50 } })
  await world.record(50, random(9))
  const { cursor } = (await get(world, '?wait=0&kinds=change&after=now')).json()
  const fingerprint = fingerprintIn(cursor)
  // The restored log has less of the first epoch, and no undone import.
  const lost = cursorOf(fingerprint, ['1E0Pzzz-zzz', '1E0P1'])
  const listener = new TestListener(world.port, `/api/stream?kinds=change&after=${lost}`)
  await listener.until(({ text }) => /\n:\n\n/.test(text))
  await world.record(50, random(10), 2)
  const news = expected(
    world.recorded.filter(({ epoch }) => epoch === 2),
    { kinds: ['change'] }
  )
  const names = Object.values(news).flat()
  await listener.until(({ received }) => received.length >= names.length)
  t.same(listener.received.map(nameOf).sort(), names.sort())
  await world.retract('c'.repeat(32), 'leaderboard-entry', 2)
  await listener.until(({ received }) => received.at(-1)?.kind === 'retracted')
  const { text } = listener
  await listener.until((each) => /^id: [\w-]+\ndata:\n\n$/m.test(each.text.slice(text.length)))
  t.equal(listener.received.length, names.length + 1)
  listener.disconnect()
})

test('a listener of an epoch that a second restore of the backup has dropped continues with the events since', async (t) => {
  const world = await StreamWorld.open(t, { epoch: 2 })
  await world.record(50, random(9))
  const { cursor } = (await get(world, '?wait=0&kinds=change&after=now')).json()
  const fingerprint = fingerprintIn(cursor)
  const lost = cursorOf(fingerprint, ['1E0Pzzz-zzz-5E0Pzzz', '1E0P1'])
  const listener = new TestListener(world.port, `/api/stream?kinds=change&after=${lost}`)
  await world.record(50, random(10), 2)
  const news = world.recorded.filter(({ epoch }) => epoch === 2)
  const names = Object.values(expected(news, { kinds: ['change'] })).flat()
  await listener.until(({ received }) => received.length >= names.length)
  t.same(listener.received.map(nameOf).sort(), names.sort())
  listener.disconnect()
})

test('all events of an epoch come before those of the next one', async (t) => {
  let known = Promise.resolve()
  const world: StreamWorld = await StreamWorld.open(t, {
    epoch: 3,
    positions: async (_serving, names) => {
      await known
      return world.api.positions.filter(({ name }) => names.includes(name))
    }
  })
  const counts = () => 0
  // More than a page of each, so that one look for new events does not read all.
  await world.record(4500, counts, 1)
  await world.record(6000, counts, 2)
  const listener = new TestListener(world.port, '/api/stream?kinds=count&after=start')
  const receivesAll = async () => {
    await listener.until(({ received }) => received.length >= world.recorded.length)
    const names = world.recorded.map(({ name }) => name)
    t.equal(
      listener.received.map(nameOf).findIndex((name, n) => name !== names[n]),
      -1
    )
  }
  await receivesAll()
  // The epoch rises while this process runs.
  const know = gate()
  known = know.opened
  await world.record(4500, counts, 2)
  await world.record(10, counts, 3)
  know.open()
  await receivesAll()
  listener.disconnect()
})

test('a position behind the end of an older epoch is ahead until that epoch was read to its end', (t) => {
  const feed = new Feed('count')
  const lost = new Map([['1.0', [9]]])
  feed.setExtents([
    { partitionId: '1.0', readable: 5, loaded: 6 },
    { partitionId: '2.0', readable: 1, loaded: 1 }
  ])
  feed.begin('1.0', [3])
  feed.begin('2.0', [1])
  t.ok(feed.isAhead(lost))
  feed.moveTo('1.0', [5])
  t.ok(feed.isAhead(lost), 'more is loaded')
  feed.setExtents([{ partitionId: '1.0', readable: 6, loaded: 6 }])
  t.ok(feed.isAhead(lost), 'more is readable')
  feed.moveTo('1.0', [6])
  t.notOk(feed.isAhead(lost))
  t.ok(feed.isAhead(new Map([['2.0', [2]]])), 'the newest epoch continues')
  t.end()
})

test('a cursor of one process continues in another one that serves older tables, over each way to read', async (t) => {
  const world = await StreamWorld.open(t)
  await world.record(120, random(13))
  const newest = [...world.api.positions]
  const positions = newest.map((each) => ({ ...each, next: each.name.startsWith('project:') ? 0 : each.next }))
  const other = await StreamWorld.reopen(t, world, positions)
  await other.listen({ host: '127.0.0.1', port: 0 })
  const { port } = other.server.address() as AddressInfo
  const poll = async (app: typeof other, after: string): Promise<Line[]> => {
    const { events, cursor } = (await app.inject({ url: `/api/stream?wait=0&after=${after}` })).json()
    return events.length === 0 ? [] : [...events, ...(await poll(app, cursor))]
  }
  const all = await poll(world.api.app, 'start')
  const { cursor } = all[Math.floor(all.length / 2)] as Line
  const rest = all.slice(Math.floor(all.length / 2) + 1)
  const listeners = [
    new TestListener(port, `/api/stream?after=${cursor}`),
    new TestListener(port, '/api/stream?after=start', `Last-Event-ID: ${cursor}\r\n`)
  ]
  const headers = { accept: 'application/x-ndjson' }
  const lines = linesOf(`http://127.0.0.1:${port}/api/stream?after=${cursor}`, headers, rest.length)
  const waiting = other.inject({ url: `/api/stream?wait=60&after=${cursor}` })
  t.same(await poll(other, cursor), [], 'older tables are served')
  positions.splice(0, positions.length, ...newest)
  await world.api.changed('network-count')
  const { events, cursor: next } = (await waiting).json()
  const followed: Record<string, Line[]> = { poll: [...events, ...(await poll(other, next))], lines: await lines }
  for (const [n, listener] of listeners.entries()) {
    await listener.until(({ received }) => received.length >= rest.length)
    followed[`sse ${n}`] = listener.received.map(({ data }) => data as Line)
    listener.disconnect()
  }
  const names = (lines: readonly Line[]) =>
    lines.map((data) => `${data.kind} ${nameOf({ cursor: undefined, kind: data.kind, data })}`).sort()
  for (const [way, each] of Object.entries(followed)) t.same(names(each), names(rest), way)
})

test('a cursor of a program without the last kind continues, and that kind begins at its start', async (t) => {
  const world = await StreamWorld.open(t)
  await world.record(200, random(15))
  const { cursor } = (await get(world, '?wait=0&after=now')).json()
  const parts = cursor.slice(10).split('_')
  // Behind the positions stands the checksum, before it the position of undone imports.
  const older = cursorOf(fingerprintIn(cursor), [...parts.slice(0, -3), parts.at(-2) ?? ''])
  const names = async (query: string) => {
    const { events } = (await get(world, `?wait=0&${query}`)).json()
    return events.map((data: Line) => `${data.kind} ${nameOf({ cursor: undefined, kind: data.kind, data })}`)
  }
  const achievements = await names('kinds=achievement&after=start')
  t.ok(achievements.length > 0)
  t.same(await names(`after=${older}`), achievements)
})

test('a cursor has the positions that it was made of, and fits into a URL after many restores', (t) => {
  const { fingerprint } = new Channel({ kinds: null, titleId: null, leaderboardId: null, playerKey: null })
  const entry = fc.tuple(
    fc.integer({ min: 0, max: 65_535 }),
    fc.integer({ min: 0, max: 65_535 }),
    fc.array(fc.maxSafeNat(), { minLength: 1, maxLength: 4 })
  )
  const position = fc.array(entry, { maxLength: 20 })
  const property = fc.property(fc.array(position, { minLength: 1, maxLength: 7 }), (drawn) => {
    const positions = drawn.map(
      (entries) => new Map(entries.map(([e, p, place]) => [partitionIdOf({ epoch: e, partition: p }), place]))
    )
    const cursor = cursorOf(fingerprint, positions.map(positionText))
    deepStrictEqual(readCursor(fingerprint, positions.length, cursor), positions)
    ok(/^[\w-]+$/.test(cursor))
  })
  fc.assert(property, runs(200))
  const full = new Map<string, number[]>()
  for (let epoch = 1; epoch <= 4; epoch += 1) {
    for (let partition = 0; partition < 64; partition += 1)
      full.set(partitionIdOf({ epoch, partition }), [60e6 + partition])
  }
  const longest = cursorOf(
    fingerprint,
    Array.from({ length: 7 }, () => positionText(full))
  )
  t.ok(longest.length <= CURSOR_CHARACTERS_MAX, `${longest.length} characters`)
  t.same(
    readCursor(fingerprint, 7, longest),
    Array.from({ length: 7 }, () => full)
  )
  t.end()
})

test('a stream whose cursor would be too long to send is refused before it begins', async (t) => {
  const world: StreamWorld = await StreamWorld.open(t, {
    limits: { streamRecentOffsets: 0 },
    positions: async (_serving, names) =>
      names.flatMap((name) =>
        Array.from({ length: 1000 }, (_, n) => ({ name, epoch: 1, partition: 999 - n, next: 36 ** 3 }))
      )
  })
  const { statusCode, body } = await get(world, '?after=now&wait=0')
  t.match(
    [statusCode, JSON.parse(body).error],
    [400, /A cursor of so many kinds has \d+ characters, .* ask for fewer kinds/]
  )
  const { cursor } = (await get(world, '?kinds=match&after=now&wait=0')).json()
  t.equal((await get(world, `?kinds=match&after=${cursor}&wait=0`)).statusCode, 200)
})

test('cursors that a program has given are valid in every later one', (t) => {
  const all = { kinds: null, titleId: null, leaderboardId: null, playerKey: null }
  const positionsOf = (filter: StreamFilter, cursor: string) => {
    const { fingerprint, kinds } = new Channel(filter)
    const positions = readCursor(fingerprint, kinds.length, cursor)
    return kinds.map((kind, n) => `${kind} ${[...(positions[n] ?? [])].join(' ')}`)
  }
  const cursor = '0RBNvo1Wz_1E0P1_1E0P2_1E0P3_1E0P4_1E0P5_1E0P6_1E0P7-2E0P10_t7ql7y'
  const kinds = ['count 1.0,1', 'title-count 1.0,2', 'change 1.0,3', 'record 1.0,4', 'match 1.0,5', 'achievement 1.0,6']
  t.same(positionsOf(all, cursor), [...kinds, 'retracted 1.0,7 2.0,36'])
  const ofTitle = '08isMDnKl_1E0P2_1E0P3_1E0P4_1E0P5_1E0P6_1E0P7_1yeab02'
  t.same(positionsOf({ ...all, titleId: '4d530001' }, ofTitle), [...kinds.slice(1), 'retracted 1.0,7'])
  const board = { kinds: ['change'], titleId: '4d530001', leaderboardId: 1, playerKey: 'ann' } as const
  t.same(positionsOf(board, '08k9kdf1E_1E3PzzE1E3E2s__zyatqx'), ['change 1.3,1295,1,3,100', 'retracted '])
  t.end()
})

/** The characters behind the first one. */
function fingerprintIn(cursor: string): string {
  return cursor.slice(1, 9)
}

type Line = { readonly cursor: string; readonly kind: string; readonly data: unknown }

function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

async function openStreams(registry: Registry): Promise<number> {
  return Number(/^gamenet_streams (\d+)$/m.exec(await registry.metrics())?.[1])
}

/** Reads so many events of a stream of lines. */
async function linesOf(url: string, headers: Record<string, string>, count: number): Promise<Line[]> {
  const response = await fetch(url, { headers })
  const events: Line[] = []
  for await (const line of createInterface({ input: Readable.fromWeb(response.body as ReadableStream) })) {
    if (line.includes('"kind"')) events.push(JSON.parse(line))
    if (events.length === count) break
  }
  return events
}

test('a failed run is retried at growing intervals until it succeeds', async (t) => {
  const { timers } = mock
  timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => timers.reset())
  const pass = async (ms: number) => {
    timers.tick(ms)
    await new Promise(setImmediate)
  }
  let [isAway, failures] = [true, 0]
  let changed = (): void => undefined
  const online: number[] = [1]
  const filter = { kinds: ['live-counts'], titleId: null, leaderboardId: null, playerKey: null } as const
  const channels = [new Channel(filter)]
  const counts = new LiveCounts({
    versions: {
      versionOf: () => online.length,
      onChange: (listener) => {
        changed = listener
        return () => undefined
      }
    },
    compute: async () => {
      if (isAway && online.length > 1) throw new Error('the engine is away')
      return { Halo: { online: online.at(-1) } }
    },
    channels: () => channels,
    onFailure: () => {
      failures += 1
    }
  })
  await counts.ready()
  online.push(2)
  changed()
  await pass(0)
  t.equal(failures, 1)
  for (const ms of [250, 500, 1000]) {
    const before = failures
    await pass(ms - 1)
    t.equal(failures, before)
    await pass(1)
    t.equal(failures, before + 1)
  }
  isAway = false
  await pass(2000)
  t.match(counts.frame('ndjson'), /"Halo":{"online":2}/)
  channels.pop()
  online.push(3)
  changed()
  await pass(0)
  t.notOk(counts.isReady, 'nothing is computed without a listener')
  await counts.ready()
  t.match(counts.frame('ndjson'), /"Halo":{"online":3}/)
  counts.close()
})

test('an undone import is sent to those whose kinds it concerns', async (t) => {
  const world = await StreamWorld.open(t)
  await world.record(20, random(4))
  const listener = new TestListener(world.port, '/api/stream?kinds=title-count&titleId=4d530001')
  const other = new TestListener(world.port, '/api/stream?kinds=match')
  await Promise.all([listener, other].map((each) => each.until(({ cursor }) => cursor !== undefined)))
  const importId = 'a'.repeat(32)
  await world.retract(importId, 'title-count')
  await listener.until(({ received }) => received.length > 0)
  t.match(listener.received, [{ kind: 'retracted', data: { data: { importId, kinds: ['title-count'] } } }])
  await world.retract('b'.repeat(32), 'match-list')
  await other.until(({ received }) => received.length > 0)
  t.match(other.received, [{ data: { data: { importId: 'b'.repeat(32), kinds: ['match'] } } }])
  await world.api.model.clickhouse.loader.execute('TRUNCATE TABLE event_title_count__0')
  await world.retract('c'.repeat(32), 'title-count')
  await listener.until(({ received }) => received.length > 1)
  const past = (await get(world, '?wait=0&kinds=title-count&titleId=0000beef&after=start')).json()
  t.same(
    past.events.map(({ kind }: { kind: string }) => kind),
    ['retracted', 'retracted'],
    'in the past, too, and without its events'
  )
  for (const each of [listener, other]) each.disconnect()
})

test('an erasure forgets recent events: deleted rows are in no stream of the past', async (t) => {
  let forget = (): void => undefined
  const world = await StreamWorld.open(t, {
    onDrop: (drop) => {
      forget = drop
    }
  })
  await world.record(60, random(12))
  const users = async (after = 'start'): Promise<string[]> => {
    const { events, cursor } = (await get(world, `?wait=0&kinds=achievement&after=${after}`)).json()
    const names: string[] = events.map(({ data }: { data: { username: string } }) => data.username)
    return names.length === 0 ? [] : [...names, ...(await users(cursor))].sort()
  }
  const before = await users()
  t.ok(before.length > 0)
  await world.api.model.clickhouse.loader.execute('TRUNCATE TABLE event_achievement_unlock__0')
  t.same(await users(), before, 'recent events are in memory')
  forget()
  t.same(await users(), [])
})

test('an erasure leaves no recent event in memory', (t) => {
  const feed = new Feed('achievement')
  feed.begin('1.0', [0])
  feed.add({ partitionId: '1.0', next: [1], body: '{"username":"ann"}' } as never)
  const recent = () => feed.since('1.0', [0], 10, () => true).events.length
  t.equal(recent(), 1)
  feed.dropRecent()
  t.equal(recent(), 0)
  t.end()
})

test('live counts are a state first, then what differs', async (t) => {
  const world = await StreamWorld.open(t)
  const store = async (online: Record<string, number>, second: number) => {
    const at = `2026-03-14 20:00:0${second}.000`
    const rows = Object.entries(online).map(([id, count]) => [false, id, at, count, 1, 2, String(second + 1)])
    const columns = ['imported', 'title_id', 'ts', 'online', 'sessions', 'lobby_players', 'version']
    await world.api.model.insert('title_latest', columns, rows)
    await world.api.changed('title-latest')
  }
  await store({ '4d530001': 5, '4d530002': 7 }, 0)
  const listener = new TestListener(world.port, '/api/stream?kinds=live-counts')
  const mixed = new TestListener(world.port, '/api/stream?kinds=live-counts,change')
  await Promise.all([listener, mixed].map((each) => each.until(({ received }) => received.length === 1)))
  const state = (await world.api.get('/api/online-users')).json()
  t.same(listener.received, [{ kind: 'state', cursor: undefined, data: state }])
  await mixed.until(({ cursor }) => cursor !== undefined)
  t.equal(listener.cursor, undefined, 'a state has no cursor')
  await store({ '4d530001': 5, '4d530002': 8 }, 1)
  await Promise.all([listener, mixed].map((each) => each.until(({ received }) => received.length === 2)))
  const difference = { kind: 'difference', cursor: undefined, data: { changed: { Fable: { online: 8 } }, gone: [] } }
  t.same([listener.received[1], mixed.received[1]], [difference, difference], 'only what has changed')
  await store({ '4d530001': 6 }, 2)
  await listener.until(({ received }) => received.length === 3)
  t.match(listener.received[2], { data: { changed: { Halo: { online: 6 } }, gone: ['Fable'] } })
  for (const each of [listener, mixed]) each.disconnect()
})

test('records and the changes of a player are Atom feeds', async (t) => {
  const world = await StreamWorld.open(t)
  await world.record(60, random(7))
  const records = await world.api.get('/api/records/recent.atom?game=Halo')
  t.equal(records.headers['content-type'], 'application/atom+xml; charset=utf-8')
  const entries = records.body.match(/<entry>/g)?.length ?? 0
  t.equal(entries, (await world.api.get('/api/records/recent?game=Halo')).json().length)
  t.ok(entries > 0)
  t.notMatch(records.body, /<b>/, 'names are text')
  t.equal(records.body.match(/<link href="[^"]*\/games\/4d530001"\/><\/entry>/g)?.length, entries)
  t.match(records.body, /<link rel="self" href="[^"]*\/api\/records\/recent.atom\?game=Halo"\/>/)
  const target = 'http://evil.example/api/records/recent.atom?game=Halo'
  const sent = `GET ${target} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n`
  const absolute = await exchange(world.api.app, sent)
  t.match(absolute, '<link rel="self"')
  t.notMatch(absolute, 'evil', 'an authority in the target is not repeated')
  const again = await world.api.get('/api/records/recent.atom?game=Halo', {
    'if-none-match': String(records.headers.etag)
  })
  t.equal(again.statusCode, 304)
  t.equal((await world.api.get('/api/records/recent.atom?game=x')).statusCode, 404)
  const changes = await world.api.get('/api/player/ann/changes.atom')
  t.match([changes.statusCode, changes.body], [200, /<title>Changes of ann<\/title>/])
  const withoutEntries = async () => {
    const { headers, body } = await world.api.get('/api/player/nobody/changes.atom')
    return { etag: headers.etag, updated: /<updated>(.*)<\/updated>/.exec(body)?.[1] }
  }
  const empty = await withoutEntries()
  t.match(empty.updated, /T00:00:00.000Z$/)
  world.api.clock.nowMs += 3_600_000
  t.same(await withoutEntries(), empty, 'nothing has changed')
  world.api.clock.nowMs += 86_400_000
  const tomorrow = await withoutEntries()
  t.not(tomorrow.updated, empty.updated)
  t.not(tomorrow.etag, empty.etag, 'other bytes have another tag')
})

test('an address has so many streams; other addresses and this machine have theirs', async (t) => {
  const clients = clientAddresses(['127.0.0.1'])
  const world = await StreamWorld.open(t, { limits: { streamsPerAddress: 2 }, clients })
  await world.record(20, random(5))
  const from = (address: string) => `X-Forwarded-For: ${address}\r\n`
  const open = async (headers: string) => {
    const listener = new TestListener(world.port, '/api/stream?kinds=change', headers)
    await listener.until(({ cursor }) => cursor !== undefined)
    return listener
  }
  const [first] = [await open(from('2001:db8::1')), await open(from('2001:db8::2'))]
  const refused = await get(world, '?kinds=change', { 'x-forwarded-for': '2001:db8::3' })
  t.match(refused, { statusCode: 429, headers: { 'x-error-code': 'streams_per_address', 'retry-after': /^\d+$/ } })
  t.match(refused.body, /Your address has 2 streams/)
  await open(from('2001:db8:0:1::1'))
  for (let n = 0; n < 3; n += 1) await open('')
  first?.disconnect()
  await first?.closed
  let status = 429
  for (let n = 0; n < 1000 && status === 429; n += 1) {
    await nextTurn()
    status = (await get(world, '?wait=0&kinds=change', { 'x-forwarded-for': '2001:db8::3' })).statusCode
  }
  t.equal(status, 200)
  // A request that is refused gives its slot back.
  for (let n = 0; n < 5; n += 1)
    t.equal((await get(world, '?kinds=nope', { 'x-forwarded-for': '192.0.2.1' })).statusCode, 400)
})

test('streams have a limit, a lifetime and signs of life, and end with the service', async (t) => {
  const world = await StreamWorld.open(t, { limits: { streamsMax: 22, streamKeepAliveMs: 50, streamLifetimeMs: 1e9 } })
  await world.record(20, random(5))
  const ended = new Set<TestListener>()
  const crowd = Array.from({ length: 20 }, () => new TestListener(world.port, '/api/stream?kinds=change'))
  for (const each of crowd) void each.closed.then(() => ended.add(each))
  await Promise.all(crowd.map((each) => each.until(({ cursor }) => cursor !== undefined)))
  const quiet = new TestListener(world.port, '/api/stream?kinds=change')
  const lines = new TestListener(world.port, '/api/stream?kinds=change', 'Accept: application/x-ndjson\r\n')
  await quiet.until(({ text }) => (text.match(/^id: /gm) ?? []).length > 2)
  t.notMatch(quiet.text, /^event:/m)
  t.match(quiet.text, /^id: [\w-]+\ndata:\n\n/m, 'an `id` alone is not remembered by each EventSource')
  await lines.until(({ text }) => /\n\{"cursor":"[\w-]+"\}\n/.test(text))
  t.match(lines.text, /content-type: application\/x-ndjson/i)
  for (const header of [/x-accel-buffering: no/i, /cache-control: no-store, no-transform/i]) t.match(quiet.text, header)
  const { statusCode, headers, body } = await get(world, '?kinds=change')
  t.same([statusCode, JSON.parse(body).error.slice(0, 31)], [503, 'The service has as many streams'])
  t.match(headers['retry-after'], /^\d+$/)
  t.match(await world.api.app.inject('/api/stream'), { statusCode: 503 })
  lines.disconnect()
  await lines.closed
  world.api.clock.nowMs += 1.1e9
  const signs = ({ text }: TestListener) => text.split('id: ').length
  await Promise.allSettled(
    crowd.map(async (each) => {
      const before = signs(each)
      await each.until((now) => signs(now) > before + 1)
    })
  )
  t.ok(ended.size > 0 && ended.size < crowd.length, `${ended.size} of ${crowd.length} have ended: not all at once`)
  world.api.clock.nowMs += 0.1e9
  await quiet.closed
  t.match(quiet.text, /\nretry: 1000\n\n$/, 'the lifetime is over')
  const last = new TestListener(world.port, '/api/stream?kinds=change&x=1')
  await last.until(({ cursor }) => cursor !== undefined)
  t.match(last.text, /x-unknown-parameters: x/i)
  await world.api.app.close()
  await last.closed
  t.match(last.text, /\nretry: \d+\n\n$/)
})

test('each stream begins and ends with a reconnection delay of its own', async (t) => {
  const registry = new Registry()
  const world = await StreamWorld.open(t, { registry })
  const open = async (): Promise<TestListener> => {
    const listener = new TestListener(world.port, '/api/stream?kinds=change')
    await listener.until(({ cursor }) => cursor !== undefined)
    return listener
  }
  const retryOf = ({ text }: TestListener) => Number(/\r\n\r\nretry: (\d+)\n\n/.exec(text)?.[1])
  const listeners: TestListener[] = []
  for (let n = 0; n < 10; n += 1) listeners.push(await open())
  const all = Array.from({ length: 10 }, (_, n) => 3000 + n)
  t.same(listeners.map(retryOf), all)
  const returned: TestListener[] = []
  for (const listener of listeners) {
    listener.disconnect()
    await until(async () => (await openStreams(registry)) !== 10, nextTurn)
    returned.push(await open())
  }
  t.same(returned.map(retryOf), all)
  const lines = new TestListener(world.port, '/api/stream?kinds=change', 'Accept: application/x-ndjson\r\n')
  await lines.until(({ text }) => /\r\nRetry-After: 3\r\n(.*\r\n)*\r\n\{"cursor":"[\w-]+"\}\n$/.test(text))
  await world.api.app.close()
  for (const each of [...returned, lines]) await each.closed
  t.same(
    returned.map(({ text }) => Number(/\nretry: (\d+)\n\n$/.exec(text)?.[1])),
    all
  )
  t.match(lines.text, /\n\{"cursor":"[\w-]+"\}\n$/)
})

test('a client that does not read is disconnected, and misses nothing', async (t) => {
  const world = await StreamWorld.open(t, { limits: { streamDrainMs: 1000 } })
  const disconnected = new Promise((resolve) =>
    world.api.app.server.once('connection', (socket) => socket.once('close', resolve))
  )
  const slow = new TestListener(world.port, '/api/stream?kinds=match')
  await slow.until(({ cursor }) => cursor !== undefined)
  slow.pause()
  const other = new TestListener(world.port, '/api/stream?kinds=match')
  await other.until(({ cursor }) => cursor !== undefined)
  // Far more than the buffers of the kernel on both sides.
  const hosts = Array.from({ length: 3000 }, (_, n) => `${n}`.padStart(100, 'x'))
  for (let n = 0; n < 30; n += 1) await world.list(hosts)
  await other.until(({ received }) => received.length === 30)
  await disconnected
  slow.resume()
  await slow.closed
  t.ok(slow.received.length < 30, 'it did not receive all')
  const again = new TestListener(world.port, '/api/stream?kinds=match', `Last-Event-ID: ${slow.cursor}\r\n`)
  await again.until(({ received }) => received.length === 30 - slow.received.length)
  for (const each of [other, again]) each.disconnect()
})

/** A listener of states on a socket of its own, and its client, which does not read yet. */
async function slowListener(t: Test, drainMs: number) {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [socket] = (await once(server, 'connection')) as [Socket]
  const channel = new Channel({ kinds: ['live-counts'], titleId: null, leaderboardId: null, playerKey: null })
  const versions = { versionOf: () => 1, onChange: () => () => undefined }
  const hub = new Hub({
    versions,
    recentOffsets: 1,
    onRead: () => undefined,
    onFailure: (error: unknown) => t.error(error)
  } as unknown as ConstructorParameters<typeof Hub>[0])
  const sent = { states: 0 }
  const endings: string[] = []
  // More than the buffers of the kernel on both sides.
  const frame = () => `${++sent.states}`.padEnd(32 * 1024 * 1024)
  const listener = new Listener({
    socket,
    hub,
    states: { isReady: true, ready: async () => undefined, frame },
    channel,
    format: 'ndjson',
    endsAtMs: 0,
    retryMs: 1000,
    drainMs,
    onEnd: (ending) => endings.push(ending),
    onFailure: (error: unknown) => t.error(error)
  })
  await listener.follow(hub.progressOf(channel))
  t.ok(socket.writableLength > 0)
  t.teardown(() => {
    client.destroy()
    hub.close()
    server.close()
  })
  return { client, socket, channel, listener, sent, endings }
}

test('a slow client gets a large state once', async (t) => {
  const { client, socket, channel, listener, sent } = await slowListener(t, 60_000)
  const drained = once(socket, 'drain')
  client.resume()
  await drained
  // A second state would have been written when the first one was read.
  await new Promise(setImmediate)
  t.equal(sent.states, 1)
  t.ok(channel.live.has(listener))
  listener.end('client')
  await once(socket, 'close')
})

test('a client that reads a part in time is not disconnected', async (t) => {
  const { client, socket, listener, endings } = await slowListener(t, 500)
  listener.write(Buffer.from('more'))
  for (let part = 0; part < 12; part += 1) {
    await wait(100)
    for (let bytes = 0; bytes < 2 ** 20; bytes += client.read()?.length ?? 0) await new Promise(setImmediate)
  }
  t.same(endings, [])
  await once(socket, 'close')
  t.same(endings, ['slow'], 'it reads no more')
})

test('a write to a connection that was just destroyed, or has ended, throws nothing: the other listeners get theirs', async (t) => {
  const { socket, channel, listener, endings } = await slowListener(t, 60_000)
  const received: string[] = []
  channel.live.add({ format: 'ndjson', write: (frame) => received.push(String(frame)) })
  socket.destroy()
  // The event that ends the listener has not been emitted yet.
  await channel.send({ sse: 'a', ndjson: 'a' })
  t.same([endings, received], [[], ['a']])
  await once(socket, 'close')
  listener.write(Buffer.from('b'))
  t.same(endings, ['client'])
  await channel.send({ sse: 'c', ndjson: 'c' })
  t.same(received, ['a', 'c'])
})

test('pages grow with a client that reads them, and are small while clients leave much unread', async (t) => {
  const limits: number[] = []
  const event = { kind: 'count', partitionId: '1.0', next: [1], body: '' }
  const hub = {
    unsentCharacters: 0,
    share: new Share(),
    recent: () => [],
    behind: () => 'a partition',
    read: async (_behind: unknown, _channel: unknown, _progress: unknown, limit: number) => {
      // Of other clients.
      hub.unsentCharacters = limits.push(limit) < 9 ? 0 : 65 * 2 ** 20
      return { events: [event], isReadable: true, done: () => undefined }
    },
    isAtHead: () => limits.length === 12,
    cursorOf: () => ''
  }
  const channel = new Channel({ kinds: ['count'], titleId: null, leaderboardId: null, playerKey: null })
  const listener = new Listener({
    socket: Object.assign(new PassThrough().resume(), { setTimeout: () => undefined }),
    hub,
    channel,
    format: 'sse'
  } as unknown as ConstructorParameters<typeof Listener>[0])
  await listener.follow(new Progress(channel, []))
  t.same(limits, [64, 128, 256, 512, 1024, 1024, 1024, 1024, 1024, 64, 64, 64])
})

test('pages have fewer events for a client with a long cursor, which each event has', async (t) => {
  const world = await StreamWorld.open(t)
  await world.record(2000, random(23))
  const { cursor: given } = (await get(world, '?kinds=count&wait=0')).json()
  // Another network's, or made to cost much: positions in 5,900 partitions that are not known here.
  const position = positionText(
    new Map(Array.from({ length: 5900 }, (_, partition) => [partitionIdOf({ epoch: 0, partition }), [1]]))
  )
  const cursor = cursorOf(fingerprintIn(given), [position, ''])
  const { events } = (await get(world, `?kinds=count&wait=0&after=${cursor}`)).json()
  t.equal(events.length, Math.ceil(2 ** 20 / cursor.length))
})

test('a page does not wait behind many that read their history, and these go on while others begin', async (t) => {
  const held: (() => void)[] = []
  const hub = new Hub({
    tables: {},
    versions: { serving: {}, onChange: () => () => undefined },
    onRead: () => undefined,
    positions: () => new Promise((resolve) => held.push(() => resolve([])))
  } as unknown as ConstructorParameters<typeof Hub>[0])
  const channel = new Channel({ kinds: ['count'], titleId: null, leaderboardId: null, playerKey: null })
  let read: string[] = []
  const follow = async (name: string, pages: number): Promise<void> => {
    const progress = new Progress(channel, [])
    for (let n = 0; n < pages; n += 1) {
      await hub.read({ kind: 'count', partitionId: '1.0' }, channel, progress, 1, new AbortController().signal)
      read.push(name)
    }
  }
  const pass = async (): Promise<void> => {
    held.shift()?.()
    await nextTurn()
  }
  for (let n = 0; n < 40; n += 1) void follow('history', 5)
  await until(() => read.length >= 80, pass)
  read = []
  void follow('poll', 1)
  await until(() => read.includes('poll'), pass)
  // Those that had begun, and the next of those that wait longest.
  t.ok(read.length <= 4 + 2, `${read.length} reads`)
  read = []
  for (let n = 0; n < 60; n += 1) {
    void follow('poll', 1)
    await pass()
  }
  t.ok(read.filter((name) => name === 'history').length >= 25, read.join(' '))
  await until(() => held.length === 0, pass)
  hub.close()
})

test('kinds that nobody listens to any more are no longer read, also while others are', async (t) => {
  let change = (): void => undefined
  let looks: (readonly string[])[] = []
  const hub = new Hub({
    tables: {},
    versions: {
      serving: {},
      onChange: (listener: () => void) => {
        change = listener
        return () => undefined
      }
    },
    onRead: () => undefined,
    positions: async (_serving: unknown, names: readonly string[]) => {
      looks.push(names)
      return []
    }
  } as unknown as ConstructorParameters<typeof Hub>[0])
  const of = async (kind: 'count' | 'match') => {
    const channel = hub.join({ kinds: [kind], titleId: null, leaderboardId: null, playerKey: null })
    await hub.begin(channel, 'now')
    return channel
  }
  await of('count')
  hub.leave(await of('match'))
  for (const isRead of [true, false]) {
    looks = []
    change()
    await until(() => looks.length > 0, nextTurn)
    t.equal(looks[0]?.includes('load:match-list'), isRead)
    t.ok(looks[0]?.includes('load:network-count'))
    hub.rest()
  }
  hub.close()
})

test('a write to many listeners takes several turns, between which listeners arrive and others are owed nothing', async (t) => {
  const channel = new Channel({ kinds: ['count'], titleId: null, leaderboardId: null, playerKey: null })
  const receiver = () => {
    const written: string[] = []
    const write = (frame: Uint8Array): void => {
      written.push(String(frame))
      // Longer than a turn.
      const begun = performance.now()
      while (performance.now() - begun < 6);
    }
    return { format: 'sse' as const, written, write }
  }
  const [first, second, later] = [receiver(), receiver(), receiver()]
  channel.live.add(first).add(second)
  const written = channel.send({ sse: 'a', ndjson: 'a' })
  t.same([first.written, second.written], [['a'], []])
  t.same([channel.owes(first), channel.owes(second)], [false, true])
  channel.live.add(later)
  t.equal(channel.send({ sse: 'b', ndjson: 'b' }), written)
  t.same(
    [first, second, later].map((each) => channel.owes(each)),
    [true, true, true]
  )
  await written
  t.same([first.written, second.written, later.written], [['a', 'b'], ['a', 'b'], ['b']])
  t.equal(channel.owes(first), false)
})
