import { type LeaderboardChanges, type Player, Refusal } from '@gamenet/schemas'
import { shown } from '../../request/parameters.js'

/** Refuses a player who was never seen on a board. */
export function requireSeen(name: string, { total }: Player, changes: LeaderboardChanges = []): void {
  if (total === 0 && changes.length === 0) throw new Refusal('player_unknown', [shown(name)])
}
