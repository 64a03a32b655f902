import { compareMeasures } from '@gamenet/schemas'

/*
 * Boards, their changes and their records, computed with loops over all events, as slowly as necessary: tests compare
 * the tables and the answers with this. It shares no code with the folds of the projector.
 */

type AnyPosition = number | bigint

/** One event of an entry. */
export type EntryEvent<Position extends AnyPosition = number> = {
  readonly playerName: string
  readonly occurrence: number
  readonly ms: number
  /** The place of the event in the log. */
  readonly position: Position
  readonly isGone: boolean
  readonly rating: string
  readonly timeMs: number | null
  /** A lower score is better. */
  readonly isAscending?: boolean
  readonly statedRank: number | null
  readonly order: number | null
  readonly step: number | null
  readonly details?: string
}

/** An entry of a board with the rank that the board shows. */
export type RankedEntry<Event extends Entry = EntryEvent> = { readonly rank: number; readonly event: Event }

export type EntryChange<Event extends Entry = EntryEvent> = {
  readonly event: Event
  readonly changeType: 'new' | 'updated' | 'removed'
  /** The state before, if the entry was on the board. */
  readonly previous: Event | undefined
  readonly previousRank: number | null
  readonly newRank: number | null
}

/** The period during which an entry was the record of its board, from and to in ms. */
export type BoardReign = {
  readonly playerName: string
  readonly occurrence: number
  readonly rating: string
  readonly timeMs: number | null
  readonly setAt: number
  readonly fromAt: number
  readonly toAt: number | null
}

type Entry = EntryEvent<AnyPosition>
type Measure = Pick<Entry, 'rating' | 'timeMs'>

/** Returns the events of one board, each fact once, in the order in which they count. */
export function historyOf<Event extends Entry>(events: readonly Event[]): Event[] {
  const facts = new Map<string, Event>()
  for (const event of events.toSorted(byPosition)) {
    const fact = { ...event, position: 0, partition: 0 }
    const key = JSON.stringify(Object.entries(fact).sort())
    if (!facts.has(key)) facts.set(key, event)
  }
  return [...facts.values()].sort(inTime)
}

/** Returns the newest state of each entry of a history, entries that left included. */
export function newestOf<Event extends Entry>(history: readonly Event[]): Event[] {
  return [...new Map(history.map((event) => [entryKey(event), event])).values()]
}

/** Returns the board of a history: as of an instant, that instant included; without one, the newest board. */
export function boardOf<Event extends Entry>(
  history: readonly Event[],
  asOfMs = Number.POSITIVE_INFINITY
): RankedEntry<Event>[] {
  return ranked(newestOf(history.filter(({ ms }) => ms <= asOfMs)).filter(({ isGone }) => !isGone))
}

/** Returns every change of every entry, ordered by the instant and then the position of its event. */
export function changesOf<Event extends Entry>(history: readonly Event[]): EntryChange<Event>[] {
  return changedIn(history).map((change) => {
    const { event } = change
    const rankIn = (board: readonly RankedEntry<Event>[]) =>
      board.find((entry) => entryKey(entry.event) === entryKey(event))?.rank ?? null
    const previousRank = rankIn(boardOf(history.filter(({ ms }) => ms < event.ms)))
    return { ...change, previousRank, newRank: rankIn(boardOf(history, event.ms)) }
  })
}

/**
 * Returns, for each event that was ever a change, by its position, the event with which it was recorded. Folds every prefix of
 * the log.
 */
export function recordedOf<Event extends Entry>(events: readonly Event[]): Map<Event['position'], Event> {
  const recorded = new Map<Event['position'], Event>()
  for (const last of events.toSorted(byPosition)) {
    for (const { event } of changedIn(historyOf(events.filter(({ position }) => position <= last.position)))) {
      if (!recorded.has(event.position)) recorded.set(event.position, last)
    }
  }
  return recorded
}

/** Returns the reigns of a board's record, oldest first. */
export function recordsOf(history: readonly Entry[]): BoardReign[] {
  const reigns: BoardReign[] = []
  const current = () => (reigns.at(-1)?.toAt === null ? reigns.at(-1) : undefined)
  const begin = (event: Entry | undefined, setAt: number, at: number) => {
    const last = current()
    if (last !== undefined) reigns[reigns.length - 1] = { ...last, toAt: at }
    if (event === undefined) return
    const { playerName, occurrence, rating, timeMs } = event
    reigns.push({ playerName, occurrence, rating, timeMs, setAt, fromAt: at, toAt: null })
  }
  for (const at of new Set(history.map(({ ms }) => ms))) {
    const board = boardOf(history, at)
    if (board.some(({ event }) => isRanked(event))) {
      const best = Math.min(...board.map(({ rank }) => rank))
      const leaders = board.flatMap(({ rank, event }) => (rank === best ? event : []))
      const holder = current()
      const [first] = leaders
      if (first === undefined || (holder !== undefined && leaders.some((leader) => shows(leader, holder)))) continue
      const past = history.filter(({ ms }) => ms <= at)
      begin(first, shownSince(first, past), at)
      continue
    }
    const events = history.filter(({ ms }) => ms === at)
    // What leaves is judged together with what comes.
    for (const event of events.filter(({ isGone }, n) => !isGone || n === events.length - 1)) {
      const best = bestValid(history.filter((each) => inTime(each, event) <= 0))
      const holder = current()
      if (best !== undefined && holder !== undefined && shows(best, holder) && holder.setAt === best.ms) continue
      begin(best, best?.ms ?? at, at)
    }
  }
  return reigns
}

