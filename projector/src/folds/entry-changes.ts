import { comparePositions, type Position, type SameMeasure, type State } from './board-history.js'

/** What an event of an entry is to those who follow changes. */
export type EntryChange = {
  readonly state: State
  /** The state before; undefined for the first one. */
  readonly before: State | undefined
  /** Undefined: no change, or none any more. */
  readonly change: 'new' | 'updated' | 'removed' | undefined
  /** The position that made it a change. */
  readonly recorded: Position
  /** The ranks of its entry before and after its instant, once they are known; null where it is not on the board. */
  previousRank: number | null
  newRank: number | null
}

/**
 * The events of an entry that are changes, or once were, from the state at index `first` on.
 *
 * An event is a change against the state before it. Which state that is depends on what has arrived: at first the nearest one
 * that was in the log already, then, as later positions bring states in between, ever nearer ones. Those that may come to
 * stand next before an event are the states whose position is lower than that of every state between them and the event; a
 * stack keeps them, and since a state passes over each but once, the whole takes linear time.
 */
export function entryChanges(states: readonly State[], first: number, isSame: SameMeasure): EntryChange[] {
  const changeBetween = changeBy(isSame)
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

function changeBy(isSame: SameMeasure) {
  return (before: State | undefined, state: State): EntryChange['change'] => {
    const wasThere = before !== undefined && !before.isGone
    if (state.isGone) return wasThere ? 'removed' : undefined
    if (!wasThere) return 'new'
    return isSame(before, state) ? undefined : 'updated'
  }
}
