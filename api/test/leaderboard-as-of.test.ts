import { deepStrictEqual } from 'node:assert'
import { changesOf, historyOf, runs } from '@gamenet/engines/testing'
import { compareMeasures } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import {
  anyStates,
  boardAsOf,
  FIRST_MS,
  NOW_MS,
  openBoardApi,
  type Shown,
  type State,
  storeDescriptions,
  storeHistory,
  storeTitles
} from './board-api.js'

const TITLE = '4d530001'
const MINUTE_MS = 60_000

test('a board as of any instant equals the plain fold of the events, ranks included', async (t) => {
  const api = await openBoardApi(t)
  await storeTitles(api.model, { [TITLE]: 'Halo' })
  await storeDescriptions(api.model, [[TITLE, 0, FIRST_MS, 'Any', true]])
  let board = 0
  await fc.assert(
    fc.asyncProperty(
      anyStates,
      fc.array(fc.integer({ min: 0, max: 13 }), { minLength: 2, maxLength: 4 }),
      async (all, minutes) => {
        board += 1
        const half = Math.ceil(all.length / 2)
        await storeHistory(api.model, [TITLE, board], all.slice(0, half))
        await storeHistory(api.model, [TITLE, board], all.slice(half))
        await api.changed('leaderboard', 'leaderboard-history', 'title')
        const firstMs = Math.min(...all.map(({ atMs }) => atMs))
        for (const minute of minutes) {
          const atMs = FIRST_MS + minute * MINUTE_MS
          const url = `/api/game/halo/leaderboards/${board}?asOf=${new Date(atMs).toISOString()}`
          const answer = await api.get(url)
          if (atMs < firstMs) {
            deepStrictEqual(answer.statusCode, 404)
            if (all.length > 0) deepStrictEqual(answer.json().error.includes(new Date(firstMs).toISOString()), true)
            continue
          }
          const expected = boardAsOf(all, atMs)
          deepStrictEqual(answer.json().total, expected.length)
          deepStrictEqual(
            answer
              .json()
              .entries.map((e: Record<string, unknown>) => [e.name, e.rank, e.rating, e.isTime, e.timeMs, e.details]),
            expected.map((e) => [
              e.name,
              String(e.rank),
              e.rating,
              e.timeMs !== null,
              e.timeMs ?? 0,
              e.details === '' ? undefined : JSON.parse(e.details)
            ])
          )
          const page = (await api.get(`${url}&limit=2&offset=1`)).json()
          deepStrictEqual(page.entries, answer.json().entries.slice(1, 3))
        }
      }
    ),
    runs(5)
  )
  t.pass()
})

test('of several states of one entry at one instant, the board has the best, whichever was recorded last', async (t) => {
  const api = await openBoardApi(t)
  await storeTitles(api.model, { [TITLE]: 'Halo' })
  const state = { playerName: 'ann', occurrence: 1, atMs: FIRST_MS, isGone: false, details: '', timeMs: null }
  const place = { statedRank: null, order: null, step: null }
  const ratings = ['9', '1,000', '-3', '', '10.5']
  for (const board of ratings.keys()) {
    const turned = [...ratings.slice(board), ...ratings.slice(0, board)]
    const states = turned.map(
      (rating, offset): State => ({ ...state, ...place, rating, offset, isGone: rating === '' })
    )
    await storeHistory(api.model, [TITLE, board], states)
    await api.changed('leaderboard-history', 'title')
    const url = `/api/game/halo/leaderboards/${board}?asOf=${new Date(FIRST_MS).toISOString()}`
    deepStrictEqual(
      (await api.get(url)).json().entries.map(({ rating }: { rating: string }) => rating),
      ['1,000']
    )
    const ascending = 10 + board
    await storeHistory(
      api.model,
      [TITLE, ascending],
      states.map((each) => ({ ...each, isAscending: true }))
    )
    await api.changed('leaderboard-history', 'title')
    const lowest = (
      await api.get(`/api/game/halo/leaderboards/${ascending}?asOf=${new Date(FIRST_MS).toISOString()}`)
    ).json()
    deepStrictEqual(lowest.entries[0].rating, '-3')
  }
  t.end()
})

test('a comparison of two instants sorts every entry by its change', async (t) => {
  const api = await openBoardApi(t)
  await storeTitles(api.model, { [TITLE]: 'Halo' })
  let board = 0
  await fc.assert(
    fc.asyncProperty(
      anyStates,
      fc.integer({ min: 0, max: 11 }),
      fc.integer({ min: 1, max: 3 }),
      async (all, from, length) => {
        board += 1
        const firstMs = FIRST_MS - MINUTE_MS
        await storeHistory(api.model, [TITLE, board], all)
        await storeDescriptions(api.model, [[TITLE, board, firstMs, 'Any', true]])
        await api.changed('leaderboard', 'leaderboard-history', 'title')
        const [fromMs, toMs] = [FIRST_MS + from * MINUTE_MS, FIRST_MS + (from + length) * MINUTE_MS]
        const window = `from=${new Date(fromMs).toISOString()}&to=${new Date(toMs).toISOString()}`
        const body = (await api.get(`/api/game/${TITLE}/leaderboards/${board}/compare?${window}`)).json()
        const [before, after] = [boardAsOf(all, fromMs), boardAsOf(all, toMs)]
        const same = (a: Shown) => (b: Shown) => a.name === b.name && a.occurrence === b.occurrence
        const pairs = after.flatMap((now) => before.filter(same(now)).map((then) => ({ then, now })))
        const names = (list: string) => body[list].map(({ name }: { name: string }) => name)
        deepStrictEqual(
          names('came'),
          after.filter((e) => !before.some(same(e))).map(({ name }) => name)
        )
        deepStrictEqual(
          names('left'),
          before.filter((e) => !after.some(same(e))).map(({ name }) => name)
        )
        const moved = (keep: (pair: (typeof pairs)[number]) => boolean) => pairs.filter(keep).map(({ now }) => now.name)
        deepStrictEqual(
          names('rose'),
          moved(({ then, now }) => now.rank < then.rank)
        )
        deepStrictEqual(
          names('fell'),
          moved(({ then, now }) => now.rank > then.rank)
        )
        deepStrictEqual(
          names('improved'),
          moved(({ then, now }) => compareMeasures(now, then) < 0)
        )
        deepStrictEqual(body.counts.came, body.came.length)
        if (toMs >= Math.max(...all.map(({ atMs }) => atMs))) {
          const open = (
            await api.get(`/api/game/${TITLE}/leaderboards/${board}/compare?from=${new Date(fromMs).toISOString()}`)
          ).json()
          deepStrictEqual({ ...open, to: body.to }, body, 'without an end it ends now')
        }
      }
    ),
    runs(5)
  )
  t.pass()
})

