import { deepStrictEqual, equal } from 'node:assert'
import { type EntryEvent, historyOf, newestSamples, recordsOf, rollupsOf, runs } from '@gamenet/engines/testing'
import { nameKey } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import {
  anyStates,
  boardAsOf,
  FIRST_MS,
  NOW_MS,
  openBoardApi,
  type State,
  storeHistory,
  storeTitles
} from './board-api.js'
import { HOUR_MS, MINUTE_MS, seriesOf, within } from './plain-counts.js'
import { iso } from './samples.js'
import { type StoredTables, time } from './stored-tables.js'

const TITLE = '4d530001'
const OTHER = '4d530002'
const IMPORTS = ['', '', 'a', 'b']
const TABLES = [
  ...['event_title_count', 'event_network_count', 'event_leaderboard_entry', 'event_import_retraction'],
  ...['title_count', 'title_count_hour', 'network_count', 'network_count_hour', 'leaderboard_history']
]
const KEPT = ['undone_title_count', 'undone_network_count', 'undone_leaderboard_entry', 'late_batch']

/** An instant of recording: clocks of several processes, so in any order. */
const recordedMs = fc.integer({ min: 0, max: 12 }).map((n) => FIRST_MS + n * 40 * MINUTE_MS)

/** When an event became known: with its recording or its late batch, until the undo of its import. */
type Recording = { readonly recordedMs: number; readonly lateMs: number | null; readonly importId: string }
const recordings = fc.record({
  recordedMs,
  lateMs: fc.option(recordedMs, { freq: 4 }),
  importId: fc.constantFrom(...IMPORTS)
})
const undos = fc.record({ a: fc.option(recordedMs), b: fc.option(recordedMs, { freq: 2 }) })
type Undos = { readonly a: number | null; readonly b: number | null }

const undoOf = (undos: Undos, { importId }: Recording): number | null => undos[importId as 'a' | 'b'] ?? null

/** The log, cut at an instant of recording. */
function knownOf<Event extends Recording>(events: readonly Event[], undos: Undos, atMs: number): Event[] {
  return events.filter((event) => {
    const undoneMs = undoOf(undos, event)
    return Math.max(event.recordedMs, event.lateMs ?? 0) <= atMs && (undoneMs === null || undoneMs > atMs)
  })
}

/** Stores events at their indexes in epoch 0 or 1; those of undone imports where an undo has put them. */
async function storeEvents<Event extends Recording>(
  model: StoredTables,
  { noun, epoch, columns }: { noun: string; epoch: number; columns(event: Event): Record<string, unknown> },
  events: readonly Event[],
  undos: Undos
): Promise<void> {
  const rows = events.map((event, offset) => ({
    row: {
      ...{ epoch, partition: 0, offset, source: '/t', import_id: event.importId },
      recorded_at: time(event.recordedMs),
      ...columns(event)
    },
    isUndone: undoOf(undos, event) !== null
  }))
  const names = Object.keys(rows[0]?.row ?? {})
  const of = (isUndone: boolean) => rows.filter((each) => each.isUndone === isUndone).map(({ row }) => row)
  await model.insertRows(`event_${noun}`, of(false))
  const insert = async (table: string, columns: readonly string[], values: readonly unknown[]) => {
    if (values.length === 0) return
    const body = values.map((row) => `${JSON.stringify(row)}\n`).join('')
    await model.clickhouse.loader.insert(table, columns, new TextEncoder().encode(body))
  }
  await insert(`undone_${noun}`, names, of(true).map(Object.values))
  const late = events.flatMap(({ lateMs }, offset) => (lateMs === null ? [] : [{ lateMs, offset }]))
  await insert(
    'late_batch',
    ['id', 'topic', 'positions', 'stored_at'],
    late.map(({ lateMs, offset }) => [
      `${noun}${offset}`,
      noun.replaceAll('_', '-'),
      [[epoch, 0, offset]],
      time(lateMs)
    ])
  )
  await model.insertRows(
    'event_import_retraction',
    (['a', 'b'] as const).flatMap((id, offset) => {
      const ms = undos[id]
      if (ms === null) return []
      const at = { epoch: 0, partition: 0, offset, source: '/t', import_id: '' }
      return [{ ...at, observed_at: time(ms), recorded_at: time(ms), retracted_import_id: id, topic: noun }]
    })
  )
}

