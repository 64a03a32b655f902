import assert from 'node:assert/strict'
import { until } from '@gamenet/engines/testing'
import type { ScrapeProgress } from '@gamenet/ingest'
import {
  type LeaderboardEntryChanged,
  leaderboardEntryTopic,
  leaderboardTopic,
  ranked,
  scrapeTopic,
  titleStatusTopic
} from '@gamenet/schemas'
import fc from 'fast-check'
import { pino } from 'pino'
import { Registry } from 'prom-client'
import { type Test, test } from 'tap'
import type { OperationNeeds } from '../src/operate/operation.js'
import { scrape } from '../src/operate/scrape/operation.js'
import { buildOperatorApp } from '../src/operator/operator-app.js'
import { operations } from '../src/run/operations.js'
import { AUTHORIZED, OPERATOR_TOKEN, operationsAt } from './service/gamenet.js'
import { lifeUntil, openScrapedWorld, type ScrapedWorld, type ScrapingProcess } from './service/scraped-world.js'
import type { Upstream, UpstreamBoard, UpstreamEntry, UpstreamGame } from './service/upstream.js'

const HALO = { titleId: '4d530064', name: 'Halo 2', subtitle: '', online: 1, lobbies: null, hasBoards: true }
const RIDE = { titleId: '55530036', name: 'Ride', subtitle: '', online: 1, lobbies: null, hasBoards: true }
const NONE = { titleId: '4d53004b', name: 'No boards', subtitle: '', online: 1, lobbies: null }

function board(leaderboardId: number, ...names: string[]): UpstreamBoard {
  const entries = names.map((name, place) => ({ rank: place + 1, name, score: `${1000 - place}` }))
  return { leaderboardId, name: `Board ${leaderboardId}`, entries }
}

function game(...boards: UpstreamBoard[]): UpstreamGame {
  return { lobbies: [], boards }
}

/** Returns a board from the tables: rank, name and rating of each entry, in order. */
async function shownBoard({ tables, projector }: ScrapedWorld, titleId: string, leaderboardId: number) {
  await projector.caughtUp()
  const rows = await tables.control.rows(
    `SELECT e.rank AS rank, e.player AS name, e.rating AS score FROM leaderboard_entry AS e FINAL
     WHERE e.title_id = {titleId: String} AND e.leaderboard_id = {leaderboardId: UInt32} AND NOT e.is_gone ORDER BY e.place`,
    { titleId, leaderboardId }
  )
  return rows.map(({ rank, name, score }) => ({ rank: Number(rank), name, score }))
}

/** The boards of a title as the tables list them. */
async function listedBoards({ tables, projector }: ScrapedWorld, titleId: string) {
  await projector.caughtUp()
  return await tables.control.rows(
    `SELECT l.leaderboard_id AS leaderboardId, argMax(l.name, (l.ts, l.position)) AS name,
       argMax(l.listed, (l.ts, l.position)) AS listed
     FROM leaderboard AS l WHERE l.title_id = {titleId: String} GROUP BY l.leaderboard_id ORDER BY l.leaderboard_id`,
    { titleId }
  )
}

