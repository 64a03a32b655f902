import type { EntryChange } from '@gamenet/engines/testing'
import { shownInstant } from '@gamenet/schemas'

/** A change in an answer, without its id, game and board. */
export function changeRow({ event, changeType, previous, previousRank, newRank }: EntryChange) {
  const after = event.isGone ? undefined : event
  return {
    playerName: event.playerName,
    changeType,
    previousRank,
    newRank,
    previousRating: previous?.rating ?? null,
    newRating: after?.rating ?? null,
    previousTimeMs: previous?.timeMs ?? null,
    newTimeMs: after?.timeMs ?? null,
    isTime: ((after ?? previous)?.timeMs ?? null) !== null,
    changedAt: shownInstant(event.ms)
  }
}
