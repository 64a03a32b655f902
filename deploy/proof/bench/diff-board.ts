import { diffBoard, type KnownEntry } from '@gamenet/ingest'
import { randomness } from './count-files.js'
import { type Conditions, figure, type Measurement, quantile, type Result, scaled } from './measurement.js'

/*
 * The differ on one board. Baseline: a loop over a map of names that only counts entries that are new, gone, or have
 * another rating.
 */

const ENTRIES = 10_000
const EDITS = 20
const ROUNDS = 600
const LEAST = 1_000_000
const BOARD = { titleId: '4d530064', leaderboardId: 7, changedAt: '2026-01-01T00:00:00.123Z' }

type Page = Parameters<typeof diffBoard>[0]['page']

/** Entries a second for a board of 10,000: unchanged, with 20 edits, and shuffled. */
export const diffSpeed: Measurement = {
  name: 'diff-board',
  claim: 'the differ compares a million entries a second on a board of 10,000',
  async run(conditions) {
    const page = pageOf(Array.from({ length: scaled(ENTRIES, conditions.scale, 1000) }, (_, i) => i))
    const events = diffBoard({ ...BOARD, last: [], page })
    const last = events.map(({ playerName, rating = '', order = null, step = null }) => ({
      playerName,
      occurrence: 1,
      rating,
      timeMs: null,
      order,
      step
    }))
    // Rows from the engine do not share strings with the page.
    const restored: KnownEntry[] = JSON.parse(JSON.stringify(last))
    const pages = [
      { what: 'no change', page, isClaimed: true },
      { what: `${EDITS} edits`, page: edited(page), isClaimed: true },
      { what: 'shuffled', page: shuffled(page), isClaimed: false }
    ]
    return pages.map((each) => measure({ ...each, last: restored }, conditions))
  }
}

function measure(
  { what, page, last, isClaimed }: { what: string; page: Page; last: readonly KnownEntry[]; isClaimed: boolean },
  { note }: Conditions
): Result {
  note(what)
  let events = 0
  const ours: number[] = []
  const plain: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const begun = performance.now()
    events = diffBoard({ ...BOARD, last, page }).length
    const between = performance.now()
    plainDifference(last, page)
    ours.push(between - begun)
    plain.push(performance.now() - between)
  }
  const rate = (times: readonly number[]) => (page.length / quantile(times, 0.5)) * 1000
  return {
    what: `${page.length} entries, ${what}`,
    measured: rate(ours),
    unit: 'entries/s',
    baseline: { what: 'names and ratings only', measured: rate(plain) },
    ...(isClaimed ? { target: { bound: 'at least', value: LEAST, of: 'measured' } } : {}),
    detail: `${events} events; p50 ${figure(quantile(ours, 0.5))} ms, p95 ${figure(quantile(ours, 0.95))} ms`
  }
}

function plainDifference(last: readonly KnownEntry[], page: Page): number {
  const ratings = new Map(last.map(({ playerName, rating }) => [playerName, rating]))
  let changes = 0
  for (const { playerName, rating } of page) {
    if (ratings.get(playerName) !== rating) changes += 1
    ratings.delete(playerName)
  }
  return changes + ratings.size
}

const random = randomness(20_260_102)
const below = (count: number): number => Math.floor(random() * count)

function pageOf(players: readonly number[]): Page {
  return players.map((player, i) => ({
    playerName: `Player ${player}`,
    occurrence: 1,
    rank: i + 1,
    rating: String(1_000_000 - player),
    timeMs: null
  }))
}

function reranked(page: Page): Page {
  return page.map((entry, i) => ({ ...entry, rank: i + 1 }))
}

function edited(page: Page): Page {
  const entries = [...page]
  for (let edit = 0; edit < EDITS; edit += 1) {
    const [entry] = entries.splice(below(entries.length), 1)
    if (entry !== undefined) entries.splice(below(entries.length), 0, { ...entry, rating: `${entry.rating}0` })
  }
  return reranked(entries)
}

function shuffled(page: Page): Page {
  return reranked(
    page
      .map((entry) => ({ entry, at: random() }))
      .sort((a, b) => a.at - b.at)
      .map(({ entry }) => entry)
  )
}