test('a board has the name and the listing of its instant, and is first seen by list or entry', async (t) => {
  const api = await openBoardApi(t)
  await storeTitles(api.model, { [TITLE]: 'Halo' })
  const at = (minute: number) => FIRST_MS + minute * MINUTE_MS
  await storeDescriptions(api.model, [
    [TITLE, 1, at(10), 'First', true],
    [TITLE, 1, at(20), 'Second', false]
  ])
  const state: State = {
    playerName: 'ann',
    occurrence: 1,
    rating: '12',
    timeMs: null,
    statedRank: null,
    order: null,
    step: null,
    details: '',
    isGone: false,
    atMs: at(5),
    offset: 1
  }
  await storeHistory(api.model, [TITLE, 1], [state, { ...state, isGone: true, rating: '', atMs: at(15), offset: 2 }])
  await api.changed('leaderboard', 'leaderboard-history', 'title')
  const asOf = async (ms: number) =>
    (await api.get(`/api/game/halo/leaderboards/1?asOf=${new Date(ms).toISOString()}`)).json()
  t.match(await asOf(at(5) - 1), { error: /first seen at 2026-03-14T10:05:30.000Z; there is no board as of .*29.999Z/ })
  t.match(await asOf(at(5)), { name: '', listed: false, total: 1, asOf: '2026-03-14T10:05:30.000Z' })
  t.match(await asOf(at(10)), { name: 'First', listed: true, total: 1 })
  t.match(await asOf(at(15)), { name: 'First', listed: true, total: 0 })
  t.match(await asOf(at(20)), { name: 'Second', listed: false, total: 0, entries: [] })
  t.match(await asOf(NOW_MS), { name: 'Second' }, 'now has been')
  api.clock.nowMs += 1000
  const tag = (await api.get(`/api/game/halo/leaderboards/1?asOf=${new Date(at(10)).toISOString()}`)).headers.etag
  for (const projection of ['leaderboard-history', 'leaderboard-entry']) {
    api.changes.push({ version: 99, projection, key: `${TITLE}/1`, fromMs: NOW_MS - MINUTE_MS, toMs: NOW_MS })
  }
  await api.versions.refresh()
  const again = await api.get(`/api/game/halo/leaderboards/1?asOf=${new Date(at(10)).toISOString()}`, {
    'if-none-match': String(tag)
  })
  t.equal(again.statusCode, 304, 'what happens later does not touch it')
})

test('the days of a board have the changes of the plain fold, and its first sight', async (t) => {
  const api = await openBoardApi(t)
  await storeTitles(api.model, { [TITLE]: 'Halo' })
  let board = 0
  await fc.assert(
    fc.asyncProperty(anyStates, async (drawn) => {
      board += 1
      const all = drawn.map((state) => ({ ...state, atMs: FIRST_MS + (state.atMs - FIRST_MS) * 600 }))
      const half = Math.ceil(all.length / 2)
      await storeHistory(api.model, [TITLE, board], all.slice(0, half))
      await storeHistory(api.model, [TITLE, board], all.slice(half))
      await api.changed('leaderboard-history')
      const answer = await api.get(`/api/game/halo/leaderboards/${board}/days`)
      if (all.length === 0) return deepStrictEqual(answer.statusCode, 404)
      const days: Record<string, { date: string; new: number; updated: number; removed: number }> = {}
      for (const { event, changeType } of changesOf(
        historyOf(all.map(({ atMs: ms, offset: position, ...state }) => ({ ...state, ms, position })))
      )) {
        const date = new Date(event.ms).toISOString().slice(0, 10)
        days[date] ??= { date, new: 0, updated: 0, removed: 0 }
        days[date][changeType] += 1
      }
      const firstMs = Math.min(...all.map(({ atMs }) => atMs))
      deepStrictEqual(answer.json(), {
        titleId: TITLE,
        gameName: 'Halo',
        leaderboardId: String(board),
        name: '',
        listed: false,
        firstSeenAt: new Date(firstMs).toISOString(),
        days: Object.values(days)
      })
    }),
    runs(5)
  )
  t.pass()
})

test('a board that is only listed has no days, and an unknown one is refused', async (t) => {
  const api = await openBoardApi(t)
  await storeTitles(api.model, { [TITLE]: 'Halo' })
  await storeDescriptions(api.model, [[TITLE, 1, FIRST_MS, 'Laps', true]])
  await api.changed('title', 'leaderboard')
  t.match((await api.get('/api/game/halo/leaderboards/1/days')).json(), {
    ...{ name: 'Laps', listed: true, firstSeenAt: new Date(FIRST_MS).toISOString(), days: [] }
  })
  t.equal((await api.get('/api/game/halo/leaderboards/2/days')).headers['x-error-code'], 'leaderboard_unknown')
})
