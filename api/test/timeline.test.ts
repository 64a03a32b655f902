import { deepStrictEqual } from 'node:assert'
import { runs } from '@gamenet/engines/testing'
import { nameKey, Timeline } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { NOW_MS, storeDescriptions, storeTitles } from './board-api.js'
import { openProfileApi, type ProfileApi } from './profile-api.js'
import { compareText } from './search-model.js'
import { time } from './stored-tables.js'

const HALO = '4d530001'
const TITLES = [HALO, '4d530002']
const FIRST_MS = NOW_MS - 3_600_000

type Change = {
  readonly atMs: number
  readonly titleId: string
  readonly board: number
  readonly partition: number
  readonly offset: number
  readonly player: string
  readonly previousRank: number | null
  readonly newRank: number | null
  readonly isChange: boolean
  /** The table had it as a change before, and still has that row. */
  readonly wasChange: boolean
  readonly isRecord: boolean
}
type World = {
  readonly changes: readonly Change[]
  readonly unlocks: readonly { readonly id: number; readonly points: number; readonly ms: number }[]
}

const aRank = fc.option(fc.constantFrom(1, 2, 50), { freq: 4, nil: null })
const worlds: fc.Arbitrary<World> = fc.record({
  changes: fc
    .array(
      fc.record({
        atMs: fc.constantFrom(0, 1, 2, 3, 4, 5).map((n) => FIRST_MS + n * 1001),
        titleId: fc.constantFrom(...TITLES),
        board: fc.constantFrom(1, 2),
        partition: fc.constantFrom(0, 3),
        player: fc.constantFrom('Bob', 'bob', 'ＢＯＢ', 'ann'),
        previousRank: aRank,
        newRank: aRank,
        isChange: fc.constantFrom(true, true, true, false),
        wasChange: fc.boolean(),
        isRecord: fc.constantFrom(true, false, false)
      }),
      { maxLength: 40 }
    )
    .map((drawn) => drawn.map((each, offset) => ({ ...each, offset }))),
  unlocks: fc.uniqueArray(
    fc.record({
      id: fc.constantFrom(1, 2, 3, 51, 60_000),
      points: fc.constant(5),
      ms: fc.constantFrom(0, 2, 5).map((n) => FIRST_MS + n * 1001)
    }),
    { selector: ({ id }) => id }
  )
})

const CHANGE_COLUMNS = [
  ...['ts', 'title_id', 'leaderboard_id', 'epoch', 'partition', 'offset', 'recorded_epoch', 'recorded_partition'],
  ...['recorded_offset', 'is_change', 'change', 'player', 'player_key', 'occurrence', 'previous_rank', 'new_rank'],
  ...['new_rating', 'new_time_ms', 'is_time', 'version']
]

async function store(api: ProfileApi, { changes, unlocks }: World): Promise<void> {
  const { insert, empty } = api.model
  await api.clearPeople()
  await empty(['leaderboard_change', 'record_history', 'player_entry', 'player'])
  const row = (change: Change, isChange: boolean, version: number) => [
    ...[time(change.atMs), change.titleId, change.board, 1, change.partition, change.offset, 1, 0, change.offset],
    ...[isChange, change.newRank === null ? 'removed' : 'updated', change.player, nameKey(change.player), 1],
    ...[change.previousRank, change.newRank, '7', null, false, version]
  ]
  const old = changes.filter(({ wasChange }) => wasChange)
  await insert(
    'leaderboard_change',
    CHANGE_COLUMNS,
    old.map((change) => row(change, true, 1))
  )
  await insert(
    'leaderboard_change',
    CHANGE_COLUMNS,
    changes.map((change) => row(change, change.isChange, 2))
  )
  for (const [titleId, board] of BOARDS) {
    const reigns = recordsOn(changes, titleId, board)
    // After each record, one that a removal restored: it is not newly set.
    const columns = ['title_id', 'leaderboard_id', 'players', 'occurrences', 'ratings', 'times_ms']
    const rows = reigns.flatMap((record) => [record, record])
    const instants = reigns.flatMap(({ atMs }) => [time(atMs), time(atMs + 500)])
    await insert(
      'record_history',
      [...columns, 'set_at', 'from_at', 'to_at', 'version'],
      [
        [
          ...[
            titleId,
            board,
            rows.map(({ player }) => player),
            rows.map(() => 1),
            rows.map(() => '9'),
            rows.map(() => 9)
          ],
          ...[reigns.flatMap(({ atMs }) => [time(atMs), time(atMs)]), instants, rows.map(() => null), 1]
        ]
      ]
    )
  }
  await insert(
    'player_entry',
    ['player_key', 'title_id', 'leaderboard_id', 'player', 'occurrence', 'is_gone', 'rank', 'ts', 'version'],
    changes.map((each) => [nameKey(each.player), each.titleId, each.board, each.player, 1, true, 1, time(each.atMs), 1])
  )
  await insert(
    'player',
    ['player_key', 'player'],
    changes.map(({ player }) => [nameKey(player), player])
  )
  await api.storeUnlocks('ann', unlocks)
  await api.changed('achievement-unlock', 'leaderboard-entry', 'player-entry', 'player')
}

