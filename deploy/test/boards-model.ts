import assert from 'node:assert/strict'
import {
  boardOf,
  changesOf,
  type EntryChange,
  type EntryEvent,
  historyOf,
  type RankedEntry,
  recordedOf,
  recordsOf
} from '@gamenet/engines/testing'
import {
  compareMeasures,
  instantOf,
  type LeaderboardEntryChanged,
  leaderboardEntryTopic,
  leaderboardTopic,
  measureGap,
  nameKey,
  shownInstant,
  timeText
} from '@gamenet/schemas'
import fc from 'fast-check'
import type { Test } from 'tap'
import { type BoardWorld, openBoardWorld } from './boards-model-world.js'
import { changeRow } from './service/change-row.js'
import { type Life, lifeUntil } from './service/scraped-world.js'
import type { UpstreamBoard, UpstreamEntry } from './service/upstream.js'

/*
 * Random boards, scraped and imported, while processes die, calls of the projector fail and events arrive twice or
 * late: every answer about boards equals loops over the events of the log. Each run has its own two boards, names,
 * times and hour, so that no table is emptied between runs.
 */

const FIRST_MS = Date.UTC(2025, 0, 1)
const HOUR_MS = 3_600_000
const STEP_MS = 7 * 60_000
const TITLE = { titleId: '4d530064', name: 'Halo 2', subtitle: '', online: 1, lobbies: null, hasBoards: true }
const NAMES = ['ann', 'Ann', 'ANN', 'bob', 'Ä', 'ä', '<b>x</b>']

/** The values of a run: its number, its boards with the listed names, the start of its hour, its times. */
type Own = {
  readonly n: number
  readonly ids: readonly [number, number]
  readonly names: Map<number, string>
  readonly startMs: number
  /** The shortest of its times. */
  readonly timeMs: number
}

const Place = fc.record({
  name: fc.constantFrom(...NAMES),
  value: fc.integer({ min: 0, max: 5 }),
  up: fc.constantFrom(0, 1, 1, 1, 1, 2, -1)
})
const PageOf = fc.record({ isTimed: fc.boolean(), places: fc.array(Place, { maxLength: 7 }) })
const Death = fc.option(fc.record({ calls: fc.nat({ max: 45 }), isDone: fc.boolean() }), { freq: 3 })
const Scrape = fc.record({
  kind: fc.constant('scrape' as const),
  pages: fc.tuple(PageOf, PageOf),
  isListed: fc.constantFrom(true, true, true, false),
  dying: Death,
  isConcurrent: fc.boolean()
})
const Imported = fc.record({
  board: fc.nat({ max: 1 }),
  name: fc.constantFrom(...NAMES),
  /** Share of the elapsed hour; 1 is now. */
  share: fc.constantFrom(0, 0.25, 0.5, 0.5, 1),
  value: fc.integer({ min: 0, max: 5 }),
  isTimed: fc.boolean(),
  rank: fc.option(fc.integer({ min: -1, max: 4 }), { freq: 3 }),
  isGone: fc.constantFrom(false, false, false, true)
})
const Import = fc.record({
  kind: fc.constant('import' as const),
  events: fc.array(Imported, { minLength: 1, maxLength: 6 }),
  /** Events of the log, by number, that are published again. */
  again: fc.array(fc.nat({ max: 40 }), { maxLength: 3 })
})
const Steps = fc.array(fc.oneof({ arbitrary: Scrape, weight: 3 }, { arbitrary: Import, weight: 2 }), {
  minLength: 2,
  maxLength: 5
})
type Drawn<Of> = Of extends fc.Arbitrary<infer One> ? One : never
type Step = Drawn<typeof Steps>[number]
/** A process that dies at its third call, then boards with times: these occur in every run. */
const MORTAL: readonly Step[] = [{ calls: 3, isDone: false }, null].map((dying, n) => ({
  kind: 'scrape',
  pages: [
    { isTimed: true, places: ['ann', 'bob'].map((name, at) => ({ name, value: n + at, up: 1 })) },
    { isTimed: true, places: [{ name: 'ann', value: n, up: 1 }] }
  ],
  isListed: true,
  dying,
  isConcurrent: false
}))