test('a title that leaves the network', async (t) => {
  const world = await openScrapedWorld(t)
  const { upstream, tables, projector } = world
  const startMs = Date.now() - 3_600_000
  let minute = 0
  const { ingest } = world.ingest({ now: () => startMs + minute * 60_000 })
  const playing = { ...HALO, lobbies: { players: 2, sessions: 1 } }
  const haloPage = { ...game(board(0, 'ann')), lobbies: [{ host: 'ann', players: 2, most: 8 }] }
  const run = async (source: 'network' | 'games' | 'matches' | 'boards') => {
    const [ran] = await ingest.runNow(source)
    await projector.caughtUp()
    return ran
  }
  const openLobbies = async () =>
    await tables.control.rows('SELECT l.title_id AS titleId FROM match_latest AS l FINAL WHERE notEmpty(l.hosts)')
  const listed = async () => (await listedBoards(world, HALO.titleId)).map((each) => each.listed)
  upstream.show({ registered: 1, online: 2, titles: [playing, RIDE] })
  upstream.showGame(HALO.titleId, haloPage)
  upstream.showGame(RIDE.titleId, { lobbies: [] })
  for (const source of ['network', 'games', 'matches', 'boards'] as const) await run(source)
  await world.passTime()
  await run('boards')
  t.same(await openLobbies(), [{ titleId: HALO.titleId }])
  t.same(await listed(), [true])

  // Its page is missing, and one list lacks it: the other list still shows it.
  upstream.showGame(HALO.titleId, null)
  upstream.missing.add(`/games/${HALO.titleId}`)
  for (minute of [5, 12, 20]) await ingest.runNow('network')
  t.same(await world.events(titleStatusTopic), [], 'a missing page alone ends nothing')
  t.match(await run('matches'), { outcome: 'failed' })

  upstream.show({ registered: 1, online: 1, titles: [] })
  await ingest.runNow('games')
  upstream.show({ registered: 1, online: 1, titles: [RIDE] })
  for (const at of [22, 27, 29]) {
    minute = at
    await run('network')
    t.same(await world.events(titleStatusTopic), [], `absent for less than ten minutes at minute ${at}`)
  }
  minute = 31
  await run('network')
  t.match(await world.events(titleStatusTopic), [{ titleId: HALO.titleId, onNetwork: false }])
  t.match(await run('matches'), { outcome: 'succeeded' })
  t.same(await openLobbies(), [], 'its lobbies ended')
  t.match(await run('matches'), { outcome: 'succeeded', published: 0 })
  await world.passTime()
  t.match(await run('boards'), { outcome: 'succeeded' })
  t.same(await listed(), [false], 'its boards are delisted')
  await run('network')
  t.equal((await world.events(titleStatusTopic)).length, 1, 'it left once')

  upstream.missing.clear()
  upstream.showGame(HALO.titleId, haloPage)
  upstream.show({ registered: 1, online: 2, titles: [playing, RIDE] })
  // Another process, which knows it only from the tables.
  const { ingest: other } = world.ingest({ now: () => startMs + minute * 60_000 })
  minute = 40
  for (const source of ['network', 'matches', 'boards'] as const) {
    await other.runNow(source)
    await projector.caughtUp()
  }
  t.match(await world.events(titleStatusTopic), [{ onNetwork: false }, { titleId: HALO.titleId, onNetwork: true }])
  t.same(await openLobbies(), [{ titleId: HALO.titleId }])
  t.same(await listed(), [true])
})

test('boards are scraped', async (t) => {
  // One world for all tests: opening its engines takes longer than most of them.
  const world = await openScrapedWorld(t)
  // And two processes for all tests: each new one has to load the parser.
  const two = [world.ingest(), world.ingest()] as const
  await t.test('boards are found, visited and followed', (t) => provesVisits(t, world, two))
  await t.test('a process that was too slow publishes nothing', (t) => provesSlow(t, world, two))
  await t.test('a run that the end of its process interrupts', (t) => provesStop(t, world))
  await t.test('a run that is requested over the operator port', (t) => provesPort(t, world, two))
  await t.test('a change of a list is published once, although two processes read it at the same time', (t) =>
    provesLists(t, world, two)
  )
  await t.test('after a kill at any call no change is published twice, and the fold equals the page', (t) =>
    provesCrashes(t, world, two)
  )
})

type Two = readonly [ScrapingProcess, ScrapingProcess]

