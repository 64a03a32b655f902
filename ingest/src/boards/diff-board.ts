import type { EntryChange, LeaderboardEntryChanged, Standing } from '@gamenet/schemas'
import type { BoardEntry } from '../pages/board-table.js'
import { orderKeys } from './order-keys.js'

/** The last known state of an entry: a row of `leaderboard_entry` that is not gone. */
export type KnownEntry = Omit<Standing, 'isAscending' | 'statedRank'> & {
  /** Values between name and rating, by name; absent if there are none. */
  readonly details?: Readonly<Record<string, string>>
}

export type BoardDifference = {
  readonly titleId: string
  readonly leaderboardId: number
  /** The instant of the page, as canonical text. */
  readonly changedAt: string
  /** All known entries of the board, in any order; comparison is fastest in rank order. */
  readonly last: readonly KnownEntry[]
  /** All entries of the page, in its order. */
  readonly page: readonly BoardEntry[]
}

/**
 * Returns the fewest events that turn the known board into the board of the page; none if nothing differs. Folded into
 * the known entries, they result in the page's entries in its order, with its ranks, ratings and details. An entry with
 * an unchanged rating text keeps its `timeMs`, even if the page now reads as scores. Pure; O(n log n).
 */
export function diffBoard({
  titleId,
  leaderboardId,
  changedAt,
  last,
  page
}: BoardDifference): LeaderboardEntryChanged[] {
  const places = knownPlaces(last, page)
  const steps = page.map(({ rank }, place) => rank - (page[place - 1]?.rank ?? 0))
  const isPublished = new Uint8Array(page.length)
  const orders = new Float64Array(page.length).fill(Number.NaN)
  const isLeft = new Uint8Array(last.length).fill(1)
  for (let place = 0; place < page.length; place += 1) {
    const at = places[place] ?? UNKNOWN
    const before = last[at]
    if (before === undefined || !isSameBut(before, page[place], steps[place])) isPublished[place] = 1
    orders[place] = before?.order ?? Number.NaN
    if (before !== undefined) isLeft[at] = 0
  }
  const keys = orderKeys({ orders, isPublished })
  const events: LeaderboardEntryChanged[] = []
  page.forEach((entry, place) => {
    const order = keys[place] ?? 0
    if (isPublished[place] === 0 && orders[place] === order) return
    const before = last[places[place] ?? UNKNOWN]
    const timeMs = before?.rating === entry.rating ? before.timeMs : entry.timeMs
    const event: LeaderboardEntryChanged = {
      titleId,
      leaderboardId,
      playerName: entry.playerName,
      changeType: changeTypeOf(entry.rating, timeMs, before),
      changedAt,
      rank: entry.rank,
      rating: entry.rating,
      order,
      step: steps[place] ?? 0
    }
    // Assigned: spreading optional fields takes four times as long as everything else.
    if (entry.occurrence > 1) event.occurrence = entry.occurrence
    if (timeMs !== null) event.timeMs = timeMs
    if (entry.details !== undefined) event.details = { ...entry.details }
    events.push(event)
  })
  last.forEach(({ playerName, occurrence }, at) => {
    if (isLeft[at] === 0) return
    const event: LeaderboardEntryChanged = { titleId, leaderboardId, playerName, changeType: 'removed', changedAt }
    if (occurrence > 1) event.occurrence = occurrence
    events.push(event)
  })
  return events
}

const UNKNOWN = -1

/** A time in another spelling is stored like a moved rank: no player became faster. */
function changeTypeOf(rating: string, timeMs: number | null, before: KnownEntry | undefined): EntryChange {
  if (before === undefined) return 'new'
  const isSame = timeMs === null ? before.timeMs === null && before.rating === rating : before.timeMs === timeMs
  return isSame ? 'moved' : 'updated'
}

/** Returns whether an entry differs in nothing except, possibly, its order key. */
function isSameBut(before: KnownEntry, entry: BoardEntry | undefined, step: number | undefined): boolean {
  return before.rating === entry?.rating && before.step === step && isSame(before.details, entry.details)
}

type Details = Readonly<Record<string, string>>

function isSame(before: Details | undefined, after: Details | undefined): boolean {
  if (before === after) return true
  if (before === undefined || after === undefined) return false
  let names = 0
  for (const name in before) {
    if (before[name] !== after[name]) return false
    names += 1
  }
  for (const _ in after) names -= 1
  return names === 0
}

type Identity = { readonly playerName: string; readonly occurrence: number }

/**
 * Returns for each entry of a page its index among the known ones, or {@link UNKNOWN}. Neighbours on the page were
 * mostly neighbours before, and are found without a lookup table. The table is built for the first entry that was not.
 */
function knownPlaces(last: readonly KnownEntry[], page: readonly BoardEntry[]): Int32Array {
  const places = new Int32Array(page.length)
  let lookUp: ((identity: Identity) => number) | undefined
  let expected = 0
  for (let place = 0; place < page.length; place += 1) {
    const entry = page[place]
    if (entry === undefined) continue
    const next = last[expected]
    let at = expected
    if (next?.playerName !== entry.playerName || next.occurrence !== entry.occurrence) {
      lookUp ??= tableOf(last)
      at = lookUp(entry)
    }
    places[place] = at
    if (at !== UNKNOWN) expected = at + 1
  }
  return places
}

/**
 * Maps identities to indexes. Nearly all names occur once per board, and a lookup by name is faster than by a key
 * of name and number.
 */
function tableOf(last: readonly KnownEntry[]): (identity: Identity) => number {
  const firsts = new Map<string, number>()
  const others = new Map<string, number>()
  last.forEach((entry, at) => {
    if (entry.occurrence === 1) firsts.set(entry.playerName, at)
    else others.set(numbered(entry), at)
  })
  return (identity) =>
    (identity.occurrence === 1 ? firsts.get(identity.playerName) : others.get(numbered(identity))) ?? UNKNOWN
}

const numbered = ({ playerName, occurrence }: Identity): string => `${occurrence}/${playerName}`