const Query = fc.record({
  shares: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 3, maxLength: 3 }),
  tolerance: fc.constantFrom(0, 1, 3, 60),
  roster: fc.array(fc.nat({ max: 20 }), { minLength: 1, maxLength: 2 }),
  rankTolerance: fc.nat({ max: 2 })
})
type Query = Drawn<typeof Query>
const SEARCHES: Query = { shares: [0, 0.5, 1], tolerance: 1, roster: [0], rankTolerance: 0 }

/** All answers about boards equal a plain model of the scrapes and imports. */
export async function provesModel(t: Test, options: { readonly seed: number; readonly runs: number }): Promise<void> {
  const counted = { deaths: 0, failures: 0, changes: 0, given: 0, reigns: 0 }
  let isFailing = false
  let calls = 0
  const projecting: Life = {
    async call(_, work) {
      // After the call: it is done, and the next one is not.
      const isFault = isFailing && calls % 23 === 0
      if (isFailing) calls += 1
      const answer = await work()
      if (!isFault) return answer
      counted.failures += 1
      throw new Error('this call failed')
    }
  }
  const world = await openBoardWorld(t, { clock: { ms: FIRST_MS }, projecting })
  world.upstream.show({ registered: 1, online: 1, titles: [TITLE] })
  const [seen] = await world.ingest().ingest.runNow('network')
  assert.equal(seen?.outcome, 'succeeded', seen?.reason)
  const atRest = new Feed(world)
  const meanwhile = new Feed(world)
  let run = 0
  await fc.assert(
    fc.asyncProperty(Steps, Query, async (steps, query) => {
      run += 1
      const own: Own = {
        n: run,
        ids: [2 * run, 2 * run + 1],
        names: new Map(),
        startMs: FIRST_MS + run * HOUR_MS,
        timeMs: run * 2000
      }
      world.clock.ms = own.startMs
      const seenByPlayer = new Map<string, string[]>()
      for (const step of steps) {
        const published = await publishedOf(world, own)
        isFailing = true
        const [{ isDead, isWhole }] = await Promise.all([carriedOut(world, own, step, published), meanwhile.page(3)])
        if (isDead) counted.deaths += 1
        isFailing = false
        await world.passTime()
        world.clock.ms += STEP_MS
        await world.caughtUp()
        const log = await logOf(world, own)
        if (step.kind === 'scrape' && isWhole) provesPage(log, own, step)
        counted.changes += await provesFeed(atRest, log, own, seenByPlayer)
      }
      const log = await logOf(world, own)
      await meanwhile.drain(50)
      const ever = new Set([...own.ids].flatMap((id) => [...recordedOf(log.get(id) ?? []).keys()]))
      for (const id of meanwhile.takeNew()) assert.ok(ever.has(offsetOf(id)), `${id} never was a change`)
      for (const id of own.ids) {
        const ids = changesOf(historyOf(log.get(id) ?? [])).map(({ event }) => event.position)
        for (const offset of ids) assert.ok(meanwhile.has(offset), `${offset} was not given`)
        counted.given += ids.length
        counted.reigns += await provesBoard(world, own, id, log.get(id) ?? [], query)
      }
      await provesPlayers(world, own, log)
      await provesSearches(world, own, log, query)
      await provesRecent(world, own, log)
    }),
    { seed: options.seed, numRuns: options.runs, endOnFailure: true, examples: [[[...MORTAL], SEARCHES]] }
  )
  t.comment(JSON.stringify(counted))
  t.ok(counted.deaths > 0 && counted.changes > 0 && counted.reigns > 0, JSON.stringify(counted))
}

/** Returns the events of a run's boards in the log. */
async function publishedOf(world: BoardWorld, { ids }: Own): Promise<LeaderboardEntryChanged[]> {
  return (await world.events(leaderboardEntryTopic)).filter(({ leaderboardId }) => ids.includes(leaderboardId))
}

/**
 * Takes a step, which may publish some of the `published` events again. `isDead`: a process died in it. `isWhole`:
 * every board was visited; a board whose last visit is not readable yet, because calls of the projector fail, is
 * visited later.
 */