const BOARDS = TITLES.flatMap((titleId) => [1, 2].map((board) => [titleId, board] as const))

function recordsOn(changes: readonly Change[], titleId: string, board: number): readonly Change[] {
  return changes.filter((each) => each.isRecord && each.titleId === titleId && each.board === board)
}

/** The complete timeline of Bob, by loops: instants, kinds and identities of events. */
function plainTimeline({ changes, unlocks }: World): string[] {
  const own = (change: Change) => nameKey(change.player) === 'bob'
  const records = BOARDS.flatMap(([titleId, board]) =>
    recordsOn(changes, titleId, board).flatMap((each, n) => (own(each) ? [{ ...each, n }] : []))
  )
  const isRecord = (each: Change) =>
    records.some(
      (record) =>
        record.atMs === each.atMs &&
        record.titleId === each.titleId &&
        record.board === each.board &&
        record.player === each.player
    )
  const ranks = changes.filter(
    (each) =>
      own(each) &&
      each.isChange &&
      each.newRank !== null &&
      (each.previousRank === null || each.newRank < each.previousRank) &&
      !isRecord(each)
  )
  const known = unlocks.filter(({ id }) => id < 60_000)
  const all = [
    ...known.map(({ id, ms }) => ({ atMs: ms, order: [0, '', id, 0, 0], text: `unlock ${id}` })),
    ...records.map((each) => ({
      atMs: each.atMs,
      order: [1, each.titleId, each.board, each.n, 0],
      text: `record ${each.titleId} ${each.board} ${each.player}`
    })),
    ...ranks.map((each) => ({
      atMs: each.atMs,
      order: [2, each.titleId, each.board, each.partition, each.offset],
      text: `rank ${each.titleId} ${each.board} ${each.player} ${each.previousRank} ${each.newRank}`
    }))
  ]
  return all
    .sort((a, b) => b.atMs - a.atMs || compareOrder(a.order, b.order))
    .map(({ atMs, text }) => `${new Date(atMs).toISOString()} ${text}`)
}

function compareOrder(a: readonly (string | number)[], b: readonly (string | number)[]): number {
  for (const [n, mine] of a.entries()) {
    const other = b[n] ?? ''
    const order =
      typeof mine === 'number' && typeof other === 'number' ? mine - other : compareText(String(mine), String(other))
    if (order !== 0) return order
  }
  return 0
}

function textOf(event: Timeline[number]): string {
  if (event.kind === 'unlock') return `${event.at} unlock ${event.achievementId}`
  const on = `${event.at} ${event.kind} ${event.titleId} ${event.leaderboardId} ${event.playerName}`
  return event.kind === 'record' ? on : `${on} ${event.previousRank} ${event.newRank}`
}

function nextOf(headers: Record<string, unknown>): string | undefined {
  return /^<(.+)>; rel="next"$/.exec(String(headers.link ?? ''))?.[1]
}

