import { boardOf, type EntryEvent, historyOf, recordsOf } from '@gamenet/engines/testing'
import type { LeaderboardEntryChanged } from '@gamenet/schemas'
import { test } from 'tap'
import { boardHistory, firstSeenMs } from '../demo/network/board-history.js'
import { BOARD_FORMS, type Board, boardRowsAt } from '../demo/network/boards.js'
import { createWorld } from '../demo/network/world.js'

const DAY_MS = 86_400_000
const VISIT_MS = 300_000
const SEED = 7
const UNTIL = Date.UTC(2026, 10, 21, 8, 50)
const world = createWorld(SEED, { hasPast: true })
const boards = world.titles.flatMap((title) => world.boardsOf(title)).filter(({ eventMs }) => eventMs === undefined)
/** Two boards of each form, and those on which a name stands twice. */
const chosen = [
  ...BOARD_FORMS.flatMap((form) => boards.filter((board) => board.form === form).slice(3, 5)),
  ...boards.filter(hasRepeatedName).slice(0, 2)
]

function hasRepeatedName(board: Board): boolean {
  const names = boardRowsAt(SEED, board, UNTIL).map(({ playerName }) => playerName)
  return new Set(names).size < names.length
}

test('the past of a board, folded, is at any visit the board as its page shows it', (t) => {
  for (const board of chosen) {
    const visits = [...boardHistory(SEED, board, UNTIL)]
    const events = entryEvents(visits.flat())
    const instants = visits.map(([event]) => Date.parse(event?.changedAt ?? ''))
    const firstMs = firstSeenMs(SEED, board, UNTIL)
    t.equal(instants[0], firstMs, 'it begins with its first sight')
    t.ok(instants.every((ms, n) => ms < UNTIL && ms % VISIT_MS === 0 && ms > (instants[n - 1] ?? 0)))
    for (const ms of [firstMs, ...[0.2, 0.5, 0.8].map((share) => instants[Math.floor(share * visits.length)] ?? 0)]) {
      t.same(shownBy(boardOf(events, ms)), pageAt(board, ms), `${board.form} at ${new Date(ms).toISOString()}`)
    }
    // Between two visits that found changes every other visit would have found the same page.
    const [before = 0, after = 0] = instants.slice(Math.floor(instants.length / 2))
    t.same(pageAt(board, after - VISIT_MS), pageAt(board, before), `${board.form} between two visits`)
    t.same(shownBy(boardOf(events)), pageAt(board, instants.at(-1) ?? 0), 'the boards now are those of the pages')
    t.same(pageAt(board, UNTIL - VISIT_MS), pageAt(board, instants.at(-1) ?? 0))
  }
  t.end()
})

test('boards have records that are lost and won, reigns of months, and entries that leave', (t) => {
  const kinds = new Map<string, number>()
  const reigns: number[] = []
  let contested = 0
  for (const board of chosen) {
    const published = [...boardHistory(SEED, board, UNTIL)].flat()
    const events = entryEvents(published)
    for (const { changeType } of published) kinds.set(changeType, (kinds.get(changeType) ?? 0) + 1)
    const records = recordsOf(events)
    contested += records.filter(({ setAt, fromAt }, n) => n > 0 && setAt === fromAt).length
    reigns.push(...records.map(({ fromAt, toAt }) => ((toAt ?? UNTIL) - fromAt) / DAY_MS))
  }
  for (const kind of ['new', 'updated', 'removed']) t.ok((kinds.get(kind) ?? 0) > 20, `${kind}: ${kinds.get(kind)}`)
  t.ok(contested >= chosen.length, `${contested} records were beaten`)
  t.ok(reigns.filter((days) => days > 60).length >= chosen.length / 2, 'some reigns last for months')
  t.end()
})

function entryEvents(events: readonly LeaderboardEntryChanged[]): EntryEvent<number>[] {
  return historyOf(
    events.map(({ playerName, occurrence = 1, changeType, changedAt, rating = '', timeMs = null, ...event }, n) => ({
      position: n,
      ms: Date.parse(changedAt),
      playerName,
      occurrence,
      isGone: changeType === 'removed',
      rating,
      timeMs,
      statedRank: event.rank ?? null,
      order: event.order ?? null,
      step: event.step ?? null,
      details: event.details === undefined ? '' : JSON.stringify(event.details)
    }))
  )
}

function shownBy(entries: ReturnType<typeof boardOf<EntryEvent<number>>>) {
  return entries.map(({ rank, event: { playerName, rating, details } }) => [
    rank,
    playerName,
    ...Object.values(JSON.parse(details || '{}') as Record<string, string>),
    rating
  ])
}

function pageAt(board: Board, ms: number) {
  return boardRowsAt(SEED, board, ms).map(({ rank, playerName, cells }) => [rank, playerName, ...cells])
}
