import { diffBoard } from '@gamenet/ingest'
import { instantOf, type LeaderboardEntryChanged, millisecondsOfRawScore, millisecondsOfTime } from '@gamenet/schemas'
import {
  type Board,
  cellsOf,
  changeAfter,
  contenderCount,
  contendersOf,
  type Entry,
  entryAt,
  ranked
} from './boards.js'
import { chance, stream } from './chance.js'

/*
 * visit   an instant at which a scrape would have read the board; only visits that find changes have events
 */

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
const VISIT_MS = 5 * MINUTE_MS
/** How far the history of boards goes back. */
export const PAST_MS = 730 * DAY_MS
/** Share of the past in which the least played boards were first seen. */
const FIRST_SEEN_SHARE = 0.7
/** Events of a player per year on a board of slowness 1, as measured. */
const EVENTS_PER_YEAR = 40

type Known = Parameters<typeof diffBoard>[0]['last'][number]
type Shown = Parameters<typeof diffBoard>[0]['page'][number]
/** An entry with its values as a page shows them. */
type ReadEntry = Entry & Pick<Shown, 'rating' | 'timeMs' | 'details'>

/** Names of the cells between name and result, as the collector names them. */
const DETAILS: Readonly<Record<string, readonly string[]>> = {
  lap: ['date', 'location', 'circuit', 'car'],
  career: ['firsts', 'seconds', 'thirds', 'races', 'kudosRank']
}

/** Returns about how many events a board has up to an instant. Counting them would take as long as making them. */
export function boardEventsAbout(seed: number, board: Board, untilMs: number): number {
  const years = (untilMs - firstSeenMs(seed, board, untilMs)) / (365 * DAY_MS)
  return Math.ceil(contenderCount(seed, board) * (1 + EVENTS_PER_YEAR * (years / board.slowness)))
}

/** Returns when a board was first seen: two years before the end of its past, of less played titles also later. */
export function firstSeenMs(seed: number, { title, leaderboardId }: Board, untilMs: number): number {
  const place = title.index * 1000 + leaderboardId
  const share = title.index < 20 ? 0 : FIRST_SEEN_SHARE * chance(seed, stream.boardSeen, place)
  return Math.floor((untilMs - PAST_MS * (1 - share)) / VISIT_MS) * VISIT_MS
}

/**
 * Yields the events of each visit of a board that is not an event, oldest first, up to an instant: what the collector would
 * have published. Folded, they are the board as its page shows it at the last visit.
 */
export function* boardHistory(seed: number, board: Board, untilMs: number): Generator<LeaderboardEntryChanged[]> {
  const contenders = contendersOf(seed, board)
  const firstMs = firstSeenMs(seed, board, untilMs)
  const entryOf = (at: number, ms: number): ReadEntry | undefined => {
    const contender = contenders[at]
    const entry = contender && entryAt(seed, board, contender, ms)
    return entry && readEntry(seed, board, entry)
  }
  const entries = contenders.map((_, at) => entryOf(at, firstMs))
  const isRepeating = new Set(contenders.map(({ playerName }) => playerName)).size < contenders.length
  const known = new Map<string, Known>()
  let page: Shown[] = []
  const visit = (ms: number) => {
    const last = page.map((entry) => known.get(nameOf(entry)) as Known)
    page = pageOf(board, entries, isRepeating)
    const { titleId } = board.title
    const changedAt = instantOf(ms)
    const events = diffBoard({ titleId, leaderboardId: board.leaderboardId, changedAt, last, page })
    fold(known, events)
    return events
  }
  yield visit(firstMs)
  for (const [ms, changed] of visitsBetween(
    contenders.map((each) => (ms) => changeAfter(each, ms)),
    firstMs,
    untilMs
  )) {
    for (const at of changed) entries[at] = entryOf(at, ms)
    const events = visit(ms)
    // A better result can be the same number of points.
    if (events.length > 0) yield events
  }
}

/** Returns the visits that find changes, oldest first, each with the indexes of what has changed. */
function visitsBetween(
  changes: readonly ((ms: number) => number)[],
  fromMs: number,
  untilMs: number
): (readonly [number, ReadonlySet<number>])[] {
  const visits = new Map<number, Set<number>>()
  for (const [at, changeAfter] of changes.entries()) {
    for (let ms = changeAfter(fromMs); ; ms = changeAfter(ms)) {
      const visitMs = Math.ceil(ms / VISIT_MS) * VISIT_MS
      if (visitMs >= untilMs) break
      const changed = visits.get(visitMs)
      if (changed === undefined) visits.set(visitMs, new Set([at]))
      else changed.add(at)
    }
  }
  return [...visits].sort(([a], [b]) => a - b)
}

function readEntry(seed: number, board: Board, entry: Entry): ReadEntry {
  const cells = cellsOf(seed, board, entry)
  const rating = cells.at(-1) ?? ''
  const names = DETAILS[board.form]
  const isRaw = board.form === 'raw-time'
  return {
    ...entry,
    rating,
    timeMs: (isRaw ? millisecondsOfRawScore(rating) : millisecondsOfTime(rating)) ?? null,
    ...(names && { details: Object.fromEntries(names.map((name, n) => [name, cells[n] ?? ''])) })
  }
}

/** Built for each of some 240,000 visits: a spread of fields would take as long as everything else. */
function pageOf(board: Board, entries: readonly (ReadEntry | undefined)[], isRepeating: boolean): Shown[] {
  const seen = new Map<string, number>()
  const present = entries.filter((entry) => entry !== undefined)
  return ranked(board, present).map(({ rank, entry: { playerName, rating, timeMs, details } }) => {
    const occurrence = isRepeating ? (seen.get(playerName) ?? 0) + 1 : 1
    if (isRepeating) seen.set(playerName, occurrence)
    if (details === undefined) return { playerName, occurrence, rank, rating, timeMs }
    return { playerName, occurrence, rank, rating, timeMs, details }
  })
}

function fold(known: Map<string, Known>, events: readonly LeaderboardEntryChanged[]): void {
  for (const event of events) {
    const { playerName, occurrence = 1, rating = '', timeMs = null, order = null, step = null, details } = event
    if (event.changeType === 'removed') known.delete(nameOf({ playerName, occurrence }))
    else {
      const entry = { playerName, occurrence, rating, timeMs, order, step, ...(details && { details }) }
      known.set(nameOf(entry), entry)
    }
  }
}

function nameOf({ playerName, occurrence }: Pick<Known, 'playerName' | 'occurrence'>): string {
  return occurrence === 1 ? playerName : `${occurrence}/${playerName}`
}