/** Returns the changes without ranks. */
function changedIn<Event extends Entry>(
  history: readonly Event[]
): Omit<EntryChange<Event>, 'previousRank' | 'newRank'>[] {
  const last = new Map<string, Event>()
  return history.flatMap((event) => {
    const before = last.get(entryKey(event))
    last.set(entryKey(event), event)
    const previous = before?.isGone === false ? before : undefined
    const changeType = changeTypeOf(previous, event)
    return changeType === undefined ? [] : { event, changeType, previous }
  })
}

/** Ordered entries have the sum of steps, stated ones their stated rank, the others 1 + the number of better entries. */
function ranked<Event extends Entry>(entries: readonly Event[]): RankedEntry<Event>[] {
  const ordered = entries.filter(({ order }) => order !== null)
  const rankOf = (event: Event) => {
    if (event.order === null) {
      return event.statedRank ?? 1 + entries.filter((other) => compareMeasures(other, event) < 0).length
    }
    return ordered.filter((other) => byOrder(other, event) <= 0).reduce((sum, { step }) => sum + (step ?? 0), 0)
  }
  const all = entries.map((event) => ({ rank: rankOf(event), event }))
  if (ordered.length === entries.length) return all.sort((a, b) => byOrder(a.event, b.event))
  return all.sort((a, b) => a.rank - b.rank || byOrder(a.event, b.event))
}

function changeTypeOf(previous: Entry | undefined, event: Entry): EntryChange['changeType'] | undefined {
  if (previous === undefined) return event.isGone ? undefined : 'new'
  if (event.isGone) return 'removed'
  return isAsGood(previous, event) ? undefined : 'updated'
}

/** Two spellings of one time are equal; a score is its text. */
function isAsGood(a: Measure, b: Measure): boolean {
  return a.timeMs === null && b.timeMs === null ? a.rating === b.rating : a.timeMs === b.timeMs
}

function shows(event: Entry, reign: BoardReign): boolean {
  return entryKey(event) === entryKey(reign) && isAsGood(event, reign)
}

/** When the entry began to show its present measure. */
function shownSince(event: Entry, history: readonly Entry[]): number {
  let since = event.ms
  for (const each of history.filter((other) => entryKey(other) === entryKey(event)).toReversed()) {
    if (each.isGone || !isAsGood(each, event)) break
    since = each.ms
  }
  return since
}

/** The best measure of entries without a published rank, since they last came or had one. */
function bestValid(history: readonly Entry[]): Entry | undefined {
  const isMeasured = (event: Entry) => !event.isGone && !isRanked(event)
  const isOver = (event: Entry) =>
    history.some((each) => entryKey(each) === entryKey(event) && !isMeasured(each) && inTime(each, event) > 0)
  const valid = history.filter((event) => isMeasured(event) && !isOver(event))
  return valid.sort((a, b) => compareMeasures(a, b) || inTime(a, b))[0]
}

function isRanked({ order, statedRank }: Entry): boolean {
  return order !== null || statedRank !== null
}

function entryKey({ playerName, occurrence }: Pick<Entry, 'playerName' | 'occurrence'>): string {
  return JSON.stringify([playerName, occurrence])
}

/** By instant. At one instant, removals come first and the best value last; other differences make the order total. */
function inTime(a: Entry, b: Entry): number {
  if (a.ms !== b.ms) return a.ms - b.ms
  if (a.isGone !== b.isGone) return a.isGone ? -1 : 1
  const byValue = compareMeasures(b, a) || compareText(a.playerName, b.playerName) || a.occurrence - b.occurrence
  return byValue || compareText(a.rating, b.rating) || byPlace(a, b) || byPosition(a, b)
}

/** A place that is not stated comes before all others; the lowest stated rank is the last. */
function byPlace(a: Entry, b: Entry): number {
  const places = ({ statedRank, order, step }: Entry) => [statedRank === null ? null : -statedRank, order, step]
  const others = places(b)
  for (const [n, one] of places(a).entries()) {
    const other = others[n] ?? null
    if (one !== other) return one === null || (other !== null && one < other) ? -1 : 1
  }
  return compareText(a.details ?? '', b.details ?? '')
}

function byPosition(a: Entry, b: Entry): number {
  return Number(a.position > b.position) - Number(a.position < b.position)
}

/** Entries without an order key come last. */
function byOrder(a: Entry, b: Entry): number {
  const [one, other] = [a, b].map(({ order }) => order ?? Number.MAX_SAFE_INTEGER)
  return (one ?? 0) - (other ?? 0) || compareText(a.playerName, b.playerName) || a.occurrence - b.occurrence
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}