async function provesVisits(t: Test, world: ScrapedWorld, [{ ingest, registry }]: Two) {
  const { upstream } = world
  upstream.show({ registered: 1, online: 3, titles: [HALO, RIDE, NONE] })
  upstream.showGame(HALO.titleId, game(board(0, 'ann', 'bob'), board(7, 'eve')))
  upstream.showGame(RIDE.titleId, { lobbies: [] })

  await t.test('on the first run all boards of all titles that have any', async (t) => {
    const progressReports: ScrapeProgress[] = []
    const runs = await ingest.runNow('all', (progress) => progressReports.push(progress))
    t.match(
      runs.map(({ source, outcome }) => [source, outcome]),
      [
        ['network', 'succeeded'],
        ['games', 'succeeded'],
        ['matches', 'succeeded'],
        ['boards', 'succeeded'],
        ['players', 'succeeded']
      ]
    )
    t.same(await listedBoards(world, HALO.titleId), [
      { leaderboardId: 0, name: 'Board 0', listed: true },
      { leaderboardId: 7, name: 'Board 7', listed: true }
    ])
    t.same(await shownBoard(world, HALO.titleId, 0), [
      { rank: 1, name: 'ann', score: '1000' },
      { rank: 2, name: 'bob', score: '999' }
    ])
    t.same(
      progressReports.map(({ source, done, total }) => `${source}: ${done} of ${total}`),
      ['0 of 2', '1 of 2', '2 of 2', '2 of 4', '3 of 4', '4 of 4'].map((each) => `boards: ${each}`),
      'and how far it is is reported with each page'
    )
    t.notOk(upstream.asked.includes(`/games/${NONE.titleId}`), 'a title known to have none is left alone')
    t.ok(upstream.asked.includes(`/games/${RIDE.titleId}`), 'a title that may have some is looked at')
  })

  await t.test('a second run finds nothing new, and a third gets 304 for unchanged pages', async (t) => {
    const before = (await world.events(leaderboardEntryTopic)).length
    t.match(await ingest.runNow('boards'), [{ outcome: 'succeeded', published: 0 }])
    t.match(await ingest.runNow('boards'), [{ outcome: 'succeeded', published: 0 }])
    t.equal((await world.events(leaderboardEntryTopic)).length, before)
    t.equal(upstream.unchanged(), 2, 'both boards')
    const metrics = await registry.metrics()
    t.match(metrics, /gamenet_board_visits_total\{outcome="not-modified"\} 2/)
    t.match(metrics, /gamenet_board_changes_total\{change="new"\} 3/)
    t.match(metrics, /gamenet_boards 4/)
  })

  await t.test('a change is published as what changed, with the instant of the page', async (t) => {
    upstream.showGame(HALO.titleId, game(board(0, 'zoe', 'ann', 'bob'), { ...board(7, 'eve'), name: 'Renamed' }))
    await ingest.runNow('boards')
    const entries = await shownBoard(world, HALO.titleId, 0)
    t.same(
      entries.map(({ rank, name }) => [rank, name]),
      [
        [1, 'zoe'],
        [2, 'ann'],
        [3, 'bob']
      ]
    )
    t.same((await listedBoards(world, HALO.titleId))[1], { leaderboardId: 7, name: 'Renamed', listed: true })
    const changes = (await world.events(leaderboardEntryTopic)).slice(3)
    t.equal(new Set(changes.map(({ changedAt }) => changedAt)).size, 1)
  })

  await t.test(
    'an imported entry that the page does not show is removed, although the page is unchanged',
    async (t) => {
      await ingest.runNow('boards')
      const event = {
        titleId: HALO.titleId,
        leaderboardId: 7,
        playerName: 'old',
        changeType: 'new' as const,
        rating: '5'
      }
      await ingest.publish(leaderboardEntryTopic, [{ ...event, changedAt: '2005-01-01T00:00:00Z' }], {
        source: '/import/file',
        importId: 'f'.repeat(32)
      })
      t.equal((await shownBoard(world, HALO.titleId, 7)).length, 2)
      await ingest.runNow('boards')
      t.same(await shownBoard(world, HALO.titleId, 7), [{ rank: 1, name: 'eve', score: '1000' }])
    }
  )

  await t.test('a board that vanishes from the list is no longer listed, and its entries stay', async (t) => {
    upstream.showGame(HALO.titleId, game(board(0, 'zoe', 'ann', 'bob')))
    t.match(await ingest.runNow('boards'), [{ outcome: 'succeeded', published: 1 }])
    t.same((await listedBoards(world, HALO.titleId))[1], { leaderboardId: 7, name: 'Renamed', listed: false })
    t.equal((await shownBoard(world, HALO.titleId, 7)).length, 1)
    upstream.asked.splice(0)
    await ingest.runNow('boards')
    t.notOk(upstream.asked.includes(`/games/${HALO.titleId}?leaderboard=7`), 'and is visited no more')
    upstream.showGame(HALO.titleId, game(board(0, 'zoe', 'ann', 'bob'), board(7, 'eve', 'joe')))
    await ingest.runNow('boards')
    t.same((await listedBoards(world, HALO.titleId))[1], { leaderboardId: 7, name: 'Board 7', listed: true })
    t.equal((await shownBoard(world, HALO.titleId, 7)).length, 2, 'until it is there again')
  })

  await t.test('broken, truncated and missing pages fail, and remove nothing', async (t) => {
    const events = (await world.events(leaderboardEntryTopic)).length
    const lists = (await world.events(leaderboardTopic)).length
    for (const [page, reason] of [
      ['<html></html>', /no list of boards, although 2 boards were listed/],
      [{ lobbies: [] }, /no list of boards, although 2 boards were listed/],
      [null, /status 404/]
    ] as const) {
      upstream.showGame(HALO.titleId, page)
      t.match(await ingest.runNow('boards'), [{ outcome: 'partial', published: 0, reason }])
    }
    upstream.showGame(
      HALO.titleId,
      game({ ...board(0), entries: [{ rank: 1, name: 'x', score: '' }] }, board(7, 'eve', 'joe'))
    )
    t.match(await ingest.runNow('boards'), [{ outcome: 'partial', published: 0, reason: /leaderboard=0: row 1 of/ }])
    t.equal((await world.events(leaderboardEntryTopic)).length, events)
    t.equal((await world.events(leaderboardTopic)).length, lists)
    t.match((await world.events(scrapeTopic)).at(-1), { source: 'boards', outcome: 'partial' })
  })

  await t.test(
    'a board whose page vanished after its list was read is not a fault: the list is read next',
    async (t) => {
      upstream.showGame(HALO.titleId, game(board(0, 'zoe'), board(7, 'eve')))
      t.match(await ingest.runNow('boards'), [{ outcome: 'succeeded' }])
      upstream.missing.add(`/games/${HALO.titleId}?leaderboard=7`)
      const absent = await absences(registry)
      const [run] = await ingest.runNow('boards')
      t.match(run, { outcome: 'succeeded', published: 0, reason: undefined })
      t.equal(await absences(registry), absent + 1)
      const due = `SELECT t.due_at <= now() AS due FROM board_lease AS t WHERE t.title_id = $1 AND t.leaderboard_id = -1`
      t.same(await world.writes.query(due, [HALO.titleId]), [{ due: true }])
      t.equal((await shownBoard(world, HALO.titleId, 7)).length, 1, 'its entries stay')
      upstream.missing.clear()
      t.match(await ingest.runNow('boards'), [{ outcome: 'succeeded', published: 0 }], 'and it may be listed again')
    }
  )
}