async function emptyAll(model: StoredTables): Promise<void> {
  await model.empty(TABLES)
  for (const table of KEPT) await model.clickhouse.loader.execute(`TRUNCATE TABLE ${table}`)
}

type Counted = Recording & { readonly key: string; readonly ms: number; readonly value: number }
const counts: fc.Arbitrary<Counted[]> = fc.array(
  fc
    .tuple(
      recordings,
      fc.record({
        key: fc.constantFrom(TITLE, TITLE, OTHER),
        ms: fc.integer({ min: 0, max: 30 }).map((n) => FIRST_MS + n * 17 * MINUTE_MS),
        value: fc.nat(99)
      })
    )
    .map(([recording, count]) => ({ ...recording, ...count })),
  { maxLength: 60 }
)

const SERIES = {
  title_count: { key: 'title_id', value: 'online', path: '/api/title/4d530001/online-users/history' },
  network_count: { key: 'metric', value: 'value', path: '/api/network-stats/online-24h' }
} as const

async function storeCounts(model: StoredTables, noun: keyof typeof SERIES, events: readonly Counted[], undos: Undos) {
  const { key, value } = SERIES[noun]
  const columns = ({ key: titleId, ms, value: online }: Counted) => ({
    observed_at: time(ms),
    online,
    ...(noun === 'title_count' ? { title_id: titleId } : {})
  })
  await storeEvents(model, { noun, epoch: 0, columns }, events, undos)
  const live = events
    .map((event, position) => ({ ...event, position }))
    .filter((event) => undoOf(undos, event) === null)
  const rows = live.map((each) => ({
    [key]: each.key,
    ts: time(each.ms),
    [value]: each.value,
    position: each.position
  }))
  await model.insertRows(noun, rows)
  await model.insertRows(
    `${noun}_hour`,
    rollupsOf(newestSamples(live), HOUR_MS).map((hour) => ({
      ...{ [key]: hour.key, hour: time(hour.fromMs).slice(0, 19), min: hour.min, max: hour.max },
      ...{ max_at: time(hour.maxAtMs), sum: String(hour.sum), samples: hour.samples },
      position: Math.max(
        ...live
          .filter((e) => e.key === hour.key && Math.floor(e.ms / HOUR_MS) * HOUR_MS === hour.fromMs)
          .map((e) => e.position)
      )
    }))
  )
}

for (const noun of ['title_count', 'network_count'] as const) {
  test(`${noun}: a series as known at any instant equals the samples of the cut log`, async (t) => {
    const api = await openBoardApi(t)
    await storeTitles(api.model, { [TITLE]: 'Halo' })
    await fc.assert(
      fc.asyncProperty(
        counts,
        undos,
        recordedMs,
        fc.constantFrom('raw', '900', '3600'),
        async (given, undos, atMs, width) => {
          const key = noun === 'title_count' ? TITLE : 'online'
          const events = noun === 'title_count' ? given : given.map((event) => ({ ...event, key }))
          await emptyAll(api.model)
          await storeCounts(api.model, noun, events, undos)
          await api.changed(
            'title-count',
            'title-count-hour',
            'network-count',
            'network-count-hour',
            'import-retraction',
            'title'
          )
          const window = { fromMs: FIRST_MS + 5 * MINUTE_MS, toMs: FIRST_MS + 8 * HOUR_MS }
          const url = `${SERIES[noun].path}?from=${iso(window.fromMs)}&to=${iso(window.toMs)}&resolution=${width}&knownAt=${iso(atMs)}`
          const answer = await api.get(url)
          const known = newestSamples(knownOf(events, undos, atMs)).filter((event) => event.key === key)
          const expected = seriesOf(
            within(known, window.fromMs, window.toMs),
            width === 'raw' ? 0 : Number(width),
            'online_count'
          )
          deepStrictEqual(answer.json(), expected)
          const file = await api.get(`${url}&format=ndjson`)
          deepStrictEqual(file.body.split('\n').length - 1, expected.length)
        }
      ),
      runs(12)
    )
    t.pass()
  })
}

