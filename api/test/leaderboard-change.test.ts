import { deepStrictEqual } from 'node:assert'
import { runs } from '@gamenet/engines/testing'
import { nameKey } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { type BoardApi, NOW_MS, openBoardApi, storeDescriptions, storeTitles } from './board-api.js'
import { time } from './stored-tables.js'

const TITLES = ['4d530001', '4d530002', '0000beef']
const NAMES: Record<string, string> = { '4d530001': 'Halo', '4d530002': 'Fable' }
const FIRST_MS = NOW_MS - 3_600_000
const PARTITIONS = [
  [1, 0],
  [1, 1],
  [2, 0],
  [2, 1],
  [2, 2]
] as const

/** A row of the feed and of the table of changes. */
type Change = {
  at: number
  offset: number
  /** Delay between the event and its recording. */
  delay: number
  atMs: number
  title: string
  board: number
  player: string
  change: 'new' | 'updated' | 'removed'
  isChange: boolean
  rank: number
}

const COLUMNS = [
  ...['ts', 'title_id', 'leaderboard_id', 'epoch', 'partition', 'offset', 'recorded_epoch', 'recorded_partition'],
  ...['recorded_offset', 'is_change', 'change', 'player', 'player_key', 'occurrence', 'previous_rank', 'new_rank'],
  ...['previous_rating', 'new_rating', 'previous_time_ms', 'new_time_ms', 'is_time', 'version']
]

const partitionOf = ({ at }: Change) => PARTITIONS[at] ?? PARTITIONS[0]
const recordedOf = ({ offset, delay }: Change) => offset + delay
const idOf = (row: Change) => [...partitionOf(row), row.offset].map((part) => part.toString(36)).join('-')

async function storeChanges({ model }: BoardApi, changes: readonly Change[], version: number): Promise<void> {
  const rows = changes.map((row) => {
    const [epoch, partition] = partitionOf(row)
    const [isNew, isRemoved] = [row.change === 'new', row.change === 'removed']
    return [
      ...[time(row.atMs), row.title, row.board, epoch, partition, row.offset, epoch, partition, recordedOf(row)],
      ...[row.isChange, row.change, row.player, nameKey(row.player), 1],
      ...[isNew ? null : row.rank, isRemoved ? null : row.rank + 1, isNew ? null : '5', isRemoved ? null : '6'],
      ...[isNew ? null : 5, isRemoved ? null : 6, true, version]
    ]
  })
  await model.insert('leaderboard_change', COLUMNS, rows)
  await model.insert('leaderboard_feed', COLUMNS, rows)
}

/** Stores how far the feed is readable, and how far it is loaded. */
function storeExtents({ positions }: BoardApi, readable: readonly number[], loaded = readable): void {
  const found = PARTITIONS.flatMap(([epoch, partition], n) => [
    { name: 'project:leaderboard-entry', epoch, partition, next: readable[n] ?? 0 },
    { name: 'load:leaderboard-entry', epoch, partition, next: loaded[n] ?? 0 }
  ])
  positions.splice(0, positions.length, ...found)
}

async function clear({ model, positions }: BoardApi): Promise<void> {
  positions.length = 0
  await model.empty(['leaderboard_change', 'leaderboard_feed'])
}

async function openChanges(t: Parameters<typeof openBoardApi>[0]): Promise<BoardApi> {
  const api = await openBoardApi(t)
  await storeTitles(api.model, NAMES)
  await storeDescriptions(api.model, [
    ['4d530001', 1, FIRST_MS, 'Laps', true],
    ['4d530001', 2, FIRST_MS, 'Slayer', true],
    ['4d530002', 1, FIRST_MS, 'Gold', true]
  ])
  await api.model.insert('record_history', ['title_id', 'leaderboard_id', 'version'], [['0000beef', 1, 1]])
  await api.changed('title', 'leaderboard', 'leaderboard-entry')
  return api
}

/** Changes of several partitions and epochs; offsets have gaps, some were recorded late, some share an instant. */
const history: fc.Arbitrary<Change[]> = fc
  .array(
    fc.record({
      at: fc.integer({ min: 0, max: PARTITIONS.length - 1 }),
      gap: fc.constantFrom(1, 1, 1, 2, 9000),
      delay: fc.constantFrom(0, 0, 0, 1, 3),
      atMs: fc.integer({ min: 0, max: 40 }).map((n) => FIRST_MS + n * 1001),
      title: fc.constantFrom(...TITLES),
      board: fc.integer({ min: 1, max: 2 }),
      player: fc.constantFrom('ann', 'ANN', 'ﬁne', 'o\'\\n"', '🎮 <b>'),
      change: fc.constantFrom('new', 'updated', 'removed'),
      isChange: fc.constantFrom(true, true, true, false),
      rank: fc.integer({ min: -2, max: 2 ** 40 })
    }),
    { maxLength: 40 }
  )
  .map((drawn) => {
    const next = PARTITIONS.map(() => 0)
    return drawn.map(({ gap, ...row }) => {
      next[row.at] = (next[row.at] ?? 0) + gap
      return { ...row, offset: next[row.at] ?? 0 } as Change
    })
  })

