import {
  boardOf,
  changesOf,
  type EntryEvent,
  historyOf,
  newestOf,
  recordedOf,
  recordsOf
} from '@gamenet/engines/testing'
import { type LeaderboardEntryChanged, millisecondsOf, nameKey, type RankGoal, rankGoals } from '@gamenet/schemas'

/*
 * The expected rows of boards in the read tables, computed by the tests' oracle.
 */

/** An event with its position in the log. */
export type PlacedEntry = {
  readonly event: LeaderboardEntryChanged
  readonly position: bigint
  readonly partition: number
}

export type PlainState = EntryEvent<bigint> & {
  readonly partition: number
  readonly details: string
  /** Identifies the entry. */
  readonly who: string
}

export type PlainChange = {
  readonly state: PlainState
  readonly change: 'new' | 'updated' | 'removed' | undefined
  readonly recorded: PlainState
  readonly previousRank: number | null
  readonly newRank: number | null
  readonly previous: PlainState | undefined
}

/** The first instant at which a player had a rank that a goal requires. */
export type PlainReached = { readonly playerKey: string; readonly goal: number; readonly atMs: number }

export type PlainBoard = ReturnType<typeof plainBoard>

/** Returns the tables of one board after its events, in any order of arrival. */
export function plainBoard(events: readonly PlacedEntry[], goals: readonly RankGoal[] = rankGoals) {
  const arrived = events.map(stateOf)
  const states = historyOf(arrived)
  return {
    states,
    present: boardOf(states).map(({ event, rank }) => ({ entry: event, rank })),
    gone: newestOf(states).filter(({ isGone }) => isGone),
    changes: changesIn(arrived, states),
    reigns: recordsOf(states),
    reached: reachedIn(states, goals)
  }
}

function stateOf({ event, position, partition }: PlacedEntry): PlainState {
  const { playerName, occurrence = 1 } = event
  return {
    who: JSON.stringify([playerName, occurrence]),
    playerName,
    occurrence,
    ms: millisecondsOf(event.changedAt),
    position,
    partition,
    isGone: event.changeType === 'removed',
    rating: event.rating ?? '',
    timeMs: event.timeMs ?? null,
    isAscending: event.isAscending ?? false,
    statedRank: event.rank ?? null,
    order: event.order ?? null,
    step: event.step ?? null,
    details: event.details === undefined ? '' : JSON.stringify(event.details)
  }
}

/** Every state that was ever a change; `change` is undefined if a late event has undone it. */
function changesIn(arrived: readonly PlainState[], states: readonly PlainState[]): PlainChange[] {
  const recorded = recordedOf(arrived)
  const changes = new Map(changesOf(states).map((change) => [change.event.position, change]))
  return states.flatMap((state) => {
    const record = recorded.get(state.position)
    if (record === undefined) return []
    const { changeType, previous, previousRank = null, newRank = null } = changes.get(state.position) ?? {}
    return { state, change: changeType, recorded: record, previousRank, newRank, previous }
  })
}

function reachedIn(states: readonly PlainState[], goals: readonly RankGoal[]): PlainReached[] {
  const reached = new Map<string, PlainReached>()
  for (const atMs of new Set(states.map(({ ms }) => ms))) {
    const present = boardOf(states, atMs)
    const best = Math.min(...present.map(({ rank }) => rank))
    for (const { id, rank: most, entries, isShared } of goals) {
      for (const { event: entry, rank } of present) {
        const playerKey = nameKey(entry.playerName)
        const others = present.filter((each) => nameKey(each.event.playerName) !== playerKey && each.rank === rank)
        if (rank > most || present.length < entries || (isShared && (rank > best || others.length === 0))) continue
        const key = `${playerKey}/${id}`
        if (!reached.has(key)) reached.set(key, { playerKey, goal: id, atMs })
      }
    }
  }
  const text = ({ atMs, goal, playerKey }: PlainReached) => `${atMs}/${String(goal).padStart(3, '0')}/${playerKey}`
  return [...reached.values()].sort((a, b) => a.atMs - b.atMs || (text(a) < text(b) ? -1 : 1))
}
