import { millisecondsOfRawScore, millisecondsOfTime } from '@gamenet/schemas'
import { quoted } from './page-text.js'
import { type PageElement, shownText } from './page-tree.js'
import type { PagePart, PageSource } from './parsed-page.js'
import { stripedRows } from './striped-table.js'

/** An entry of a board as the page shows it. */
export type BoardEntry = {
  /** The exact text. Names that differ in any character are different players. */
  readonly playerName: string
  /** 1 for the first entry of exactly this name on the page, 2 for the second. */
  readonly occurrence: number
  /** As shown: ranks may repeat, leave gaps and fall. */
  readonly rank: number
  /** Text of the last cell: the score or the time. */
  readonly rating: string
  /** Milliseconds; null for a score. */
  readonly timeMs: number | null
  /** Values of the cells between, by name; absent if there are none. */
  readonly details?: Readonly<Record<string, string>>
}

const NAME = 'the table of the board'
/** Names of the cells between name and rating, by the number of all cells. */
const DETAILS: Readonly<Record<number, readonly string[]>> = {
  3: [],
  7: ['date', 'location', 'circuit', 'car'],
  8: ['firsts', 'seconds', 'thirds', 'races', 'kudosRank']
}
const WHOLE_NUMBER = /^(?:0|-?[1-9]\d{0,2}(?:,\d{3})+|-?[1-9]\d*)$/
const RANK_MIN = -2_147_483_648
const RANK_MAX = 2_147_483_647
/** The limit of the schema of an entry. */
const NAME_LENGTH_MAX = 500
const RATING_LENGTH_MAX = 200
const DETAIL_LENGTH_MAX = 500
const OCCURRENCE_MAX = 65_535

type Row = Omit<BoardEntry, 'timeMs' | 'occurrence'>

/** Reads the entries of a board. One unreadable row fails it, because a missing row would mean a removal. */
export function readBoardTable(table: PageElement, source: PageSource): PagePart<readonly BoardEntry[]> {
  const read = stripedRows(table, { source, name: NAME }, entryIn)
  if (!read.ok) return read
  const rows = read.value
  const times = timesOf(rows)
  const seen = new Map<string, number>()
  const entries: BoardEntry[] = []
  for (const [index, row] of rows.entries()) {
    const occurrence = (seen.get(row.playerName) ?? 0) + 1
    if (occurrence > OCCURRENCE_MAX)
      return { ok: false, reason: `${NAME} has the name ${quoted(row.playerName)} more than ${OCCURRENCE_MAX} times` }
    seen.set(row.playerName, occurrence)
    entries.push({ ...row, occurrence, timeMs: times[index] ?? null })
  }
  return { ok: true, value: entries }
}

function entryIn(cells: readonly PageElement[]): Row | string {
  const names = DETAILS[cells.length]
  if (names === undefined) return `expected 3, 7 or 8 cells, found ${cells.length}`
  const [rankText = '', playerName = '', ...others] = cells.map(shownText)
  const rating = others.pop() ?? ''
  const rank = WHOLE_NUMBER.test(rankText) ? Number(rankText.replaceAll(',', '')) : Number.NaN
  if (!(rank >= RANK_MIN && rank <= RANK_MAX)) return `expected a rank, got ${quoted(rankText)}`
  if (playerName === '' || playerName.length > NAME_LENGTH_MAX)
    return `expected a name of 1 to ${NAME_LENGTH_MAX} characters, got ${quoted(playerName)}`
  if (rating === '' || rating.length > RATING_LENGTH_MAX)
    return `expected a score or time of 1 to ${RATING_LENGTH_MAX} characters, got ${quoted(rating)}`
  const details: Record<string, string> = {}
  let isDetailed = false
  for (const [index, text] of others.entries()) {
    if (text === '' || text.length > DETAIL_LENGTH_MAX) continue
    details[names[index] ?? ''] = text
    isDetailed = true
  }
  return { playerName, rank, rating, ...(isDetailed && { details }) }
}

/**
 * Returns the milliseconds of each rating; null for a score. Text is a time by itself; a raw score is one only if all
 * other ratings of the page are times.
 */
function timesOf(rows: readonly Row[]): (number | null)[] {
  const texts = rows.map(({ rating }) => millisecondsOfTime(rating))
  const raw = rows.map(({ rating }) => millisecondsOfRawScore(rating))
  const isOfTimes = rows.every((_, n) => (texts[n] ?? raw[n]) !== undefined)
  return rows.map((_, n) => texts[n] ?? (isOfTimes ? raw[n] : undefined) ?? null)
}