async function openTimeline(t: Parameters<typeof openProfileApi>[0]): Promise<ProfileApi> {
  const api = await openProfileApi(t)
  await storeTitles(api.model, { [HALO]: 'Halo' })
  await storeDescriptions(api.model, [[HALO, 1, NOW_MS, 'Laps', true]])
  await api.storeProfile({ username: 'Ann', linkedGamertag: 'bOb' })
  return api
}

test('the pages of a timeline, of any length, have unlocks, records and ranks gained once each', async (t) => {
  const api = await openTimeline(t)
  await fc.assert(
    fc.asyncProperty(worlds, fc.constantFrom(1, 2, 3, 100), async (world, limit) => {
      await store(api, world)
      const text: string[] = []
      let url: string | undefined = `/api/profile/ANN/timeline?limit=${limit}`
      while (url !== undefined) {
        const answer = await api.get(url)
        const page = Timeline.parse(answer.json())
        text.push(...page.map(textOf))
        url = nextOf(answer.headers)
        deepStrictEqual(page.length === limit || url === undefined, true)
      }
      deepStrictEqual(text, plainTimeline(world))
    }),
    runs(4)
  )
  t.pass()
})

test('events name game and board; nothing reveals a hidden achievement', async (t) => {
  const api = await openTimeline(t)
  const facts = { titleId: HALO, board: 1, partition: 0, player: 'Bob', isChange: true, wasChange: false }
  await store(api, {
    changes: [
      { ...facts, atMs: FIRST_MS, offset: 1, previousRank: 9, newRank: 1, isRecord: true },
      { ...facts, atMs: FIRST_MS + 7, offset: 2, previousRank: null, newRank: 3, isRecord: false }
    ],
    unlocks: [{ id: 51, points: 50, ms: FIRST_MS + 9 }]
  })
  const answer = await api.get('/api/profile/ann/timeline')
  const at = (ms: number) => new Date(FIRST_MS + ms).toISOString()
  const on = { titleId: HALO, gameName: 'Halo', leaderboardId: 1, leaderboardName: 'Laps', playerName: 'Bob' }
  t.same(answer.json(), [
    {
      kind: 'unlock',
      at: at(9),
      achievementId: 51,
      achievementKey: 'hidden-51',
      achievementName: 'Hidden Achievement',
      gameName: 'Network',
      points: 50
    },
    {
      ...{ kind: 'rank', at: at(7), ...on, previousRank: null, newRank: 3 },
      ...{ rating: '7', timeMs: 0, timeFormatted: '', isTime: false }
    },
    { kind: 'record', at: at(0), ...on, rating: '9', timeMs: 9, timeFormatted: '0:00.009', isTime: true }
  ])
})

test('a cursor is valid for its user, in every spelling, and an invalid one is refused', async (t) => {
  const api = await openTimeline(t)
  const unlocks = [1, 2, 3].map((id) => ({ id, points: 5, ms: FIRST_MS + id }))
  await store(api, { changes: [], unlocks })
  await api.storeProfile({ username: 'Zoe' })
  const first = await api.get('/api/profile/ann/timeline?limit=1')
  const next = nextOf(first.headers) ?? ''
  const { searchParams } = new URL(next, 'http://x')
  const after = encodeURIComponent(searchParams.get('after') ?? '')
  t.equal((await api.get(`/api/profile/ANN/timeline?after=${after}`)).json().length, 2)
  t.equal((await api.get('/api/profile/ANN/timeline?after=start')).json().length, 3)
  for (const [url, error] of [
    [`/api/profile/zoe/timeline?after=${after}`, /it belongs to another filter/],
    [`/api/profile/ann/timeline?after=${after.slice(0, -1)}`, /it is broken/],
    ['/api/profile/ann/timeline?after=0', /it is broken/],
    ['/api/profile/ann/timeline?after=', /^after must be/],
    ['/api/profile/ann/timeline?limit=101', /^limit must be an integer from 1 to 100; got "101"/]
  ] as const) {
    const answer = await api.get(url)
    t.match([answer.statusCode, answer.json()], [400, { error }], url)
  }
})
