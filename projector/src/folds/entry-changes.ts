import { comparePositions, isSameMeasure, type Position, type State } from './board-history.js'

/** The effect of an event of an entry on the feed of changes. */
export type EntryChange = {
  readonly state: State
  /** The state before; undefined for the first one. */
  readonly before: State | undefined
  /** Undefined: no change, or no longer one. */
  readonly change: 'new' | 'updated' | 'removed' | undefined
  /** The position that made it a change. */
  readonly recorded: Position
  /** The ranks of its entry before and after its instant, once known; null while it is not on the board. */
  previousRank: number | null
  newRank: number | null
}

/**
 * Returns the events of an entry that are or were changes, from the state at index `first`.
 *
 * An event is a change relative to the state before it. That state depends on what has arrived: at first it is the
 * nearest one that was in the log already; later positions insert nearer ones. The states that may become the next one
 * before an event are those whose position is lower than that of every state between them and the event. A stack keeps
 * them; each state is removed at most once, so the whole takes linear time.
 */
export function entryChanges(states: readonly State[], first: number): EntryChange[] {
  const changes: EntryChange[] = []
  const nearest: State[] = []
  for (const [n, state] of states.entries()) {
    let arrivedLater: State[] | undefined
    for (let top = nearest.at(-1); top !== undefined && comparePositions(top, state) > 0; top = nearest.at(-1)) {
      arrivedLater ??= []
      arrivedLater.push(top)
      nearest.pop()
    }
    const knownThen = nearest.at(-1)
    nearest.push(state)
    if (n < first) continue
    const recorded =
      changeBetween(knownThen, state) !== undefined
        ? state
        : arrivedLater?.findLast((before) => changeBetween(before, state) !== undefined)
    const before = states[n - 1]
    if (recorded === undefined) continue
    changes.push({ state, before, change: changeBetween(before, state), recorded, previousRank: null, newRank: null })
  }
  return changes
}

function changeBetween(before: State | undefined, state: State): EntryChange['change'] {
  const wasThere = before !== undefined && !before.isGone
  if (state.isGone) return wasThere ? 'removed' : undefined
  if (!wasThere) return 'new'
  return isSameMeasure(before, state) ? undefined : 'updated'
}
