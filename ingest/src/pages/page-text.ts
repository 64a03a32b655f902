import { COUNT_MAX } from '@gamenet/schemas'

/** Plain digits without leading zeros, or digits in groups of three after the first group. */
const NUMBER = String.raw`0|[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d*`
const WHOLE_NUMBER = new RegExp(`^(?:${NUMBER})$`)
const LOBBIES = new RegExp(`^(${NUMBER}) in (${NUMBER}) sessions?$`, 'i')
const QUOTED_CHARACTERS_MAX = 60

/**
 * Returns the count in a text: `21,345` or `21345`, at most {@link COUNT_MAX}; undefined for anything else (`2,13,45`,
 * `1.5`, `-3`, nothing), because a doubtful number is not a count.
 */
export function countIn(text: string): number | undefined {
  if (!WHOLE_NUMBER.test(text)) return undefined
  const count = Number(text.replaceAll(',', ''))
  return count <= COUNT_MAX ? count : undefined
}

/** Parses players and lobbies from `-` or `16 in 3 sessions`. */
export function lobbiesIn(text: string): { lobbyPlayers: number; sessions: number } | undefined {
  if (text === '-') return { lobbyPlayers: 0, sessions: 0 }
  const [, players, lobbies] = LOBBIES.exec(text) ?? []
  const lobbyPlayers = countIn(players ?? '')
  const sessions = countIn(lobbies ?? '')
  return lobbyPlayers === undefined || sessions === undefined ? undefined : { lobbyPlayers, sessions }
}

/** Quotes a page's text for a sentence: escaped and cut. */
export function quoted(text: string): string {
  const characters = [...text]
  const shown = characters.slice(0, QUOTED_CHARACTERS_MAX).join('')
  return JSON.stringify(characters.length > QUOTED_CHARACTERS_MAX ? `${shown}…` : shown)
}

/** Returns the first five places of rows and the number of the others, for a sentence. */
export function placesText(places: readonly number[]): string {
  const shown = places.slice(0, 5).join(', ')
  return places.length > 5 ? `${shown} and ${places.length - 5} more` : shown
}
