import { COUNT_MAX, Instant, Lobby, type MatchesListed, matchListTopic, TitleId } from '@gamenet/schemas'
import { z } from 'zod'
import { lineText } from '../pages/page-text.js'
import { AHEAD_OF_NOW_MS_MAX } from './import-time.js'
import { type Fields, type Importable, importable, type Outcome } from './importable.js'
import { matchListGathering } from './match-list-gathering.js'
import { judged } from './row-judge.js'

/** What flat rows write for the players of a lobby that is closed: the instant was looked at, the lobby is none. */
export const CLOSED = -1

/** One lobby of one list, as a row of its own. */
const FlatRow = z.object({
  titleId: TitleId,
  observedAt: Instant,
  hostName: Lobby.shape.hostName,
  currentPlayers: z.int().min(CLOSED).max(COUNT_MAX),
  maxPlayers: Lobby.shape.maxPlayers.default(0)
})
const ClosedRow = FlatRow.omit({ maxPlayers: true }).extend({ hostName: FlatRow.shape.hostName.optional() })

/** A row that makes a list together with all others of its title and instant. */
export type LobbyRow = z.infer<typeof FlatRow> | z.infer<typeof ClosedRow>

const base = importable<MatchesListed>({
  topic: matchListTopic,
  fields: { titleId: 'text', observedAt: 'instant', matches: 'text' },
  measured: ['matches'],
  aheadMsMax: AHEAD_OF_NOW_MS_MAX,
  outcome: (fields, judge) => (fields.matches === undefined ? lobbyOutcome(fields) : judge(withLobbiesAsShown(fields)))
})

/**
 * Lists of matches, a row each (`matches`), or flat: a row a lobby, and equal titles and instants are one list wherever
 * the rows stand. An unknown size of a lobby is 0; a lobby of -1 players counts the instant but is none.
 */
export const matchListImport: Importable = {
  ...base,
  fields: { ...base.fields, hostName: 'text', currentPlayers: 'integer', maxPlayers: 'integer' },
  measured: ['matches', 'currentPlayers'],
  required: base.required.filter((field) => field !== 'matches'),
  gather: matchListGathering
}

function lobbyOutcome(fields: Fields): Outcome {
  const { hostName, currentPlayers, maxPlayers, titleId, observedAt } = fields
  if (currentPlayers === undefined) {
    const lacking = titleId === undefined ? 'titleId' : observedAt === undefined ? 'observedAt' : undefined
    return lacking === undefined ? { kind: 'missing' } : { kind: 'fault', reason: `${lacking} is missing` }
  }
  const host = typeof hostName === 'string' ? lineText(hostName) : hostName
  const row =
    currentPlayers === CLOSED
      ? judged<LobbyRow>(ClosedRow, { titleId, observedAt, hostName: host, currentPlayers })
      : judged<LobbyRow>(FlatRow, { titleId, observedAt, hostName: host, currentPlayers, maxPlayers })
  return 'fault' in row ? { kind: 'fault', reason: row.fault } : { kind: 'part', part: row.value }
}

/** What is no list of objects is left to the schema. */
function withLobbiesAsShown(fields: Fields): Fields {
  if (!Array.isArray(fields.matches)) return fields
  const lobbies = fields.matches.filter((lobby: unknown) => !isObject(lobby) || lobby.currentPlayers !== CLOSED)
  return {
    ...fields,
    matches: lobbies.map((lobby: unknown) => {
      if (!isObject(lobby)) return lobby
      const { hostName, maxPlayers } = lobby
      return {
        ...lobby,
        hostName: typeof hostName === 'string' ? lineText(hostName) : hostName,
        maxPlayers: maxPlayers ?? 0
      }
    })
  }
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null
}