type Entry = State & Recording

async function storeBoard(model: StoredTables, states: readonly Entry[], undos: Undos): Promise<void> {
  const columns = (s: Entry) => ({
    ...{ observed_at: time(s.atMs), title_id: TITLE, leaderboard_id: 1, player: s.playerName },
    ...{ player_key: nameKey(s.playerName), occurrence: s.occurrence, change: s.isGone ? 'removed' : 'updated' },
    ...{ rating: s.rating, time_ms: s.timeMs, is_ascending: s.isAscending ?? false, stated_rank: s.statedRank },
    ...{ ord: s.order, step: s.step, details: s.details }
  })
  await storeEvents(model, { noun: 'leaderboard_entry', epoch: 1, columns }, states, undos)
  await storeHistory(
    model,
    [TITLE, 1],
    states.filter((state) => undoOf(undos, state) === null)
  )
}

const boards: fc.Arbitrary<Entry[]> = anyStates.chain((states) =>
  fc
    .array(recordings, { minLength: states.length, maxLength: states.length })
    .map((all) => states.map((state, n) => ({ ...state, ...(all[n] as Recording) })))
)

/** The states that the fold of records is given, folded plainly. */
function plainRecords(board: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { players, occurrences, states } = board as { players: string[]; occurrences: number[]; states: unknown[][][] }
  const events = players.flatMap((playerName, n) =>
    (states[n] ?? []).map((state) => {
      const [ms, , , position, isGone, rating, timeMs, statedRank, order, step, details, isAscending] = state
      const measure = { isGone, rating, timeMs, statedRank, order, step, details, isAscending }
      return { playerName, occurrence: occurrences[n], ms, position, ...measure } as EntryEvent
    })
  )
  return recordColumns(events)
}

function recordColumns(events: readonly EntryEvent[]): Record<string, unknown> {
  const reigns = recordsOf(historyOf(events))
  return {
    players: reigns.map(({ playerName }) => playerName),
    ratings: reigns.map(({ rating }) => rating),
    times_ms: reigns.map(({ timeMs }) => timeMs),
    set_at: reigns.map(({ setAt }) => setAt),
    from_at: reigns.map(({ fromAt }) => fromAt),
    to_at: reigns.map(({ toAt }) => toAt)
  }
}

test('a board and its records as known at any instant equal the plain fold of the cut log', async (t) => {
  const api = await openBoardApi(t, { foldRecords: plainRecords })
  await storeTitles(api.model, { [TITLE]: 'Halo' })
  const asOfs = fc.option(fc.integer({ min: 0, max: 13 }).map((n) => FIRST_MS + n * MINUTE_MS))
  await fc.assert(
    fc.asyncProperty(boards, undos, recordedMs, asOfs, async (states, undos, atMs, asOfMs) => {
      await emptyAll(api.model)
      await storeBoard(api.model, states, undos)
      await api.changed('leaderboard', 'leaderboard-history', 'import-retraction', 'title')
      const asOf = asOfMs === null ? '' : `&asOf=${iso(asOfMs)}`
      const answer = await api.get(`/api/game/halo/leaderboards/1?knownAt=${iso(atMs)}${asOf}`)
      const known = knownOf(states, undos, atMs).filter((state) => state.atMs <= (asOfMs ?? NOW_MS))
      if (known.length === 0) return deepStrictEqual(answer.statusCode, 404)
      const shown = (answer.json().entries as Record<string, unknown>[]).map((e) => [e.name, e.rank, e.rating])
      deepStrictEqual(
        shown,
        boardAsOf(known.map(plain), NOW_MS).map((e) => [e.name, String(e.rank), e.rating])
      )
      const { records } = (await api.get(`/api/game/halo/leaderboards/1/records?knownAt=${iso(atMs)}`)).json()
      const all = knownOf(states, undos, atMs).map(plain)
      const reigns = recordColumns(all.map(({ atMs: ms, offset: position, ...state }) => ({ ...state, ms, position })))
      deepStrictEqual(
        records.map((each: Record<string, unknown>) => [each.playerName, each.rating, each.fromAt]),
        (reigns.players as string[]).map((name, n) => {
          return [name, (reigns.ratings as string[])[n], iso((reigns.from_at as number[])[n] ?? 0)]
        })
      )
    }),
    runs(12)
  )
  t.pass()
})

