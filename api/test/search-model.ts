import { nameKey } from '@gamenet/schemas'
import fc from 'fast-check'
import { NOW_MS, storeDescriptions } from './board-api.js'
import { type StoredTables, time } from './stored-tables.js'

/*
 * Former and current boards, and the tables of both: former rows are next to their successors, as before a merge. The
 * expected answers are loops over the current boards.
 */

export type Entry = {
  readonly playerName: string
  readonly occurrence: number
  readonly rank: number
  readonly place: number
  readonly rating: string
  readonly timeMs: number | null
}
export type Placed = Entry & { readonly titleId: string; readonly leaderboardId: number }
export type Board = { readonly titleId: string; readonly leaderboardId: number; readonly entries: readonly Entry[] }
export type World = { readonly before: readonly Board[]; readonly now: readonly Board[] }

export const TITLES = ['4d530001', '4d530002']
export const NAMES = ['ann', 'Ann', 'ANN', 'bob', 'x,y', 'ｂｏｂ', 'ΟΔΟΣ', 'οδός', '  ', "o'\\neil\t<b>", '🎮 \u202e']
const BOARDS = [1, 2, 4_294_967_295]

const ENTRIES: fc.Arbitrary<Entry[]> = fc
  .array(
    fc.record({
      playerName: fc.constantFrom(...NAMES),
      step: fc.constantFrom(0, 1, 1, 1, 7, -2),
      timeMs: fc.option(fc.constantFrom(0, 59_999, 60_000, 60_001, 60_500, 61_500, 90_000, 4_294_967_295), { freq: 4 }),
      score: fc.constantFrom('7', '1,250', '-3.5', '98,765,432,109,876,543', '98765432109876545', 'none')
    }),
    { maxLength: 9 }
  )
  .map((drawn) => {
    const counts = new Map<string, number>()
    let rank = 1
    return drawn.map(({ playerName, step, timeMs, score }, place) => {
      rank += place === 0 ? 0 : step
      const occurrence = (counts.get(playerName) ?? 0) + 1
      counts.set(playerName, occurrence)
      return { playerName, occurrence, rank, place, timeMs, rating: timeMs === null ? score : `t${timeMs}` }
    })
  })

const BOARDS_ONCE: fc.Arbitrary<Board[]> = fc
  .tuple(
    ...TITLES.flatMap((titleId) =>
      BOARDS.map((leaderboardId) => ENTRIES.map((entries) => ({ titleId, leaderboardId, entries })))
    )
  )
  .map((boards) => boards)

export const worlds: fc.Arbitrary<World> = fc.record({ before: BOARDS_ONCE, now: BOARDS_ONCE })

/** The name of a board in the newest list; boards without a list have none. */
export function boardNameOf({ titleId, leaderboardId }: { titleId: string; leaderboardId: number }): string {
  return leaderboardId === 2 ? '' : `Board ${leaderboardId} of ${titleId}`
}

/** Names the boards, each by an older and a newer name. */
export async function describeBoards(model: StoredTables): Promise<void> {
  const described = TITLES.flatMap((titleId) => [1, 4_294_967_295].map((leaderboardId) => ({ titleId, leaderboardId })))
  await storeDescriptions(
    model,
    described.flatMap(({ titleId, leaderboardId }) => [
      [titleId, leaderboardId, NOW_MS, boardNameOf({ titleId, leaderboardId }), true] as const,
      [titleId, leaderboardId, NOW_MS - 1000, 'an older name', true] as const
    ])
  )
}

const TABLES = ['leaderboard_entry', 'player_entry', 'timed_entry', 'player']

/** Replaces the contents of the tables of entries by a world. */
export async function storeWorld(model: StoredTables, { before, now }: World): Promise<void> {
  await model.empty(TABLES)
  const past = placedOf(before)
  const present = placedOf(now)
  const left = past.filter((entry) => !present.some((other) => compareKeys(entry, other) === 0))
  const gone = left.map((entry) => ({ ...entry, rank: 0, place: 0, isGone: true }))
  await storeRows(model, past, 1)
  await storeRows(model, [...present, ...gone], 2)
  // An entry has a row for each of its times; only the current one is live.
  const dead = past.filter(
    (entry) => !present.some((other) => compareKeys(entry, other) === 0 && entry.timeMs === other.timeMs)
  )
  await storeTimes(model, past, [], 1)
  await storeTimes(model, present, dead, 2)
  const names = [...past, ...present].map(({ playerName }) => playerName)
  await model.insert(
    'player',
    ['player_key', 'player'],
    names.map((name) => [nameKey(name), name])
  )
}

/** Returns every current entry with its board. */
export function allEntries({ now }: World): Placed[] {
  return placedOf(now)
}

/** By code points, as the engine compares texts. */
export function compareText(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

/** By title, board, name and number. */
export function compareKeys<Keyed extends Pick<Placed, 'titleId' | 'leaderboardId' | 'playerName' | 'occurrence'>>(
  a: Keyed,
  b: Keyed
): number {
  return (
    compareText(a.titleId, b.titleId) ||
    a.leaderboardId - b.leaderboardId ||
    compareText(a.playerName, b.playerName) ||
    a.occurrence - b.occurrence
  )
}

type Row = Placed & { readonly isGone?: boolean }

function placedOf(boards: readonly Board[]): Placed[] {
  return boards.flatMap(({ titleId, leaderboardId, entries }) =>
    entries.map((entry) => ({ titleId, leaderboardId, ...entry }))
  )
}

/** The same rows in both orders. */
async function storeRows(model: StoredTables, rows: readonly Row[], version: number): Promise<void> {
  for (const table of ['leaderboard_entry', 'player_entry']) {
    await model.insertRows(
      table,
      rows.map((e) => ({
        title_id: e.titleId,
        leaderboard_id: e.leaderboardId,
        player_key: nameKey(e.playerName),
        player: e.playerName,
        occurrence: e.occurrence,
        is_gone: e.isGone ?? false,
        rank: e.rank,
        place: e.place,
        rating: e.rating,
        time_ms: e.timeMs,
        ts: time(NOW_MS),
        version
      }))
    )
  }
}

async function storeTimes(
  model: StoredTables,
  live: readonly Placed[],
  dead: readonly Placed[],
  version: number
): Promise<void> {
  const rows = [...live.map((e) => ({ ...e, isLive: true })), ...dead.map((e) => ({ ...e, isLive: false }))]
  await model.insert(
    'timed_entry',
    ['time_ms', 'title_id', 'leaderboard_id', 'player', 'occurrence', 'is_live', 'rank', 'rating', 'version'],
    rows
      .filter(({ timeMs }) => timeMs !== null)
      .map((e) => [
        ...[e.timeMs, e.titleId, e.leaderboardId, e.playerName, e.occurrence, e.isLive],
        e.rank,
        e.rating,
        version
      ])
  )
}