type Filter = {
  game?: string
  leaderboardId?: number
  player?: string
  changeType?: string
  since?: number
  until?: number
}

const filters: fc.Arbitrary<Filter> = fc
  .record(
    {
      game: fc.constantFrom('halo', '4D530002', '0000beef'),
      leaderboardId: fc.integer({ min: 1, max: 3 }),
      player: fc.constantFrom('Ann', 'FINE', 'nobody', 'o\'\\n"'),
      changeType: fc.constantFrom('new', 'updated', 'removed'),
      since: fc.integer({ min: 0, max: 20 }).map((n) => FIRST_MS + n * 1001),
      until: fc.integer({ min: 21, max: 41 }).map((n) => FIRST_MS + n * 1001)
    },
    { requiredKeys: [] }
  )
  .map(({ leaderboardId, ...filter }) =>
    filter.game === undefined || leaderboardId === undefined ? filter : { ...filter, leaderboardId }
  )

const TITLE_OF: Record<string, string> = { halo: '4d530001', '4D530002': '4d530002', '0000beef': '0000beef' }

function passes(row: Change, { game, leaderboardId, player, changeType, since, until }: Filter): boolean {
  return (
    row.isChange &&
    (game === undefined || row.title === TITLE_OF[game]) &&
    (leaderboardId === undefined || row.board === leaderboardId) &&
    (player === undefined || nameKey(row.player) === nameKey(player)) &&
    (changeType === undefined || row.change === changeType) &&
    (since === undefined || row.atMs >= since) &&
    (until === undefined || row.atMs < until)
  )
}

function queryOf({ since, until, ...filter }: Filter, more: Record<string, string | number>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries({ ...filter, ...more })) query.set(name, String(value))
  if (since !== undefined) query.set('since', new Date(since).toISOString())
  if (until !== undefined) query.set('until', new Date(until).toISOString())
  return `/api/leaderboard-changes?${query}`
}

const nextOf = (headers: Record<string, unknown>) => /^<(.*)>; rel="next"$/.exec(String(headers.link))?.[1]
const idsOf = (body: readonly { id: string }[]) => body.map(({ id }) => id)
const compare = (...pairs: readonly (readonly [number, number])[]) =>
  pairs.map(([a, b]) => a - b).find((difference) => difference !== 0) ?? 0

test('the newest changes are first, and of one instant the last recorded one is first', async (t) => {
  const api = await openChanges(t)
  let version = 0
  await fc.assert(
    fc.asyncProperty(
      history,
      filters,
      fc.integer({ min: 3, max: 12 }),
      fc.integer({ min: 0, max: 9 }),
      async (all, filter, limit, offset) => {
        await clear(api)
        version += 2
        // The first change is replaced by one of another kind.
        const before = all
          .filter((_, n) => n % 3 === 0)
          .map((row) => ({ ...row, isChange: true, change: 'updated' as const }))
        await storeChanges(api, before, version)
        await storeChanges(api, all, version + 1)
        await api.changed('leaderboard-entry')
        const expected = all
          .filter((row) => passes(row, filter))
          .sort((a, b) =>
            compare(
              [b.atMs, a.atMs],
              [partitionOf(b)[0], partitionOf(a)[0]],
              [partitionOf(b)[1], partitionOf(a)[1]],
              [recordedOf(b), recordedOf(a)],
              [b.offset, a.offset]
            )
          )
          .map(idOf)
        const answer = await api.get(queryOf(filter, { limit, offset }))
        deepStrictEqual(idsOf(answer.json()), expected.slice(offset, offset + limit))
        const walked: string[] = []
        let url: string | undefined = queryOf(filter, { limit })
        while (url !== undefined) {
          const page = await api.get(url)
          walked.push(...idsOf(page.json()))
          url = nextOf(page.headers)
        }
        deepStrictEqual(walked, expected)
      }
    ),
    runs(4)
  )
  t.pass()
})