/** Without what the oracle would count as a part of the fact. */
function plain({ recordedMs: _recorded, lateMs: _late, importId: _import, ...state }: Entry): State {
  return state
}

test('tags of counts, a board and records change by an erasure and an undo before the instant, and by nothing else', async (t) => {
  const api = await openBoardApi(t, { foldRecords: plainRecords })
  await storeTitles(api.model, { [TITLE]: 'Halo' })
  const atMs = FIRST_MS + HOUR_MS
  const recording = { recordedMs: FIRST_MS, lateMs: null, importId: '' }
  const late = { ...recording, recordedMs: atMs + 1 }
  const entry = (playerName: string, rating: string, more: Recording): Entry => ({
    ...{ playerName, rating, occurrence: 1, timeMs: null, statedRank: null, order: null, step: null, details: '' },
    ...{ isGone: false, atMs: FIRST_MS + MINUTE_MS, offset: Number(rating) / 10, ...more }
  })
  const count = (value: number, more: Recording): Counted => ({ key: TITLE, ms: FIRST_MS + value, value, ...more })
  const counts = [count(1, recording), count(2, { ...recording, importId: 'a' })]
  const entries = [
    entry('ann', '0', recording),
    entry('bob', '10', { ...recording, importId: 'a' }),
    entry('cleo', '20', { ...recording, importId: 'b' })
  ]
  const paths = [
    `${SERIES.title_count.path}?from=${iso(FIRST_MS)}&to=${iso(atMs)}&resolution=raw`,
    `/api/game/halo/leaderboards/1?asOf=${iso(atMs)}`,
    '/api/game/halo/leaderboards/1?limit=5',
    '/api/game/halo/leaderboards/1/records?limit=5'
  ]
  const spelled = (instant: string) =>
    Promise.all(paths.map((path) => api.get(`${path}&knownAt=${encodeURIComponent(instant)}`)))
  const tags = async () => {
    await api.changed('title-count', 'leaderboard', 'leaderboard-history', 'import-retraction', 'title')
    const answers = await spelled(iso(atMs))
    for (const answer of answers) equal(answer.statusCode, 200, answer.body)
    return answers.map(({ headers }) => String(headers.etag))
  }
  const tagsOf = async (events: readonly Counted[], states: readonly Entry[], undos: Undos) => {
    await emptyAll(api.model)
    // The later one keeps both undos.
    await storeCounts(api.model, 'title_count', events, undos)
    await api.model.empty(['event_import_retraction'])
    await storeBoard(api.model, states, undos)
    return await tags()
  }
  const none = { a: null, b: null }
  const first = await tagsOf(counts, entries, none)
  t.equal(new Set(first).size, paths.length)
  const more = [
    [...counts, count(3, late), { ...count(1, late), value: 9 }],
    [...entries, entry('ann', '30', late)]
  ] as const
  t.same(await tagsOf(...more, none), first, 'events that are recorded later')
  t.same(await tagsOf(...more, { a: atMs + 1, b: atMs + MINUTE_MS }), first, 'undos that are recorded later')
  api.pointers.counter += 1
  t.same(await tags(), first, 'a swap of rebuilt tables')

  const undone = await tagsOf(...more, { a: atMs, b: atMs + 1 })
  for (const [n, tag] of undone.entries()) t.not(tag, first[n], `an undo that was recorded before: ${paths[n]}`)
  const left = more[1].map((each) =>
    each.playerName === 'ann' ? { ...each, playerName: 'nobody', isGone: true } : each
  )
  const [countsTag, ...erased] = await tagsOf(more[0], left, { a: atMs, b: atMs + 1 })
  t.equal(countsTag, undone[0], 'counts are of nobody')
  for (const [n, tag] of erased.entries()) t.not(tag, undone[n + 1], `an erasure: ${paths[n + 1]}`)

  const second = iso(atMs).slice(0, 19)
  const shifted = iso(atMs + 2 * HOUR_MS).slice(0, 19)
  const spellings = [
    `${second}Z`,
    `${second}z`,
    `${second.replace('T', 't')}Z`,
    `${second}.000Z`,
    `${second}.000000999Z`
  ]
  for (const same of [...spellings, `${second}+00:00`, `${shifted}+02:00`, `${shifted}+0200`, `${shifted}+02`]) {
    const answers = await spelled(same)
    t.same(
      answers.map(({ headers }) => headers.etag),
      [countsTag, ...erased],
      same
    )
  }
  const day = await Promise.all([
    ...['2026-03-14', '2026-03-13T23:00:00Z'].map((at) => api.get(`${paths[2]}&knownAt=${at}&tz=Europe/Berlin`))
  ])
  t.same(day[0]?.body, day[1]?.body, 'a day begins in the zone of the question')
  for (const wrong of [second, `${second} Z`, `${second}+25:00`, '1773518400', '1969-12-31T23:59:59Z', iso(NOW_MS + 1)])
    for (const answer of await spelled(wrong)) t.equal(answer.statusCode, 400, wrong)
  t.same(
    (await spelled(iso(NOW_MS))).map(({ statusCode }) => statusCode),
    paths.map(() => 200),
    'now has been'
  )
  const before = await spelled(iso(FIRST_MS - 1))
  t.same(
    before.map(({ statusCode }) => statusCode),
    [200, 404, 404, 404],
    'before the first event'
  )
  t.same(before[0]?.json(), [])
})

