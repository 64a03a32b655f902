import { boardKey, readMeasure } from '@gamenet/schemas'
import type { Fields } from './importable.js'
import type { Ratings } from './spelling.js'

/** A rating as the file means it, with what the event says of it, or the fault. A score has no `timeMs`. */
export type ReadRating =
  | { readonly timeMs?: number; readonly isAscending?: true; readonly fault?: never }
  | { readonly fault: string }

const MINUTE_MS = 60_000
/** `M:SS` or `H:MM:SS`, with up to three digits of a second. */
const CLOCK = /^(?:(\d{1,3}):(?=[0-5]\d:))?(\d{1,4}):([0-5]\d)(?:\.(\d{1,3}))?$/
const THREE_DECIMALS = /^\d{1,6}\.\d{3}$/
const DECIMALS = /^\d{1,6}\.\d{1,3}$/
const SECONDS = /^\d{1,6}(?:\.\d{1,9})?$/
const MILLISECONDS = /^\d{1,10}(?:\.0+)?$/

/** Returns the milliseconds of a time with a colon; undefined for other text. */
export function millisecondsOfClock(text: string): number | undefined {
  const match = CLOCK.exec(text)
  if (match === null) return undefined
  const [, hours = '0', minutes, seconds, fraction = ''] = match
  return (Number(hours) * 60 + Number(minutes)) * MINUTE_MS + Number(seconds) * 1000 + Number(fraction.padEnd(3, '0'))
}

/** The ratings of one board in the file. */
type Board = {
  hasClock: boolean
  isAboveMinute: boolean
  /** The first rating with three decimals, and the first other number. */
  example: string | undefined
  score: string | undefined
}

/**
 * Reads the ratings of one file. `21.480` is a time only on a board whose other ratings are times, so the whole file is
 * seen before the first row is read.
 */
export class RatingReader {
  readonly #ratings: Ratings | undefined
  readonly #boards = new Map<string, Board>()

  constructor(ratings: Ratings | undefined) {
    this.#ratings = ratings
  }

  see({ titleId, leaderboardId, rating, timeMs, changeType }: Fields): void {
    if (this.#ratings !== undefined || changeType === 'removed') return
    const key = boardKey({ titleId: String(titleId).toLowerCase(), leaderboardId: Number(leaderboardId) })
    const board = this.#boards.get(key) ?? {
      hasClock: false,
      isAboveMinute: false,
      example: undefined,
      score: undefined
    }
    this.#boards.set(key, board)
    if (timeMs !== undefined || millisecondsOfClock(String(rating)) !== undefined) board.hasClock = true
    else if (typeof rating === 'string' && THREE_DECIMALS.test(rating)) {
      board.example ??= rating
      board.isAboveMinute ||= Number(rating) >= 60
    } else if (isNumber(String(rating))) board.score ??= String(rating)
  }

  read(rating: string, { titleId, leaderboardId }: Fields): ReadRating {
    const isScore = this.#ratings === 'score' || this.#ratings === 'score-ascending'
    const timeMs = isScore ? undefined : millisecondsOfClock(rating)
    if (timeMs !== undefined) return { timeMs }
    switch (this.#ratings) {
      case 'time':
        return DECIMALS.test(rating)
          ? { timeMs: secondsOf(rating) }
          : { fault: 'expected a time as M:SS.mmm, H:MM:SS or SS.mmm; --ratings seconds or milliseconds reads numbers' }
      case 'seconds':
        return SECONDS.test(rating)
          ? { timeMs: secondsOf(rating) }
          : { fault: 'expected seconds, or a time as M:SS.mmm' }
      case 'milliseconds':
        return MILLISECONDS.test(rating)
          ? { timeMs: Math.trunc(Number(rating)) }
          : { fault: 'expected whole milliseconds, or a time as M:SS.mmm' }
      case 'score':
      case 'score-ascending':
        if (!isNumber(rating)) return { fault: `expected a number, because of --ratings ${this.#ratings}` }
        return this.#ratings === 'score' ? {} : { isAscending: true }
      default:
        return this.#readAlone(
          rating,
          boardKey({ titleId: String(titleId).toLowerCase(), leaderboardId: Number(leaderboardId) })
        )
    }
  }

  /** Sentences about ratings that could be read in two ways. */
  notes(): string[] {
    const found = [...this.#boards.values()].filter(({ hasClock, example }) => hasClock || example !== undefined)
    const times = found.filter(isOfTimes).map(({ example }) => example)
    const scores = found.filter((board) => !isOfTimes(board)).map(({ example, score }) => example ?? score)
    return [
      ...noteOn(times, 'times (SS.mmm)', '--ratings score reads them as scores'),
      ...noteOn(scores, 'scores', '--ratings seconds reads them as times')
    ]
  }

  #readAlone(rating: string, key: string): ReadRating {
    const board = this.#boards.get(key)
    if (THREE_DECIMALS.test(rating) && board !== undefined && isOfTimes(board)) return { timeMs: secondsOf(rating) }
    if (isNumber(rating)) return {}
    return { fault: 'expected a time as M:SS.mmm, H:MM:SS or SS.mmm, or a number' }
  }
}

/** Times above a minute are written with a colon, so `83.456` alone is a score. */
function isOfTimes({ hasClock, isAboveMinute, score }: Board): boolean {
  return score === undefined && (hasClock || !isAboveMinute)
}

/** @param examples of one rating of each board, absent where all are unambiguous */
function noteOn(examples: readonly (string | undefined)[], what: string, otherwise: string): string[] {
  const boards = examples.filter((each) => each !== undefined)
  const [first] = boards
  if (first === undefined) return []
  const of = boards.length === 1 ? 'one board' : `${boards.length} boards`
  return [`ratings such as ${first} of ${of} were read as ${what}; ${otherwise}`]
}

const secondsOf = (text: string): number => Math.round(Number(text) * 1000)

/** Returns whether a rating can be a score. */
export const isNumber = (rating: string): boolean => readMeasure({ rating, timeMs: null }).score !== undefined
