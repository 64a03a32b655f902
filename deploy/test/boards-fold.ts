import { compareMeasures } from '@gamenet/schemas'

/*
 * Boards, their changes and their records by a plain fold of all events, as slow as it likes: what every answer about
 * boards must equal. An event's position is its place in the log.
 */

/** What became of one entry. */
export type EntryEvent = {
  readonly playerName: string
  readonly occurrence: number
  readonly ms: number
  readonly position: number
  readonly isGone: boolean
  readonly rating: string
  readonly timeMs: number | null
  readonly statedRank: number | null
  readonly order: number | null
  readonly step: number | null
}

/** An entry of a board with the rank that the board shows. */
export type RankedEntry = { readonly rank: number; readonly event: EntryEvent }

export type Change = {
  readonly event: EntryEvent
  readonly changeType: 'new' | 'updated' | 'removed'
  readonly previous: EntryEvent | undefined
  readonly previousRank: number | null
  readonly newRank: number | null
}

export type Reign = {
  readonly playerName: string
  readonly rating: string
  readonly timeMs: number | null
  readonly setMs: number
  readonly fromMs: number
  readonly toMs: number | null
}

/** The events of one board, each fact once, by instant and then by position. */
export function historyOf(events: readonly EntryEvent[]): EntryEvent[] {
  const facts = new Map<string, EntryEvent>()
  for (const event of events.toSorted((a, b) => a.position - b.position)) {
    const { position: _, ...fact } = event
    const key = JSON.stringify(Object.entries(fact).sort())
    if (!facts.has(key)) facts.set(key, event)
  }
  return [...facts.values()].sort(inTime)
}

/** The board of a history: as of an instant, that instant included; the newest unless given. */
export function boardOf(history: readonly EntryEvent[], asOfMs = Number.POSITIVE_INFINITY): RankedEntry[] {
  const states = new Map<string, EntryEvent>()
  for (const event of history) if (event.ms <= asOfMs) states.set(entryKey(event), event)
  return rankedPlainly([...states.values()].filter(({ isGone }) => !isGone))
}

/** Every change of every entry, by the instant and then the position of its event. */
export function changesOf(history: readonly EntryEvent[]): Change[] {
  const last = new Map<string, EntryEvent>()
  const changes: Change[] = []
  for (const event of history) {
    const before = last.get(entryKey(event))
    last.set(entryKey(event), event)
    const previous = before?.isGone === false ? before : undefined
    const changeType = changeTypeOf(previous, event)
    if (changeType === undefined) continue
    const rankIn = (board: readonly RankedEntry[]) =>
      board.find((entry) => entryKey(entry.event) === entryKey(event))?.rank ?? null
    const previousRank = rankIn(boardOf(history.filter(({ ms }) => ms < event.ms)))
    changes.push({ event, changeType, previous, previousRank, newRank: rankIn(boardOf(history, event.ms)) })
  }
  return changes
}

/** The reigns of a board's record. */
export function recordsOf(history: readonly EntryEvent[]): Reign[] {
  const reigns: { -readonly [Key in keyof Reign]: Reign[Key] }[] = []
  const end = (ms: number) => {
    const last = reigns.at(-1)
    if (last !== undefined && last.toMs === null) last.toMs = ms
  }
  const begin = ({ playerName, rating, timeMs }: EntryEvent, setMs: number, fromMs: number) => {
    end(fromMs)
    reigns.push({ playerName, rating, timeMs, setMs, fromMs, toMs: null })
  }
  // Since when an entry that is on the board has shown its rating.
  const since = new Map<string, EntryEvent>()
  // States without a published place, of entries that are on the board, since they last came or had a place published; an own worse
  // one takes nothing back.
  let valid: EntryEvent[] = []
  let holder: EntryEvent | undefined
  for (const ms of [...new Set(history.map((event) => event.ms))]) {
    const board = boardOf(history, ms)
    const isShown = board.some(({ event }) => event.order !== null || event.statedRank !== null)
    for (const event of history.filter((event) => event.ms === ms)) {
      const key = entryKey(event)
      const before = since.get(key)
      if (event.isGone) {
        valid = valid.filter((state) => entryKey(state) !== key)
        since.delete(key)
      } else {
        if (event.order === null && event.statedRank === null) valid.push(event)
        else valid = valid.filter((state) => entryKey(state) !== key)
        if (before === undefined || isRatedOtherwise(before, event)) since.set(key, event)
      }
      if (isShown) continue
      const best = valid.toSorted((a, b) => compareMeasures(a, b) || inTime(a, b))[0]
      if (best === undefined) {
        end(ms)
        holder = undefined
      } else if (holder === undefined || !valid.includes(holder) || compareMeasures(best, holder) < 0) {
        begin(best, best.ms, ms)
        holder = best
      }
    }
    if (!isShown) continue
    const [first] = board
    const leaders = board.filter(({ rank }) => rank === Math.min(...board.map((entry) => entry.rank)))
    const isHolders = (event: EntryEvent) =>
      holder !== undefined && entryKey(event) === entryKey(holder) && !isRatedOtherwise(event, holder)
    const incumbent = leaders.find(({ event }) => isHolders(event))
    const next = incumbent?.event ?? leaders[0]?.event ?? first?.event
    if (next === undefined) {
      end(ms)
      holder = undefined
    } else if (holder === undefined || entryKey(next) !== entryKey(holder) || isRatedOtherwise(next, holder)) {
      begin(next, since.get(entryKey(next))?.ms ?? ms, ms)
      holder = next
    }
  }
  return reigns
}

function changeTypeOf(previous: EntryEvent | undefined, event: EntryEvent): Change['changeType'] | undefined {
  if (previous === undefined) return event.isGone ? undefined : 'new'
  if (event.isGone) return 'removed'
  return isRatedOtherwise(previous, event) ? 'updated' : undefined
}

function isRatedOtherwise(a: EntryEvent, b: EntryEvent): boolean {
  return a.rating !== b.rating || a.timeMs !== b.timeMs
}

/** Ordered entries by the sum of steps, stated ones as stated, the others by how many of the board are better. */
function rankedPlainly(entries: readonly EntryEvent[]): RankedEntry[] {
  const ordered = entries.filter(({ order }) => order !== null)
  const above = (a: EntryEvent, b: EntryEvent) =>
    (a.order ?? 0) - (b.order ?? 0) || compareText(a.playerName, b.playerName) || a.occurrence - b.occurrence
  const rankOf = (event: EntryEvent) => {
    if (event.order !== null) {
      return ordered.filter((other) => above(other, event) <= 0).reduce((sum, { step }) => sum + (step ?? 0), 0)
    }
    return event.statedRank ?? 1 + entries.filter((other) => compareMeasures(other, event) < 0).length
  }
  const ranked = entries.map((event) => ({ rank: rankOf(event), event }))
  if (ordered.length === entries.length) return ranked.sort((a, b) => above(a.event, b.event))
  const place = ({ order }: EntryEvent) => order ?? Number.POSITIVE_INFINITY
  return ranked.sort((a, b) => {
    const [one, other] = [place(a.event), place(b.event)]
    const byPlace = one === other ? 0 : one - other
    return (
      a.rank - b.rank ||
      byPlace ||
      compareText(a.event.playerName, b.event.playerName) ||
      a.event.occurrence - b.event.occurrence
    )
  })
}

function inTime(a: EntryEvent, b: EntryEvent): number {
  return a.ms - b.ms || a.position - b.position
}

function entryKey({ playerName, occurrence }: EntryEvent): string {
  return JSON.stringify([playerName, occurrence])
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}