test('nothing but what was known changes an answer and its tag; other endpoints name those with knownAt', async (t) => {
  const api = await openBoardApi(t)
  await storeTitles(api.model, { [TITLE]: 'Halo' })
  const changed = () => api.changed('title-count', 'leaderboard-history', 'import-retraction', 'title')
  const recording = { recordedMs: FIRST_MS, lateMs: null, importId: 'a' }
  const event = { ...recording, key: TITLE, ms: FIRST_MS, value: 7 }
  const none = { a: null, b: null }
  const atMs = FIRST_MS + HOUR_MS
  const url = `${SERIES.title_count.path}?from=${iso(FIRST_MS)}&to=${iso(FIRST_MS + HOUR_MS)}&knownAt=${iso(atMs)}`
  const store = async (events: readonly Counted[], undos: Undos) => {
    await emptyAll(api.model)
    await storeCounts(api.model, 'title_count', events, undos)
    await changed()
    return [await api.get(url), await api.get(`${url}&format=csv`)] as const
  }
  const [first, file] = await store([event], none)
  t.equal(first.json().length, 1)
  const later = { ...event, recordedMs: atMs + 1, ms: event.ms + MINUTE_MS, value: 8, importId: '' }
  for (const undos of [none, { ...none, a: atMs + 1 }]) {
    const [after, fileAfter] = await store([event, later, { ...later, ms: event.ms }], undos)
    t.equal(after.body, first.body)
    t.equal(after.headers.etag, first.headers.etag, 'what was recorded later changes nothing')
    t.equal(fileAfter.headers.etag, file.headers.etag)
    const tagged = { 'if-none-match': String(first.headers.etag) }
    t.equal((await api.get(url, tagged)).statusCode, 304)
    t.equal((await api.get(url, tagged)).statusCode, 304, 'from memory')
    t.equal((await api.get(`${url}&format=csv`, { 'if-none-match': String(file.headers.etag) })).statusCode, 304)
  }
  const [undone] = await store([event, later], { ...none, a: atMs })
  t.same(undone.json(), [], 'an undo that was recorded before')
  t.not(undone.headers.etag, first.headers.etag)

  const refused = await api.get('/api/records/recent?knownAt=2026-01-01')
  t.equal(refused.statusCode, 400)
  t.match(refused.json().error, SERIES.title_count.path.replace(TITLE, ':titleId'))
  for (const given of ['2099-01-01', '2026-13-01', 'yesterday', '']) {
    t.equal((await api.get(`/api/game/halo/leaderboards/1?knownAt=${given}`)).statusCode, 400, given)
  }
  t.same((await api.get(`${SERIES.title_count.path}?knownAt=1970-01-01`)).json(), [])
  t.equal((await api.get('/api/game/halo/leaderboards/1?knownAt=1970-01-01')).statusCode, 404)
})
