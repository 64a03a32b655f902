import { nameKey } from '@gamenet/schemas'
import { z } from 'zod'

/*
 * identity   the fields that identify an event, the same for an event of the stream and for its row; journals store its number
 * key        events of one kind and key are in the order of recording
 */

export type Identity = {
  readonly kind: string
  readonly key: string
  readonly titleId?: string | undefined
  readonly leaderboardId?: number | undefined
  readonly player?: string | undefined
  readonly atMs: number
  /** The other distinguishing fields. */
  readonly values: readonly unknown[]
}

const Data = z.looseObject({
  titleId: z.string().optional(),
  leaderboardId: z.int().optional(),
  playerName: z.string().optional(),
  username: z.string().optional()
})
const Event = z.object({ kind: z.string(), happenedAt: z.string(), data: Data })
const Matches = z.array(z.object({ hostName: z.string(), currentPlayers: z.int(), maxPlayers: z.int() }))

/** Numbers identities, so that a thousand journals fit into memory. */
export class Identities {
  readonly #numbers = new Map<string, number>()
  readonly #byText = new Map<string, number>()
  readonly #all: Identity[] = []

  /** Returns the number of an event, given as its JSON without the cursor. */
  of(event: string): number {
    const known = this.#byText.get(event)
    if (known !== undefined) return known
    const number = this.number(identityOf(event))
    this.#byText.set(event, number)
    return number
  }

  number(identity: Identity): number {
    const { kind, key, atMs, values } = identity
    const text = JSON.stringify([kind, key, atMs, values])
    const number = this.#numbers.get(text) ?? this.#all.push(identity) - 1
    this.#numbers.set(text, number)
    return number
  }

  at(number: number): Identity {
    const identity = this.#all[number]
    if (identity === undefined) throw new Error(`no identity has number ${number}`)
    return identity
  }
}

function identityOf(text: string): Identity {
  const { kind, happenedAt, data } = Event.parse(JSON.parse(text))
  const { titleId, leaderboardId, playerName, username } = data
  const atMs = Date.parse(happenedAt)
  if (kind === 'count') return { kind, key: '', atMs, values: [data.online_count] }
  if (kind === 'title-count') return { kind, key: titleId ?? '', titleId, atMs, values: [data.online_count] }
  if (kind === 'match') {
    const values = Matches.parse(data.matches).map((each) => [each.hostName, each.currentPlayers, each.maxPlayers])
    return { kind, key: titleId ?? '', titleId, atMs, values }
  }
  if (kind === 'change' || kind === 'record') {
    const player = nameKey(playerName ?? '')
    const values = kind === 'change' ? [player, data.changeType, data.newRating] : [player, data.rating]
    return { kind, key: `${titleId}/${leaderboardId}`, titleId, leaderboardId, player, atMs, values }
  }
  if (kind === 'achievement') {
    const player = nameKey(username ?? '')
    return { kind, key: player, player, atMs, values: [data.achievementId] }
  }
  throw new Error(`an event of this kind is not expected here: ${text.slice(0, 500)}`)
}