/** Returns the entries of a page as one text for comparisons. */
const state = ({ playerName, occurrence, rating, order, step, changeType }: LeaderboardEntryChanged) =>
  JSON.stringify([playerName, occurrence ?? 1, changeType === 'removed' ? null : [rating, order, step]])

/** Folds all events of a board in their order; two equal states of one entry after one another are one change published twice. */
function folded(events: readonly LeaderboardEntryChanged[]) {
  const newest = new Map<string, LeaderboardEntryChanged>()
  let lastAt = ''
  for (const event of events) {
    const key = `${event.playerName}#${event.occurrence ?? 1}`
    const before = newest.get(key)
    assert.ok(
      before === undefined ? event.changeType !== 'removed' : state(before) !== state(event),
      `twice: ${state(event)}`
    )
    assert.ok(event.changedAt >= lastAt, 'each scrape is later than the one before')
    lastAt = event.changedAt
    newest.set(key, event)
  }
  const present = [...newest.values()].filter(({ changeType }) => changeType !== 'removed')
  const standings = present.map((event) => ({
    playerName: event.playerName,
    occurrence: event.occurrence ?? 1,
    rating: event.rating ?? '',
    timeMs: event.timeMs ?? null,
    statedRank: null,
    order: event.order ?? null,
    step: event.step ?? null
  }))
  return ranked(standings).map(({ entry, rank }) => ({ rank, name: entry.playerName, score: entry.rating }))
}

