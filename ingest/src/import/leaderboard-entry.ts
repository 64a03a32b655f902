import { boardKey, type LeaderboardEntryChanged, leaderboardEntryTopic, lineText, timeText } from '@gamenet/schemas'
import { AHEAD_OF_NOW_MS_MAX } from './import-time.js'
import { type Fields, type Importable, importable, type Outcome } from './importable.js'
import { isNumber, millisecondsOfClock, RatingReader } from './rating.js'
import { shown } from './row-judge.js'

/**
 * Changes of entries that a file can contain: new, rating changed, left. Only pages show the place among the others.
 */
const CHANGES: readonly unknown[] = ['new', 'updated', 'removed']

const base = importable({
  topic: leaderboardEntryTopic,
  fields: {
    titleId: 'text',
    leaderboardId: 'integer',
    playerName: 'name',
    changeType: 'text',
    rank: 'integer',
    rating: 'text',
    timeMs: 'integer',
    changedAt: 'instant'
  },
  withheld: ['isAscending', 'occurrence', 'order', 'step', 'details'],
  measured: [],
  aheadMsMax: AHEAD_OF_NOW_MS_MAX
})

/**
 * Changes of entries. An entry is a time if the row has `timeMs` or its rating is spelled as a time; each is derived
 * from the other. Nothing else is derived: a listed entry with neither is a fault, as is a rating that is not a number.
 */
export const leaderboardEntryImport: Importable = {
  ...base,
  sameAs: ({ playerName, changedAt, ...board }: LeaderboardEntryChanged) =>
    `${boardKey(board)} ${playerName} ${changedAt}`,
  stateOf: ({ changeType, rank, rating, timeMs }: LeaderboardEntryChanged) =>
    `${changeType === 'removed'} ${rank} ${rating} ${timeMs}`,
  open: ({ ratings }) => {
    const reader = new RatingReader(ratings)
    return {
      see: (fields) => reader.see(asShown(fields)),
      notes: () => reader.notes(),
      outcome: (fields, judge) => {
        const { rating } = fields
        if (!Number.isInteger(rating) || Number.isSafeInteger(rating)) return outcomeOf(asShown(fields), judge, reader)
        return fault(`rating is ${shown(rating)}: expected a text, or a whole number up to 2^53`)
      }
    }
  }
}

function outcomeOf(fields: Fields, judge: (fields: Fields) => Outcome, ratings: RatingReader): Outcome {
  const { rank, rating, timeMs, ...kept } = fields
  const { changeType, playerName } = kept
  if (typeof playerName === 'string' && CONTROL.test(playerName))
    return fault(`playerName is ${shown(playerName)}: it has a control character`)
  if (changeType !== undefined && !CHANGES.includes(changeType))
    return fault(`changeType is ${shown(changeType)}: expected ${CHANGES.join(', ')}`)
  // The values of an entry are in its last change; a removal has the same meaning with or without them.
  if (changeType === 'removed') return judge(kept)
  const others = rank === undefined ? kept : { ...kept, rank }
  if (rating === undefined && timeMs === undefined)
    return changeType === undefined ? judge(others) : fault('rating and timeMs are both missing')
  if (timeMs === undefined) {
    if (typeof rating !== 'string') return judge({ ...others, rating })
    const read = ratings.read(rating, kept)
    if ('fault' in read) return fault(`rating is ${shown(rating)}: ${read.fault}`)
    return judge({ ...others, rating, ...read })
  }
  const msOfText = typeof rating === 'string' ? millisecondsOfClock(rating) : undefined
  if (msOfText !== undefined && msOfText !== timeMs)
    return fault(`rating is ${shown(rating)}, which is ${msOfText} ms, but timeMs is ${shown(timeMs)}`)
  return judge({ ...others, rating: rating ?? textOfTime(timeMs), timeMs })
}

const RAW_SCORE_OF_ZERO = '2147483647'

/** Control characters except white space, which is collapsed before. No page shows any. */
const CONTROL = /\p{Cc}/u

/** Returns the fields with texts as a page shows them, so that a name is the same entry from any source. */
function asShown(fields: Fields): Fields {
  const shown: Record<string, unknown> = { ...fields }
  for (const field of ['playerName', 'rating', 'changeType']) {
    const value = shown[field]
    if (typeof value === 'string') shown[field] = lineText(value)
  }
  if (typeof shown.rating === 'number') shown.rating = `${shown.rating}`
  // Answers and exports show a score with a `timeMs` of 0. The raw score of no time at all is a time.
  const { rating, timeMs } = shown
  if (timeMs === 0 && typeof rating === 'string' && isNumber(rating) && rating !== RAW_SCORE_OF_ZERO)
    delete shown.timeMs
  return shown
}

/** Returns undefined for an invalid time; the schema reports the fault. */
function textOfTime(timeMs: unknown): string | undefined {
  return Number.isInteger(timeMs) && Number(timeMs) >= 0 ? timeText(Number(timeMs)) : undefined
}

const fault = (reason: string): Outcome => ({ kind: 'fault', reason })