async function carriedOut(
  world: BoardWorld,
  own: Own,
  step: Step,
  published: readonly LeaderboardEntryChanged[]
): Promise<{ isDead: boolean; isWhole: boolean }> {
  if (step.kind === 'import') {
    const elapsedMs = world.clock.ms - own.startMs
    const events = step.events.map((event) => importedEvent(own, event, elapsedMs))
    const again = step.again.flatMap((n) => published[n % Math.max(1, published.length)] ?? [])
    const { ingest } = world.ingest()
    const provenance = { source: '/import/file', importId: String(own.n).padStart(32, '0') }
    await ingest.publish(leaderboardEntryTopic, [...events, ...again, ...events.slice(0, 1)], provenance)
    await ingest.stop()
    return { isDead: false, isWhole: false }
  }
  const shown = step.pages.map((page, at) => pageOf(own, own.ids[at] ?? 0, page))
  world.upstream.showGame(TITLE.titleId, { lobbies: [], boards: shown.slice(0, step.isListed ? 2 : 1) })
  const life = step.dying === null ? undefined : lifeUntil(step.dying.calls, step.dying.isDone)
  const processes = [world.ingest(life === undefined ? {} : { life }), ...(step.isConcurrent ? [world.ingest()] : [])]
  const runs = (await Promise.all(processes.map(({ ingest }) => ingest.runNow('boards')))).flat()
  await Promise.all(processes.map(({ ingest }) => ingest.stop()))
  return { isDead: life?.isOver() === true, isWhole: runs.every(({ outcome }) => outcome === 'succeeded') }
}

function pageOf(own: Own, leaderboardId: number, { isTimed, places }: Drawn<typeof PageOf>): UpstreamBoard {
  let rank = 0
  const entries = places.map(({ name, value, up }): UpstreamEntry => {
    rank += up
    return { rank, name: named(own, name), score: isTimed ? timeOf(own, value) : String(10 * value) }
  })
  return { leaderboardId, name: `Board ${leaderboardId}`, entries }
}

function named({ n }: Own, name: string): string {
  return `${name} ${n}`
}

function timeOf({ timeMs }: Own, value: number): string {
  return timeText(timeMs + value).padStart(9, '0')
}

function importedEvent(own: Own, event: Drawn<typeof Imported>, elapsedMs: number): LeaderboardEntryChanged {
  const { board, name, share, value, isTimed, rank, isGone } = event
  const which = {
    titleId: TITLE.titleId,
    leaderboardId: own.ids[board] ?? 0,
    playerName: named(own, name),
    changedAt: instantOf(own.startMs + Math.floor(share * elapsedMs))
  }
  if (isGone) return { ...which, changeType: 'removed' }
  const measure = isTimed
    ? { rating: timeOf(own, value), timeMs: own.timeMs + value }
    : { rating: value === 0 ? 'none' : `${10 * value}` }
  return { ...which, changeType: 'new', ...measure, ...(rank === null ? {} : { rank }) }
}

type Log = ReadonlyMap<number, readonly EntryEvent[]>

/** Returns the contents of the log about a run's boards. */
async function logOf(world: BoardWorld, { ids, names }: Own): Promise<Log> {
  for (const { leaderboardId, name } of await world.events(leaderboardTopic)) {
    if (ids.includes(leaderboardId)) names.set(leaderboardId, name)
  }
  const log = new Map<number, EntryEvent[]>(ids.map((id) => [id, []]))
  for (const [position, event] of (await world.events(leaderboardEntryTopic)).entries()) {
    log.get(event.leaderboardId)?.push({
      playerName: event.playerName,
      occurrence: event.occurrence ?? 1,
      ms: Date.parse(event.changedAt),
      position,
      isGone: event.changeType === 'removed',
      rating: event.rating ?? '',
      timeMs: event.timeMs ?? null,
      statedRank: event.rank ?? null,
      order: event.order ?? null,
      step: event.step ?? null
    })
  }
  return log
}

/** After an undisturbed scrape the fold of all events equals the page. */
function provesPage(log: Log, own: Own, step: Extract<Step, { kind: 'scrape' }>): void {
  for (const [at, page] of step.pages.entries()) {
    if (at > 0 && !step.isListed) continue
    const id = own.ids[at] ?? 0
    const fold = boardOf(historyOf(log.get(id) ?? []))
    assert.deepEqual(
      fold.map(({ rank, event }) => ({ rank, name: event.playerName, score: event.rating })),
      pageOf(own, id, page).entries
    )
  }
}

/** Reads the feed from the start. */
class Feed {
  readonly #world: BoardWorld
  readonly #given = new Set<number>()
  #new: string[] = []
  #url = '/api/leaderboard-changes?limit=3&after=start'