const entries: fc.Arbitrary<UpstreamEntry[]> = fc
  .array(
    fc.record({
      name: fc.constantFrom('ann', 'Ann', 'bob', 'eve', 'zoe'),
      score: fc.constantFrom('1', '2', '3'),
      up: fc.integer({ min: -1, max: 2 })
    }),
    { maxLength: 6 }
  )
  .map((rows) => {
    let rank = 1
    return rows.map(({ name, score, up }) => {
      rank += up
      return { rank, name, score }
    })
  })

const DEADLY = [
  { calls: 3, isDone: false },
  { calls: 9, isDone: true }
].map((dying, n) => ({
  boards: [
    [{ rank: 1, name: 'ann', score: `${n}` }],
    [
      { rank: 1, name: 'bob', score: '2' },
      { rank: 1 + n, name: 'bob', score: '2' }
    ]
  ] as [UpstreamEntry[], UpstreamEntry[]],
  isListed: true,
  dying,
  isConcurrent: n === 1
}))

async function provesCrashes(t: Test, world: ScrapedWorld, [first, second]: Two) {
  const { upstream } = world
  let deaths = 0
  const step = fc.record({
    boards: fc.tuple(entries, entries),
    isListed: fc.boolean(),
    dying: fc.option(fc.record({ calls: fc.nat({ max: 40 }), isDone: fc.boolean() }), { freq: 4 }),
    isConcurrent: fc.boolean()
  })
  let round = 50
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 3 }), async (steps) => {
      // Separate boards for each run, so that no table is emptied between runs.
      round += 1
      const ids = [2 * round, 2 * round + 1] as const
      for (const { boards, isListed, dying, isConcurrent } of steps) {
        const shown = boards.map((rows, at) => ({ ...board(ids[at] ?? 0), entries: rows }))
        upstream.showGame(HALO.titleId, game(...shown.slice(0, isListed ? 2 : 1)))
        const life = dying === null ? undefined : lifeUntil(dying.calls, dying.isDone)
        const mortal = life === undefined ? undefined : world.ingest({ life })
        const processes = [mortal ?? first, ...(isConcurrent ? [second] : [])]
        await Promise.all(processes.map(({ ingest }) => ingest.runNow('boards')))
        if (life?.isOver() === true) deaths += 1
        await mortal?.ingest.stop()
        await world.passTime()
      }
      const [run] = await first.ingest.runNow('boards')
      assert.equal(run?.outcome, 'succeeded', run?.reason)
      const events = await world.events(leaderboardEntryTopic)
      const last = steps.at(-1)
      for (const [at, leaderboardId] of ids.entries()) {
        const fold = folded(events.filter((event) => event.leaderboardId === leaderboardId))
        const table = await shownBoard(world, HALO.titleId, leaderboardId)
        assert.deepEqual(table, fold, 'the table is the fold')
        if (at === 0 || last?.isListed === true) assert.deepEqual(fold, last?.boards[at], 'the fold is the page')
      }
      const listed = (await listedBoards(world, HALO.titleId)).filter((each) => each.listed === true)
      assert.deepEqual(
        listed.map(({ leaderboardId }) => leaderboardId),
        last?.isListed === true ? ids : ids.slice(0, 1)
      )
    }),
    // The first case kills two processes; boards-model.test.ts has more.
    { seed: 3, numRuns: 2, endOnFailure: true, examples: [[DEADLY]] }
  )
  t.ok(deaths > 1, `${deaths} processes died`)
}

