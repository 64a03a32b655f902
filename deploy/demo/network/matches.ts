import { chance, chanceBelow, stream } from './chance.js'
import { PLAYER_COUNT, shownNameOf } from './players.js'
import type { DemoTitle } from './titles.js'

/** One match on a title's page. */
export type DemoMatch = { readonly hostName: string; readonly currentPlayers: number; readonly maxPlayers: number }

const MINUTE_MS = 60_000

/**
 * Returns the matches of a title at an instant: `lobbies` of them with `players` in total, none empty, none over its
 * size. A match occupies a numbered slot for 12 to 40 minutes; then the slot has another host.
 */
export function matchesAt(
  seed: number,
  title: DemoTitle,
  { lobbies, players }: { readonly lobbies: number; readonly players: number },
  ms: number
): DemoMatch[] {
  const slots = Array.from({ length: lobbies }, (_, slot) => {
    const lengthMs = (12 + chanceBelow(29, seed, stream.matchLength, title.index, slot)) * MINUTE_MS
    const round = Math.floor(ms / lengthMs + chance(seed, stream.matchLength, title.index, -1 - slot))
    const match = Math.imul(slot, 0x10001) ^ round
    return {
      hostName: shownNameOf(seed, chanceBelow(PLAYER_COUNT, seed, stream.matchHost, title.index, match)),
      pull: 0.5 + chance(seed, stream.matchFill, title.index, match)
    }
  })
  const sizes = shared(
    slots.map((slot) => slot.pull),
    players,
    title.matchSize
  )
  return slots.map(({ hostName }, slot) => ({
    hostName,
    currentPlayers: sizes[slot] ?? 1,
    maxPlayers: title.matchSize
  }))
}

/** Divides `total` into integers from 1 to `most`, in proportion to `pulls`; requires 1 ≤ total / pulls.length ≤ most. */
function shared(pulls: readonly number[], total: number, most: number): number[] {
  const pullOfAll = pulls.reduce((sum, pull) => sum + pull, 0)
  const spare = total - pulls.length
  let passed = 0
  const sizes = pulls.map((pull) => {
    const before = Math.round((passed / pullOfAll) * spare)
    passed += pull
    return 1 + Math.round((passed / pullOfAll) * spare) - before
  })
  let over = 0
  const cut = sizes.map((size) => {
    over += Math.max(0, size - most)
    return Math.min(size, most)
  })
  return cut.map((size) => {
    const more = Math.min(over, most - size)
    over -= more
    return size + more
  })
}
