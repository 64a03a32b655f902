import { boardOf, historyOf } from '@gamenet/engines/testing'
import { nameKey, type ReaderPosition, type Standing } from '@gamenet/schemas'
import fc from 'fast-check'
import { DataVersions } from '../src/answers/data-versions.js'
import type { ApiNeeds } from '../src/app.js'
import { catalogCache } from '../src/queries/catalog.js'
import { endpoints } from '../src/routes/endpoints.js'
import { openStoredTables, type StoredTables, time } from './stored-tables.js'
import { servingAt, type Teardown, TestTables, testApp } from './support/test-app.js'

/** The current instant in the tests of boards. */
export const NOW_MS = Date.UTC(2026, 2, 14, 20, 0, 30)
const END_MS = Date.UTC(2106, 0, 1)
const MINUTE_MS = 60_000
/** The first instant of {@link anyStates}. */
export const FIRST_MS = NOW_MS - 600 * MINUTE_MS

export type BoardApi = Awaited<ReturnType<typeof openBoardApi>>

/** The whole API on a real engine, with tables of boards that a test fills by hand. */
export async function openBoardApi(t: Teardown, given: Partial<ApiNeeds> = {}) {
  const model = await openStoredTables()
  const tables = model.clickhouse.readers
  const { changes, stored } = new TestTables()
  const positions: ReaderPosition[] = []
  /** The count of swaps, all to tables with these names. */
  const pointers = { counter: 0 }
  const versions = new DataVersions({ changes: stored, serving: async () => servingAt(0, pointers.counter) })
  const catalog = catalogCache({ tables, versionOf: (dependency) => versions.versionOf(dependency) })
  const clock = { nowMs: NOW_MS }
  const { app } = await testApp(t, {
    endpoints,
    tables,
    positions: async (_serving, names) => positions.filter(({ name }) => names.includes(name)),
    dataVersions: versions,
    catalog,
    now: () => clock.nowMs,
    ...given
  })
  let version = 0
  return {
    app,
    model,
    clock,
    versions,
    changes,
    pointers,
    /** Positions of readers of the log. */
    positions,
    /** Notifies the API of changed projections, as `name` (every key) or `name:key`. */
    async changed(...projections: string[]): Promise<void> {
      version += 1
      for (const each of projections) {
        const [projection = '', key = '*'] = each.split(':')
        changes.push({ version, projection, key, fromMs: 0, toMs: END_MS })
      }
      await versions.refresh()
    },
    get: async (url: string, headers: Record<string, string> = {}) => await app.inject({ url, headers })
  }
}

/** Names titles, `{ id: name }`. */
export async function storeTitles(model: StoredTables, names: Readonly<Record<string, string>>): Promise<void> {
  await model.insert(
    'title',
    ['title_id', 'field', 'value', 'name_key', 'version'],
    Object.entries(names).map(([id, name]) => [id, 'name', name, nameKey(name), '1'])
  )
}

/** A board in lists. */
export async function storeDescriptions(
  model: StoredTables,
  rows: readonly (readonly [titleId: string, leaderboardId: number, ms: number, name: string, listed: boolean])[]
): Promise<void> {
  await model.insert(
    'leaderboard',
    ['title_id', 'leaderboard_id', 'ts', 'name', 'listed', 'position'],
    rows.map(([titleId, leaderboardId, ms, name, listed], n) => [titleId, leaderboardId, time(ms), name, listed, n + 1])
  )
}

/** An entry as a board shows it now. */
export type EntryNow = Pick<Standing, 'playerName' | 'rating' | 'timeMs'> & {
  readonly rank: number
  readonly place: number
  readonly isGone?: boolean
  readonly occurrence?: number
  readonly details?: string
}