  constructor(world: BoardWorld) {
    this.#world = world
  }

  has(offset: number): boolean {
    return this.#given.has(offset)
  }

  takeNew(): string[] {
    return this.#new.splice(0)
  }

  // biome-ignore lint/suspicious/noExplicitAny: compared whole
  async page(limit: number): Promise<any[]> {
    const { status, body, next = '' } = await this.#world.ask(this.#url.replace(/limit=\d+/, `limit=${limit}`))
    assert.equal(status, 200, JSON.stringify(body))
    this.#url = next
    for (const { id } of body) {
      assert.ok(!this.#given.has(offsetOf(id)), `${id} was given twice`)
      this.#given.add(offsetOf(id))
      this.#new.push(id)
    }
    return body
  }

  // biome-ignore lint/suspicious/noExplicitAny: compared whole
  async drain(limit: number): Promise<any[]> {
    // biome-ignore lint/suspicious/noExplicitAny: compared whole
    const all: any[] = []
    for (;;) {
      const page = await this.page(limit)
      all.push(...page)
      if (page.length === 0) return all
    }
  }
}

function offsetOf(id: string): number {
  return Number.parseInt(id.split('-')[2] ?? '', 36)
}

/** Reads the feed from its last end, with no work under way: all changes recorded since then, in order. */
async function provesFeed(feed: Feed, log: Log, own: Own, seenByPlayer: Map<string, string[]>): Promise<number> {
  const found = await feed.drain(4)
  const wanted = own.ids.flatMap((id) => {
    const events = log.get(id) ?? []
    const recorded = recordedOf(events)
    const from = Number(seenByPlayer.get(`${id}`)?.[0] ?? -1)
    seenByPlayer.set(`${id}`, [String(Math.max(from, ...events.map(({ position }) => position)))])
    return changesOf(historyOf(events)).flatMap((change) => {
      const at = recorded.get(change.event.position)?.position ?? 0
      return at > from ? [{ at, offset: change.event.position, row: rowOf(own, id, change) }] : []
    })
  })
  const inOrder = wanted.sort((a, b) => a.at - b.at || a.offset - b.offset)
  assert.deepEqual(
    found.map(({ id, ...row }) => [offsetOf(id), row]),
    inOrder.map(({ offset, row }) => [offset, row]),
    'the feed'
  )
  return found.length
}

function rowOf(own: Own, leaderboardId: number, change: EntryChange) {
  const board = { leaderboardId, leaderboardName: own.names.get(leaderboardId) ?? '' }
  return { titleId: TITLE.titleId, gameName: TITLE.name, ...board, ...changeRow(change) }
}

async function provesBoard(
  world: BoardWorld,
  own: Own,
  id: number,
  events: readonly EntryEvent[],
  query: Query
): Promise<number> {
  const path = `/api/game/${TITLE.titleId}/leaderboards/${id}`
  const history = historyOf(events)
  const now = await world.ask(path)
  // Neither listed nor with an entry: unknown.
  if (now.status === 404) {
    assert.equal(events.length, 0)
    return 0
  }
  assert.deepEqual(now.body.entries.map(withoutText), boardOf(history).map(shownEntry), 'now')
  const lastMs = world.clock.ms
  const drawn = query.shares.map((share) => own.startMs + Math.floor(share * (lastMs - own.startMs)))
  const exact = [...new Set(events.map(({ ms }) => ms))].flatMap((ms) => [ms - 1, ms])
  for (const ms of new Set([...drawn, ...exact])) {
    const { status, body } = await world.ask(`${path}?asOf=${instantOf(ms)}`)
    const wanted = boardOf(history, ms).map(shownEntry)
    if (status === 404) assert.ok(!history.some((event) => event.ms <= ms), `as of ${instantOf(ms)}`)
    else assert.deepEqual(body.entries.map(withoutText), wanted, `as of ${instantOf(ms)}`)
  }
  const [fromMs = 0, toMs = 0] = [...drawn].sort((a, b) => a - b)
  if (fromMs < toMs) await provesComparison(world, `${path}/compare`, history, [fromMs, toMs])
  const reigns = recordsOf(history)
  const firstMs = firstEntryMs(events)
  const records = await world.ask(`${path}/records`)
  assert.deepEqual(
    records.body.records.map(withoutText),
    reigns.map(({ playerName, rating, timeMs, setAt, fromAt, toAt }, at) => ({
      ...{ playerName, rating, timeMs: timeMs ?? 0, isTime: timeMs !== null },
      ...{ setAt: shownInstant(setAt), fromAt: shownInstant(fromAt), toAt: toAt === null ? null : shownInstant(toAt) },
      fromIsFirstSight: fromAt === firstMs,
      isContested: fromAt !== firstMs && setAt === fromAt && reigns[at - 1]?.toAt === fromAt
    })),
    'records'
  )
  await provesNewest(world, own, id, events)
  return reigns.length
}

/** The first instant at which the board had an entry. */
function firstEntryMs(events: readonly EntryEvent[]): number {
  return Math.min(...events.filter(({ isGone }) => !isGone).map(({ ms }) => ms))
}

// biome-ignore lint/suspicious/noExplicitAny: compared whole
function withoutText({ timeFormatted, ...rest }: any) {
  assert.equal(timeFormatted, rest.isTime ? timeText(rest.timeMs) : '')
  return rest
}

function shownEntry({ rank, event: { playerName, rating, timeMs } }: RankedEntry) {
  return { rank: String(rank), name: playerName, rating, timeMs: timeMs ?? 0, isTime: timeMs !== null }
}

async function provesComparison(
  world: BoardWorld,
  path: string,
  history: readonly EntryEvent[],
  [fromMs, toMs]: readonly [number, number]
): Promise<void> {
  const { status, body } = await world.ask(`${path}?from=${instantOf(fromMs)}&to=${instantOf(toMs)}`)
  if (status === 404) return assert.ok(!history.some(({ ms }) => ms <= fromMs))
  const [before, after] = [boardOf(history, fromMs), boardOf(history, toMs)]
  const same = (a: RankedEntry) => (b: RankedEntry) =>
    a.event.playerName === b.event.playerName && a.event.occurrence === b.event.occurrence
  const line = (then: RankedEntry | undefined, now: RankedEntry | undefined) => ({
    name: (now ?? then)?.event.playerName,
    ...{ previousRank: then?.rank ?? null, newRank: now?.rank ?? null },
    ...{ previousRating: then?.event.rating ?? null, newRating: now?.event.rating ?? null },
    ...{ previousTimeMs: then?.event.timeMs ?? null, newTimeMs: now?.event.timeMs ?? null },
    isTime: ((now ?? then)?.event.timeMs ?? null) !== null
  })
  const pairs = after.flatMap((now) => before.filter(same(now)).map((then) => ({ then, now })))
  const linesOf = (isIn: (pair: (typeof pairs)[number]) => boolean) =>
    pairs.filter(isIn).map(({ then, now }) => line(then, now))
  const { came, left, rose, fell, improved } = body
  assert.deepEqual(
    { came, left, rose, fell, improved },
    {
      came: after.filter((now) => !before.some(same(now))).map((now) => line(undefined, now)),
      left: before.filter((then) => !after.some(same(then))).map((then) => line(then, undefined)),
      rose: linesOf(({ then, now }) => now.rank < then.rank),
      fell: linesOf(({ then, now }) => now.rank > then.rank),
      improved: linesOf(({ then, now }) => compareMeasures(now.event, then.event) < 0)
    },
    'compare'
  )
}

/** The changes of a board, newest first; of one instant that first which was recorded last. */
async function provesNewest(world: BoardWorld, own: Own, id: number, events: readonly EntryEvent[]): Promise<void> {
  const recorded = recordedOf(events)
  const wanted = changesOf(historyOf(events))
    .map((change) => ({ change, at: recorded.get(change.event.position)?.position ?? 0 }))
    .sort(
      (a, b) =>
        b.change.event.ms - a.change.event.ms || b.at - a.at || b.change.event.position - a.change.event.position
    )
    .map(({ change }) => [change.event.position, rowOf(own, id, change)])
  const found: unknown[] = []
  let url: string | undefined = `/api/leaderboard-changes?game=${TITLE.titleId}&leaderboardId=${id}&limit=7`
  while (url !== undefined) {
    const page = await world.ask(url)
    for (const { id, ...row } of page.body) found.push([offsetOf(id), row])
    url = page.next
  }
  assert.deepEqual(found, wanted, 'newest changes')
}

type Placed = RankedEntry & { readonly id: number; readonly board: readonly RankedEntry[] }

/** Returns all current entries of a run's boards. */
function entriesNow(log: Log): Placed[] {
  return [...log].flatMap(([id, events]) => {
    const board = boardOf(historyOf(events))
    return board.map((entry) => ({ ...entry, id, board }))
  })
}

function inFoundOrder(a: Placed, b: Placed): number {
  return a.rank - b.rank || byKey(a, b)
}

function byKey(a: Placed, b: Placed): number {
  const byName = Buffer.compare(Buffer.from(a.event.playerName), Buffer.from(b.event.playerName))
  return a.id - b.id || byName || a.event.occurrence - b.event.occurrence
}

function foundRow(own: Own, { id, rank, event }: Placed) {
  return {
    leaderboard_id: id,
    leaderboard_name: own.names.get(id) ?? '',
    title_id: TITLE.titleId,
    game_name: TITLE.name,
    player_name: event.playerName,
    rank,
    rating: event.rating,
    time_ms: event.timeMs ?? 0,
    time_formatted: event.timeMs === null ? '' : timeText(event.timeMs),
    is_time: event.timeMs !== null
  }
}

// biome-ignore lint/suspicious/noExplicitAny: compared whole
const withoutId = ({ id: _, ...row }: any) => row

async function provesPlayers(world: BoardWorld, own: Own, log: Log): Promise<void> {
  const all = entriesNow(log)
  for (const name of ['aNN', 'bob', 'ä'].map((each) => named(own, each))) {
    const is = (playerName: string) => nameKey(playerName) === nameKey(name)
    const entries = all.filter(({ event }) => is(event.playerName)).sort(inFoundOrder)
    const path = `/api/player/${encodeURIComponent(name)}`
    const { body } = await world.ask(path)
    assert.equal(body.total, entries.length)
    assert.deepEqual(body.boards.map(playerRow), entries.map(plainPlayerRow), name)
    const one = await world.ask(`/api/datasearch/player/${encodeURIComponent(name)}`)
    assert.deepEqual(
      one.body.results.map(withoutId),
      entries.map((entry) => foundRow(own, entry)),
      'S1'
    )
    const changes = [...log].flatMap(([id, events]) => {
      const recorded = recordedOf(events)
      return changesOf(historyOf(events))
        .filter(({ event }) => is(event.playerName))
        .map((change) => ({ change, id, at: recorded.get(change.event.position)?.position ?? 0 }))
    })
    const newest = changes.sort(
      (a, b) =>
        b.change.event.ms - a.change.event.ms || b.at - a.at || b.change.event.position - a.change.event.position
    )
    const past = await world.ask(`${path}/history?limit=500`)
    assert.deepEqual(
      past.body.map(withoutId),
      newest.map(({ change, id }) => rowOf(own, id, change)),
      'history of a player'
    )
  }
}

// biome-ignore lint/suspicious/noExplicitAny: compared whole
function playerRow({ leaderboardId, playerName, rank, entries, percentile, rating, next, observedAt }: any) {
  const above = next === null ? null : [next.rank, next.playerName, next.rating, next.gap]
  return [leaderboardId, playerName, rank, entries, percentile, rating, above, observedAt]
}

function plainPlayerRow({ id, rank, event, board }: Placed) {
  const better = board.filter((each) => each.rank < rank)
  const nearest = Math.max(...better.map((each) => each.rank))
  const above = better.findLast((each) => each.rank === nearest)
  const next =
    above === undefined
      ? null
      : [above.rank, above.event.playerName, above.event.rating, measureGap(event, above.event)]
  const percentile = Number((((board.length - better.length) / board.length) * 100).toFixed(1))
  return [id, event.playerName, rank, board.length, percentile, event.rating, next, shownInstant(event.ms)]
}

async function provesSearches(world: BoardWorld, own: Own, log: Log, query: Query): Promise<void> {
  const all = entriesNow(log)
  const names = NAMES.slice(0, 4).map((name) => named(own, name))
  const several = await world.ask(`/api/datasearch/players?names=${encodeURIComponent(names.join(','))}`)
  const isAsked = ({ event }: Placed) => names.some((name) => nameKey(name) === nameKey(event.playerName))
  assert.deepEqual(
    several.body.results.map(withoutId),
    all
      .filter(isAsked)
      .sort(inFoundOrder)
      .map((entry) => foundRow(own, entry)),
    'S2'
  )
  const ms = own.timeMs + 2
  const timed = await world.ask(`/api/datasearch/time?time=${timeText(ms)}&tolerance=${query.tolerance}`)
  const near = (entry: Placed) => Math.abs((entry.event.timeMs ?? Number.POSITIVE_INFINITY) - ms)
  assert.deepEqual(
    timed.body.results.map(withoutId),
    all
      .filter((entry) => near(entry) <= query.tolerance)
      .sort((a, b) => near(a) - near(b) || (a.event.timeMs ?? 0) - (b.event.timeMs ?? 0) || byKey(a, b))
      .map((entry) => ({ ...foundRow(own, entry), difference_ms: near(entry) })),
    'by time'
  )
  const players = query.roster.flatMap((n) => {
    const { event, rank } = all.filter(({ rank }) => rank > 0)[n] ?? {}
    return event === undefined || rank === undefined ? [] : [{ playerName: event.playerName.toUpperCase(), rank }]
  })
  if (players.length === 0) return
  const tolerance = query.rankTolerance
  const roster = await world.ask('/api/datasearch/roster', { players, tolerance })
  assert.deepEqual(
    // biome-ignore lint/suspicious/noExplicitAny: compared whole
    roster.body.results.map((board: any) => board.players.map(withoutId)),
    plainRosters(own, all, players, tolerance),
    'S3'
  )
}

/**
 * Returns the boards on which each player is near the given rank, with the nearest entry of each, closest boards first.
 */
function plainRosters(
  own: Own,
  all: readonly Placed[],
  players: readonly { readonly playerName: string; readonly rank: number }[],
  tolerance: number
): object[] {
  const rosters = own.ids.map((id) => {
    const found = players.map(({ playerName, rank }) => {
      const off = (entry: Placed) => Math.abs(entry.rank - rank)
      return all
        .filter((each) => each.id === id && nameKey(each.event.playerName) === nameKey(playerName))
        .filter((each) => off(each) <= tolerance)
        .sort((a, b) => off(a) - off(b) || byKey(a, b))
        .map((each) => ({ each, off: off(each) }))[0]
    })
    return { found, distance: found.reduce((sum, each) => sum + (each?.off ?? Number.NaN), 0) }
  })
  return rosters
    .filter(({ distance }) => !Number.isNaN(distance))
    .sort((a, b) => a.distance - b.distance)
    .map(({ found }) => found.flatMap((each) => (each === undefined ? [] : [foundRow(own, each.each)])))
}

/** Records newly set: a run's are newer than all before it. */
async function provesRecent(world: BoardWorld, own: Own, log: Log): Promise<void> {
  const wanted = [...log].flatMap(([id, events]) => {
    const reigns = recordsOf(historyOf(events))
    return reigns.flatMap((reign, at) => {
      if (reign.setAt !== reign.fromAt) return []
      const former = reigns[at - 1]
      const isFirst = reign.fromAt === firstEntryMs(events)
      const previous = former?.toAt === reign.fromAt && !isFirst ? former : undefined
      return { id, at, reign, previous }
    })
  })
  wanted.sort((a, b) => b.reign.setAt - a.reign.setAt || a.id - b.id || b.at - a.at)
  const { body } = await world.ask('/api/records/recent?limit=500')
  assert.deepEqual(
    body
      .filter(({ leaderboardId }: { leaderboardId: number }) => own.ids.includes(leaderboardId))
      .map(({ gameName: _, titleId: __, ...row }: { gameName: string; titleId: string }) => withoutText(row)),
    wanted.map(({ id, reign, previous }) => ({
      leaderboardId: id,
      leaderboardName: own.names.get(id) ?? '',
      ...{ playerName: reign.playerName, rating: reign.rating },
      ...{ timeMs: reign.timeMs ?? 0, isTime: reign.timeMs !== null, setAt: shownInstant(reign.setAt) },
      previousPlayerName: previous?.playerName ?? null,
      previousRating: previous?.rating ?? null,
      previousTimeMs: previous?.timeMs ?? null,
      isContested: previous !== undefined,
      isCurrent: reign.toAt === null
    })),
    'records newly set'
  )
}