test('pages by cursor have each change once, in order, and are full, while new ones arrive', async (t) => {
  const api = await openChanges(t)
  let version = 0
  await fc.assert(
    fc.asyncProperty(
      history,
      filters,
      fc.integer({ min: 3, max: 12 }),
      fc.array(fc.nat(), { minLength: 2, maxLength: 3 }),
      async (all, filter, limit, cuts) => {
        await clear(api)
        version += 2
        await storeChanges(
          api,
          all.filter((_, n) => n % 3 === 0).map((row) => ({ ...row, isChange: true })),
          version
        )
        await storeChanges(api, all, version + 1)
        const ends = PARTITIONS.map((_, at) => 1 + Math.max(0, ...all.filter((row) => row.at === at).map(recordedOf)))
        const walked: Change[] = []
        const reached = PARTITIONS.map(() => 0)
        let url = queryOf(filter, { limit, after: 'start' })
        for (let step = 0; step <= cuts.length; step += 1) {
          // Rows are ahead of the checkpoint, as those of a running step.
          const isLast = step === cuts.length
          const readable = ends.map((end, at) => (isLast ? end : ((cuts[step] ?? 0) + at * 7919) % (end + 1)))
          for (const [at, end] of readable.entries()) reached[at] = Math.max(reached[at] ?? 0, end)
          const isBehind = reached.some((end, at) => end < (ends[at] ?? 0))
          storeExtents(api, reached, ends)
          await api.changed('leaderboard-entry')
          let ids: string[]
          do {
            const page = await api.get(url)
            deepStrictEqual(page.statusCode, 200)
            ids = idsOf(page.json())
            walked.push(...ids.map((id) => all.find((row) => idOf(row) === id) as Change))
            url = nextOf(page.headers) ?? ''
            deepStrictEqual(page.headers.etag === undefined, isBehind && ids.length < limit)
          } while (ids.length === limit)
        }
        const expected = all.filter((row) => passes(row, filter))
        deepStrictEqual(walked.map(idOf).sort(), expected.map(idOf).sort())
        for (const [at] of PARTITIONS.entries()) {
          const ofPartition = (rows: readonly Change[]) => rows.filter((row) => row.at === at).map(idOf)
          const inOrder = [...expected].sort((a, b) => compare([recordedOf(a), recordedOf(b)], [a.offset, b.offset]))
          deepStrictEqual(ofPartition(walked), ofPartition(inOrder))
        }
      }
    ),
    runs(4)
  )
  t.pass()
})

test('partitions are merged by the instants of their changes, an epoch before the next', async (t) => {
  const api = await openChanges(t)
  const row = {
    delay: 0,
    title: '4d530001',
    board: 1,
    player: 'ann',
    change: 'updated',
    isChange: true,
    rank: 3
  } as const
  await storeChanges(
    api,
    [
      { ...row, at: 0, offset: 1, atMs: FIRST_MS + 5 },
      { ...row, at: 0, offset: 2, atMs: FIRST_MS + 3 },
      { ...row, at: 1, offset: 1, atMs: FIRST_MS + 4 },
      { ...row, at: 1, offset: 9, atMs: FIRST_MS + 6 },
      { ...row, at: 3, offset: 0, atMs: FIRST_MS + 1 },
      { ...row, at: 2, offset: 0, atMs: FIRST_MS + 2 }
    ],
    1
  )
  storeExtents(api, [3, 10, 1, 1, 0])
  await api.changed('leaderboard-entry')
  const page = await api.get('/api/leaderboard-changes?after=start')
  t.same(idsOf(page.json()), ['1-1-1', '1-0-1', '1-0-2', '1-1-9', '2-1-0', '2-0-0'])
  t.same(page.json()[0], {
    id: '1-1-1',
    titleId: '4d530001',
    gameName: 'Halo',
    leaderboardId: 1,
    leaderboardName: 'Laps',
    playerName: 'ann',
    changeType: 'updated',
    previousRank: 3,
    newRank: 4,
    previousRating: '5',
    newRating: '6',
    previousTimeMs: 5,
    newTimeMs: 6,
    isTime: true,
    changedAt: '2026-03-14T19:00:30.004Z'
  })
  const end = await api.get(nextOf(page.headers) ?? '')
  t.same(end.json(), [])
  t.type(end.headers.etag, 'string', 'where nothing is under way, the end has a tag')
  t.equal((await api.get(nextOf(end.headers) ?? '')).json().length, 0, 'and leads on')
})