async function provesSlow(t: Test, world: ScrapedWorld, [slow, other]: Two) {
  const { upstream, writes } = world
  upstream.showGame(HALO.titleId, game(board(20, 'ann')))
  const [run] = await slow.ingest.runNow('boards')
  assert.equal(run?.outcome, 'succeeded', run?.reason)
  const before = (await world.events(leaderboardEntryTopic)).length
  // The page arrives late, in its state at the request.
  const hold = holdFirst(t, upstream, 'leaderboard=20')
  upstream.showGame(HALO.titleId, game(board(20, 'ann', 'bob')))
  const slowly = slow.ingest.runNow('boards')
  await hold.asked(slowly)
  await world.passTime()
  await other.ingest.runNow('boards')
  t.equal((await world.events(leaderboardEntryTopic)).length, before + 1, 'the other one has published it')
  hold.answer()
  t.match(await slowly, [{ outcome: 'partial', published: 0, reason: /^\/games\/\S+: given up, because .* lease/ }])
  t.match(
    await slow.registry.metrics(),
    /gamenet_board_visits_total\{outcome="given-up"\} [12]/,
    'perhaps of a list too'
  )
  t.equal((await world.events(leaderboardEntryTopic)).length, before + 1)
  const [row] = await writes.query('SELECT t.is_unclean FROM board_lease AS t WHERE t.leaderboard_id = 20')
  t.same(row, { is_unclean: false }, 'nor does it end the visit of the other')
}

async function provesStop(t: Test, world: ScrapedWorld) {
  const { upstream } = world
  const warnings: string[] = []
  const warn = (_: object, message: string) => warnings.push(message)
  const { ingest } = world.ingest({ boardSeconds: 1, logger: { info: () => {}, warn, error: warn } })
  upstream.showGame(HALO.titleId, game(...[30, 31, 32].map((id) => board(id, 'ann'))))
  await world.passTime()
  const ranBefore = (await world.events(scrapeTopic)).length
  const before = (await world.events(leaderboardEntryTopic)).length
  const listedBefore = (await world.events(leaderboardTopic)).length
  const hold = holdFirst(t, upstream, 'leaderboard=32')
  ingest.start()
  await hold.asked()
  // Waits for the current run, and so begins after its end.
  const asked = ingest.runNow('boards')
  await until(
    async () => (await world.events(leaderboardEntryTopic)).length >= before + 2,
    () => world.projector.caughtUp()
  )
  await ingest.stop()
  t.match(await asked, [{ outcome: 'failed', published: 0, reason: /the service is stopping/ }])
  const ran = (await world.events(scrapeTopic)).slice(ranBefore)
  const cut = ran.filter(({ outcome }) => outcome !== 'succeeded')
  t.match(cut, [{ source: 'boards', outcome: 'partial', reason: 'the service is stopping' }], 'is partial, once')
  t.same(warnings, [], 'without a warning')
  const listed = (await world.events(leaderboardTopic)).length - listedBefore
  const progressReports = (await world.events(leaderboardEntryTopic)).length - before
  const published = ran.reduce((sum, each) => sum + each.published, 0)
  t.equal(published, listed + progressReports, 'with what it published')
}

