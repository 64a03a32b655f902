import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { chance } from '../../proof/torture/world.js'

/*
 * Players who play in the evenings, sighted every ten minutes, as rows of files; and their play time, computed by plain code
 * that shares nothing with the product.
 */

export const PERIOD_S = 600
const DAY_MS = 86_400_000
const BLOCK_MS = DAY_MS / 4
/** Missed sightings, by their number in a row: a gap of 3 periods still counts as play, one of 4 does not. */
const MISSED_EVERY = 211
const GAMES = ['Need for Speed', 'Halo 2', 'A/B #1 & Co', 'Pokémon', "Tom's Game"]

export type Sighting = { readonly ms: number; readonly game: string | undefined }
export type PlayedDays = ReadonlyMap<string, ReadonlyMap<string, number>>

export function usernameOf(player: number): string {
  return player % 7 === 0 ? `Zoé ${player}/&` : `Player_${player}`
}

/** Returns the sightings of one player in order: every one while online, and the first one offline. */
export function sightingsOf(player: number, fromMs: number, toMs: number): Sighting[] {
  const keenness = 0.05 + 0.35 * chance(player, 1)
  const sightings: Sighting[] = []
  for (let block = Math.ceil(fromMs / BLOCK_MS); (block + 1) * BLOCK_MS <= toMs; block += 1) {
    if (chance(player, block, 2) > keenness) continue
    const startMs = block * BLOCK_MS + chance(player, block, 3) * BLOCK_MS * 0.5
    const endMs = startMs + (10 + 170 * chance(player, block, 4)) * 60_000
    const middleMs = startMs + (endMs - startMs) * 0.6
    const [first, second] = [5, 6].map((n) => GAMES[Math.floor(chance(player, block, n) * GAMES.length)])
    for (let look = Math.ceil(startMs / (PERIOD_S * 1000)); ; look += 1) {
      const ms = look * PERIOD_S * 1000
      if (isMissed(look)) continue
      // Pages answer at any second of the minute; the instants keep their milliseconds.
      const seenMs = ms + Math.floor(chance(look, 7) * 20_000)
      sightings.push({ ms: seenMs, game: ms >= endMs ? undefined : ms < middleMs ? first : second })
      if (ms >= endMs) break
    }
  }
  return sightings
}

function isMissed(look: number): boolean {
  const since = look % MISSED_EVERY
  return since < 1 + Math.floor(chance(look - since, 8) * 4)
}

/** Returns whole seconds played by day and game, from sightings in order. */
export function playedOf(sightings: readonly Sighting[]): PlayedDays {
  const days = new Map<string, Map<string, number>>()
  sightings.forEach(({ ms, game }, n) => {
    const before = sightings[n - 1]
    if (before === undefined || game === undefined || game !== before.game) return
    if (ms - before.ms > 3 * PERIOD_S * 1000) return
    const endS = Math.floor(ms / 1000)
    for (let s = Math.floor(before.ms / 1000); s < endS; ) {
      const midnightS = (Math.floor(s / 86_400) + 1) * 86_400
      const next = Math.min(endS, midnightS)
      const day = new Date(s * 1000).toISOString().slice(0, 10)
      const games = days.get(day) ?? new Map<string, number>()
      days.set(day, games.set(game, (games.get(game) ?? 0) + next - s))
      s = next
    }
  })
  return days
}

export type PresenceFiles = { readonly paths: readonly string[]; readonly rows: number; readonly bytes: number }

/**
 * Writes the sightings of all players into packed NDJSON files: each has a part of every player's sightings, unordered,
 * and some rows that another file has too.
 */
export async function writeFiles(
  paths: readonly string[],
  players: number,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number }
): Promise<PresenceFiles> {
  const files = paths.map((path) => {
    const packed = createGzip({ level: 1 })
    return { packed, written: finished(packed.pipe(createWriteStream(path))), lines: [] as string[] }
  })
  let rows = 0
  let bytes = 0
  for (let player = 0; player < players; player += 1) {
    const username = usernameOf(player)
    const rowOf = ({ ms, game }: Sighting) =>
      `${JSON.stringify({ username, gamertag: `Tag ${player}`, state: game === undefined ? 'offline' : 'online', ...(game !== undefined && { game }), periodSeconds: PERIOD_S, observedAt: new Date(ms).toISOString() })}\n`
    const shuffled = sightingsOf(player, fromMs, toMs)
      .map((sighting) => ({ sighting, place: chance(player, sighting.ms / 1000, 9) }))
      .sort((a, b) => a.place - b.place)
    for (const { sighting, place } of shuffled) {
      const n = Math.floor(place * 7919) % files.length
      for (const at of place < 0.01 ? [n, (n + 1) % files.length] : [n]) {
        const line = rowOf(sighting)
        files[at]?.lines.push(line)
        rows += 1
        bytes += line.length
      }
    }
    for (const { packed, lines } of files) {
      if (!packed.write(lines.splice(0).join(''))) await once(packed, 'drain')
    }
  }
  for (const { packed } of files) packed.end()
  await Promise.all(files.map(({ written }) => written))
  return { paths, rows, bytes }
}