test('a page at the end is not cached while loaded events are not readable yet', async (t) => {
  const api = await openChanges(t)
  const row = {
    at: 0,
    delay: 0,
    title: '4d530001',
    board: 1,
    player: 'ann',
    change: 'new',
    isChange: true,
    rank: 1
  } as const
  await storeChanges(
    api,
    [
      { ...row, offset: 0, atMs: FIRST_MS },
      { ...row, offset: 1, atMs: FIRST_MS }
    ],
    1
  )
  storeExtents(api, [1], [2])
  // A reader learns of the change before its checkpoint is stored.
  await api.changed('leaderboard-entry')
  const url = '/api/leaderboard-changes?after=start'
  const early = await api.get(url)
  t.same([early.json().length, early.headers.etag, early.headers['cache-control']], [1, undefined, 'no-store'])
  storeExtents(api, [2])
  const late = await api.get(url)
  t.equal(late.json().length, 2, 'the same version of the data, the whole answer')
  t.type(late.headers.etag, 'string')
})

test('a cursor that is broken, from the future or of another filter is refused with the reason', async (t) => {
  const api = await openChanges(t)
  const row = {
    at: 0,
    delay: 0,
    title: '4d530001',
    board: 1,
    player: 'ann',
    change: 'new',
    isChange: true,
    rank: 1
  } as const
  await storeChanges(
    api,
    [0, 1, 2].map((offset) => ({ ...row, offset, atMs: FIRST_MS + offset })),
    1
  )
  storeExtents(api, [3, 1])
  await api.changed('leaderboard-entry')
  const cursorOf = async (query: string) =>
    new URL(nextOf((await api.get(`/api/leaderboard-changes?${query}`)).headers) ?? '', 'http://x').searchParams.get(
      'after'
    ) ?? ''
  const cursor = await cursorOf('after=start&limit=2')
  const refused = async (query: string, sentence: RegExp) => {
    const answer = await api.get(`/api/leaderboard-changes?${query}`)
    t.match([answer.statusCode, answer.json().error], [400, sentence], query.slice(0, 60))
  }
  t.equal(
    (await api.get(`/api/leaderboard-changes?limit=1&after=${cursor}`)).json()[0].id,
    '1-0-2',
    'limit is not a filter'
  )
  t.equal(
    (await api.get(`/api/leaderboard-changes?after=${await cursorOf('after=start&game=halo')}&game=HALO`)).statusCode,
    200
  )
  const broken = /after is not a cursor of this feed: it is broken; begin with after=start/
  for (const text of [
    'x',
    'START',
    '0',
    'e30',
    'W10',
    cursor.slice(0, -1),
    `${cursor}A`,
    `${cursor}=`,
    cursor.toLowerCase()
  ]) {
    await refused(`after=${encodeURIComponent(text)}`, broken)
  }
  const wrong: string[] = []
  for (let n = 0; n < cursor.length; n += 1) {
    const changed = cursor.slice(0, n) + (cursor[n] === 'A' ? 'B' : 'A') + cursor.slice(n + 1)
    if ((await api.get(`/api/leaderboard-changes?after=${changed}`)).statusCode !== 400) wrong.push(changed)
  }
  t.same(wrong, [], 'no character can be changed')
  await refused(`after=${cursor}&game=halo`, /it belongs to another filter/)
  await refused(`after=${await cursorOf('after=start&changeType=new')}`, /another filter/)
  await refused(`after=${cursor}&offset=1`, /offset cannot be given together with after/)
  const newest = await cursorOf('after=start')
  api.positions.length = 0
  await refused(`after=${newest}`, /it is beyond everything/)
  storeExtents(api, [2, 1])
  api.positions.splice(0, api.positions.length, ...api.positions.filter(({ epoch }) => epoch === 1))
  await api.changed('leaderboard-entry')
  await refused(`after=${newest}`, /it is beyond everything/)
  storeExtents(api, [2, 1])
  await api.changed('leaderboard-entry')
  const restored = await api.get(`/api/leaderboard-changes?after=${newest}`)
  t.same([restored.statusCode, restored.json()], [200, []], 'an epoch may have been longer before a restore')
  storeExtents(api, [2, 1], [3, 1])
  await api.changed('leaderboard-entry')
  const rolledBack = await api.get(`/api/leaderboard-changes?after=${newest}`)
  t.same([rolledBack.statusCode, rolledBack.json()], [200, []], 'tables that are rebuilt catch up with it')
  storeExtents(api, [4, 1])
  await storeChanges(api, [{ ...row, offset: 3, atMs: FIRST_MS }], 1)
  await api.changed('leaderboard-entry')
  t.equal((await api.get(`/api/leaderboard-changes?after=${newest}`)).json()[0].id, '1-0-3')
})