async function provesPort(t: Test, { upstream }: ScrapedWorld, [{ ingest }]: Two) {
  const refuse = () => Promise.reject(new Error('only scrapes are asked for'))
  const app = buildOperatorApp(operations, {
    operations: {
      run: (operation, input, { onProgress = () => undefined, signal = new AbortController().signal } = {}) =>
        operation.run({ ingest } as OperationNeeds, input, { onProgress, signal })
    },
    registry: new Registry(),
    ready: refuse,
    logger: pino({ enabled: false }),
    host: '127.0.0.1',
    token: OPERATOR_TOKEN
  })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  t.teardown(() => app.close())
  upstream.showGame(HALO.titleId, game(board(40, 'ann')))
  await ingest.runNow('boards')

  await t.test('reports its progress, and ends with the report', async (t) => {
    const progressReports: ScrapeProgress[] = []
    const reports = await operationsAt(url).run(
      scrape,
      { source: 'boards' },
      { onProgress: (progress) => progressReports.push(progress as ScrapeProgress) }
    )
    t.match(reports, [{ source: 'boards', outcome: 'succeeded', published: 0 }])
    t.match(progressReports.at(-1), { source: 'boards', done: 3, total: 3 }, 'two lists and a board')
  })

  await t.test('continues when its client disconnects', async (t) => {
    const hold = holdFirst(t, upstream, 'leaderboard=40')
    upstream.showGame(HALO.titleId, game(board(40, 'ann', 'bob')))
    const leaving = new AbortController()
    const headers = { ...AUTHORIZED, accept: 'application/x-ndjson' }
    const { body } = await fetch(`${url}/scrape/boards`, { method: 'POST', headers, signal: leaving.signal })
    await hold.asked()
    const reader = body?.getReader()
    let said = await reader?.read()
    // A chunk may be empty.
    while (said?.value?.length === 0) said = await reader?.read()
    t.match(new TextDecoder().decode(said?.value), /^\{"progress":\{"source":"boards","done":0,/)
    leaving.abort()
    const joined = operationsAt(url).run(scrape, { source: 'boards' })
    hold.answer()
    t.match(await joined, [{ outcome: 'succeeded', published: 1 }])
    t.equal((await fetch(`${url}/healthz`)).status, 200)
  })
}

async function provesLists(t: Test, world: ScrapedWorld, [first, second]: Two) {
  const { upstream, writes } = world
  const list = `/games/${HALO.titleId}`
  const showNamed = (name: string) => {
    const boards = [45, 46].map((id) => ({ ...board(id, 'ann'), name: `${name} ${id}` }))
    upstream.showGame(HALO.titleId, game(...boards))
  }
  showNamed('old')
  await first.ingest.runNow('boards')
  const before = (await world.events(leaderboardTopic)).length
  await writes.query(
    "UPDATE board_lease SET lease_holder = 'x', lease_until = now() + interval '1 hour' WHERE leaderboard_id = 45"
  )
  const [listRequested, boardRequested, answer] = [resolvers(), resolvers(), resolvers()]
  t.teardown(answer.resolve)
  upstream.beforeAnswer = async (path) => {
    if (path === list) listRequested.resolve()
    else if (path === `${list}?leaderboard=45`) boardRequested.resolve()
    await answer.promise
  }
  // Both know the old list before either of them reads the new one.
  const runs = [first.ingest.runNow('boards')]
  await listRequested.promise
  await writes.query('UPDATE board_lease SET lease_holder = NULL, lease_until = NULL WHERE leaderboard_id = 45')
  runs.push(second.ingest.runNow('boards'))
  await boardRequested.promise
  showNamed('new')
  answer.resolve()
  await Promise.all(runs)
  await first.ingest.runNow('boards')
  const progressReports = (await world.events(leaderboardTopic)).slice(before).map(({ name }) => name)
  t.same(progressReports.sort(), ['new 45', 'new 46'])
}

async function absences(registry: Registry): Promise<number> {
  return Number(/gamenet_board_visits_total\{outcome="absent"\} (\d+)/.exec(await registry.metrics())?.[1])
}

/** Delays the first answer to a path with this end, until it is released or the test ends. */
function holdFirst(t: Test, upstream: Upstream, end: string) {
  const asked = resolvers()
  const answer = resolvers()
  let isHeld = false
  t.teardown(answer.resolve)
  upstream.beforeAnswer = async (path) => {
    if (!path.endsWith(end) || isHeld) return
    isHeld = true
    asked.resolve()
    await answer.promise
  }
  return {
    answer: answer.resolve,
    /** Resolves when the path is requested; rejects when the run ends without the request. */
    async asked(run: Promise<unknown> = new Promise(() => {})) {
      const ended = run.then((ran) => Promise.reject(new Error(`ended without asking: ${JSON.stringify(ran)}`)))
      await Promise.race([asked.promise, ended])
    }
  }
}

function resolvers() {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
