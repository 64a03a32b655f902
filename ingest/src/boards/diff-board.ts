import type { LeaderboardEntryChanged } from '@gamenet/schemas'
import type { BoardEntry } from '../pages/board-table.js'
import { orderKeys } from './order-keys.js'

/** An entry of a board as it was last known: a row of `leaderboard_entry` that is not gone. */
export type KnownEntry = {
  readonly playerName: string
  /** 1 for the first entry of exactly this name. */
  readonly occurrence: number
  readonly rating: string
  /** Milliseconds; null for a score. */
  readonly timeMs: number | null
  /** Null for an imported entry. */
  readonly order: number | null
  readonly step: number | null
  /** What the board shows beside the rating, by name; absent when that is nothing. */
  readonly details?: Readonly<Record<string, string>>
}

export type BoardDifference = {
  readonly titleId: string
  readonly leaderboardId: number
  /** The instant of the page, canonical text. */
  readonly changedAt: string
  /** All entries that are on the board as it is known, in any order. */
  readonly last: readonly KnownEntry[]
  /** All entries of the page, in its order. */
  readonly page: readonly BoardEntry[]
}

/**
 * The events that make of the board as it is known the board that the page shows: folded into the known entries, they give
 * the page's entries in its order, with its ranks, ratings and details. As few as can be; none when nothing differs. An
 * entry whose rating text is the same keeps its `timeMs`, whatever the page's other scores make of the text now. Pure; takes
 * O(n log n).
 */
export function diffBoard({
  titleId,
  leaderboardId,
  changedAt,
  last,
  page
}: BoardDifference): LeaderboardEntryChanged[] {
  const known = knownEntries(last)
  const states = pairedStates(page, known)
  const orders = orderKeys(states)
  const events: LeaderboardEntryChanged[] = []
  for (const [place, { entry, step, before }] of states.entries()) {
    const order = orders[place] ?? 0
    const isSameRating = before?.rating === entry.rating
    if (isSameRating && before.order === order && before.step === step && isSame(before.details, entry.details))
      continue
    const timeMs = isSameRating ? before.timeMs : entry.timeMs
    events.push({
      titleId,
      leaderboardId,
      playerName: entry.playerName,
      ...(entry.occurrence > 1 && { occurrence: entry.occurrence }),
      changeType: before === undefined ? 'new' : isSameRating ? 'moved' : 'updated',
      changedAt,
      rank: entry.rank,
      rating: entry.rating,
      ...(timeMs !== null && { timeMs }),
      order,
      step,
      ...(entry.details !== undefined && { details: { ...entry.details } })
    })
  }
  for (const { playerName, occurrence } of known.rest()) {
    events.push({
      titleId,
      leaderboardId,
      playerName,
      ...(occurrence > 1 && { occurrence }),
      changeType: 'removed',
      changedAt
    })
  }
  return events
}

/** An entry of the page beside what is known of it. */
type PairedState = {
  readonly entry: BoardEntry
  readonly step: number
  readonly before: KnownEntry | undefined
  readonly order: number | null
  readonly isTold: boolean
}

function pairedStates(page: readonly BoardEntry[], known: KnownEntries): PairedState[] {
  let rankAbove = 0
  return page.map((entry) => {
    const step = entry.rank - rankAbove
    rankAbove = entry.rank
    const before = known.take(entry)
    const isTold = before?.rating !== entry.rating || before.step !== step || !isSame(before.details, entry.details)
    return { entry, step, before, order: before?.order ?? null, isTold }
  })
}

type Identity = { readonly playerName: string; readonly occurrence: number }
type KnownEntries = {
  /** What is known of an entry, once. */
  take(identity: Identity): KnownEntry | undefined
  /** All that was not taken. */
  rest(): Iterable<KnownEntry>
}

/** Nearly all names stand once on a board, and a name alone is found faster than a key made of name and number. */
function knownEntries(last: readonly KnownEntry[]): KnownEntries {
  const firsts = new Map<string, KnownEntry>()
  const others = new Map<string, KnownEntry>()
  for (const entry of last) {
    if (entry.occurrence === 1) firsts.set(entry.playerName, entry)
    else others.set(numbered(entry), entry)
  }
  return {
    take(identity) {
      const [entries, key] = identity.occurrence === 1 ? [firsts, identity.playerName] : [others, numbered(identity)]
      const entry = entries.get(key)
      if (entry !== undefined) entries.delete(key)
      return entry
    },
    *rest() {
      yield* firsts.values()
      yield* others.values()
    }
  }
}

function numbered({ playerName, occurrence }: Identity): string {
  return `${occurrence}/${playerName}`
}

type Details = Readonly<Record<string, string>>

function isSame(before: Details | undefined, after: Details | undefined): boolean {
  if (before === after) return true
  const names = Object.keys(before ?? {})
  return names.length === Object.keys(after ?? {}).length && names.every((name) => before?.[name] === after?.[name])
}