/** The entries of a board, all of one version. */
export async function storeEntries(
  model: StoredTables,
  [titleId, leaderboardId]: readonly [string, number],
  entries: readonly EntryNow[],
  version = 1
): Promise<void> {
  await model.insertRows(
    'leaderboard_entry',
    entries.map((e) => ({
      title_id: titleId,
      leaderboard_id: leaderboardId,
      player: e.playerName,
      occurrence: e.occurrence ?? 1,
      player_key: nameKey(e.playerName),
      is_gone: e.isGone ?? false,
      rank: e.rank,
      place: e.place,
      rating: e.rating,
      time_ms: e.timeMs,
      details: e.details ?? '',
      ts: time(NOW_MS),
      version
    }))
  )
}

/** One state of an entry. `offset` is its position in epoch 1. */
export type State = Standing & {
  readonly atMs: number
  readonly offset: number
  readonly isGone: boolean
  readonly details: string
}

/** The history of a board's entries, in the order of positions. */
export async function storeHistory(
  model: StoredTables,
  [titleId, leaderboardId]: readonly [string, number],
  states: readonly State[]
): Promise<void> {
  await model.insertRows(
    'leaderboard_history',
    states.map((s) => ({
      title_id: titleId,
      leaderboard_id: leaderboardId,
      player: s.playerName,
      occurrence: s.occurrence,
      ts: time(s.atMs),
      content: String(digest(contentOf(s))),
      player_key: nameKey(s.playerName),
      is_gone: s.isGone,
      rating: s.rating,
      time_ms: s.timeMs,
      is_ascending: s.isAscending ?? false,
      stated_rank: s.statedRank,
      ord: s.order,
      step: s.step,
      details: s.details,
      epoch: 1,
      partition: 0,
      offset: s.offset
    }))
  )
}

/** The identity of a state of one instant. */
export function contentOf({ isGone, rating, timeMs, isAscending, statedRank, order, step, details }: State): string {
  return JSON.stringify([isGone, rating, timeMs, isAscending, statedRank, order, step, details])
}

/** FNV-1a, 32 bits: enough for a few states of one entry to differ. */
function digest(text: string): number {
  let hash = 0x811c9dc5
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0
  return hash
}

export type Shown = {
  name: string
  occurrence: number
  rank: number
  rating: string
  timeMs: number | null
  details: string
}

/** The board as of an instant, by the plain fold. */
export function boardAsOf(states: readonly State[], atMs: number): Shown[] {
  const events = states.map(({ atMs: ms, offset: position, ...state }) => ({ ...state, ms, position }))
  return boardOf(historyOf(events), atMs).map(({ rank, event }) => ({ ...event, rank, name: event.playerName }))
}

/** Any states of the entries of a board, in the order of their offsets. */
export const anyStates: fc.Arbitrary<State[]> = fc
  .array(
    fc.record({
      playerName: fc.constantFrom('ann', 'ANN', 'bob', 'é', '🎮 <b>', '\u202eevil', "o'\\n"),
      occurrence: fc.constantFrom(1, 1, 1, 2),
      atMs: fc.integer({ min: 0, max: 12 }).map((n) => FIRST_MS + n * MINUTE_MS + (n % 3)),
      isGone: fc.constantFrom(false, false, false, true),
      kind: fc.constantFrom('scraped', 'scraped', 'stated', 'measured'),
      score: fc.integer({ min: -3, max: 9 }),
      isTime: fc.boolean(),
      isAscending: fc.boolean(),
      // Keys differ by entry and are far above 2^32, as those in use are.
      key: fc.integer({ min: -500_000, max: 500_000 }),
      step: fc.integer({ min: -1, max: 3 }),
      details: fc.constantFrom('', '', '{"car":"GT"}')
    }),
    { maxLength: 60 }
  )
  .map((drawn) =>
    drawn.map(({ kind, score, isTime, key, step, ...state }, offset) => ({
      ...state,
      rating: state.isGone ? '' : String(score),
      timeMs: isTime && !state.isGone ? score + 3 : null,
      statedRank: kind === 'stated' ? score + 4 : null,
      order: kind === 'scraped' ? key * 4_294_967_296 + offset : null,
      step: kind === 'scraped' ? step : null,
      offset
    }))
  )
  .chain((all) =>
    // Some are published a second time.
    fc.subarray(all).map((again) => [...all, ...again.map((state, n) => ({ ...state, offset: all.length + n }))])
  )
