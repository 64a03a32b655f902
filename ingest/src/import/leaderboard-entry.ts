import { leaderboardEntryTopic, millisecondsOfTime, timeText } from '@gamenet/schemas'
import { lineText } from '../pages/page-text.js'
import { AHEAD_OF_NOW_MS_MAX } from './import-time.js'
import { type Fields, importable, type Outcome } from './importable.js'
import { shown } from './row-judge.js'

/** What a file can say of an entry: it came, its rating changed, it left. Its place among the others only pages show. */
const CHANGES: readonly unknown[] = ['new', 'updated', 'removed']

/**
 * Changes of entries. An entry is a time when the row has `timeMs` or its rating is time text, `M:SS.mmm`; each of the
 * two is made of the other. Nothing else is made up: an entry that is on the board and has neither is a fault.
 */
export const leaderboardEntryImport = importable({
  topic: leaderboardEntryTopic,
  fields: {
    titleId: 'text',
    leaderboardId: 'integer',
    playerName: 'text',
    changeType: 'text',
    rank: 'integer',
    rating: 'text',
    timeMs: 'integer',
    changedAt: 'instant'
  },
  withheld: ['occurrence', 'order', 'step', 'details'],
  measured: [],
  aheadMsMax: AHEAD_OF_NOW_MS_MAX,
  outcome: (fields, judge) => {
    if (typeof fields.rating === 'number' && !Number.isSafeInteger(fields.rating)) {
      return fault(`rating is ${shown(fields.rating)}: expected a text, or a whole number up to 2^53`)
    }
    const { rank, rating, timeMs, ...kept } = asShown(fields)
    const { changeType, playerName } = kept
    if (typeof playerName === 'string' && CONTROL.test(playerName)) {
      return fault(`playerName is ${shown(playerName)}: it has a control character`)
    }
    if (changeType !== undefined && !CHANGES.includes(changeType)) {
      return fault(`changeType is ${shown(changeType)}: expected ${CHANGES.join(', ')}`)
    }
    // What an entry had is in its last change; that it left is the same fact with it and without.
    if (changeType === 'removed') return judge(kept)
    const others = rank === undefined ? kept : { ...kept, rank }
    if (rating === undefined && timeMs === undefined) {
      return changeType === undefined ? judge(others) : fault('rating and timeMs are both missing')
    }
    const msOfText = typeof rating === 'string' ? millisecondsOfTime(rating) : undefined
    if (timeMs === undefined)
      return judge({ ...others, rating, ...(msOfText === undefined ? {} : { timeMs: msOfText }) })
    if (msOfText !== undefined && msOfText !== timeMs) {
      return fault(`rating is ${shown(rating)}, which is ${msOfText} ms, but timeMs is ${shown(timeMs)}`)
    }
    return judge({ ...others, rating: rating ?? textOfTime(timeMs), timeMs })
  }
})

/** What is left of them where white space is one space: no page shows any. */
const CONTROL = /\p{Cc}/u

/** Texts as a page would show them, so that the same name is the same entry, from any source. */
function asShown(fields: Fields): Fields {
  const shown: Record<string, unknown> = { ...fields }
  for (const field of ['playerName', 'rating', 'changeType']) {
    const value = shown[field]
    if (typeof value === 'string') shown[field] = lineText(value)
  }
  if (typeof shown.rating === 'number') shown.rating = `${shown.rating}`
  return shown
}

/** Undefined for what is no time: the schema says what is wrong with it. */
function textOfTime(timeMs: unknown): string | undefined {
  return Number.isInteger(timeMs) && Number(timeMs) >= 0 ? timeText(Number(timeMs)) : undefined
}

function fault(reason: string): Outcome {
  return { kind: 'fault', reason }
}
