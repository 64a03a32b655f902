import { COUNT_MAX, Instant, Lobby, lineText, type MatchesListed, matchListTopic, TitleId } from '@gamenet/schemas'
import { z } from 'zod'
import { AHEAD_OF_NOW_MS_MAX } from './import-time.js'
import { type Fields, type Importable, importable, type Outcome } from './importable.js'
import { matchListGathering } from './match-list-gathering.js'
import { judged } from './row-judge.js'

/** Players of a closed lobby in flat rows: the instant counts as observed, the lobby does not. */
export const CLOSED = -1

/** One lobby of one list, as a separate row. */
const FlatRow = z.object({
  titleId: TitleId,
  observedAt: Instant,
  hostName: Lobby.shape.hostName,
  currentPlayers: z.int().min(CLOSED).max(COUNT_MAX),
  maxPlayers: Lobby.shape.maxPlayers.default(0)
})
const ClosedRow = FlatRow.omit({ maxPlayers: true }).extend({ hostName: FlatRow.shape.hostName.optional() })

/** A row that forms a list with all others of its title and instant. */
export type LobbyRow = z.infer<typeof FlatRow> | z.infer<typeof ClosedRow>

const base = importable<MatchesListed>({
  topic: matchListTopic,
  fields: { titleId: 'text', observedAt: 'instant', matches: 'text' },
  measured: ['matches'],
  aheadMsMax: AHEAD_OF_NOW_MS_MAX,
  outcome: (fields, judge) => (fields.matches === undefined ? lobbyOutcome(fields) : judge(withLobbiesAsShown(fields)))
})

/**
 * Lists of matches: one row per list (`matches`), or flat with one row per lobby. Flat rows with equal title and
 * instant form one list wherever they are in the file. An unknown size of a lobby is 0; a lobby with -1 players makes
 * the instant count as observed.
 */
export const matchListImport: Importable = {
  ...base,
  fields: { ...base.fields, hostName: 'name', currentPlayers: 'integer', maxPlayers: 'integer' },
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

/** Values that are not a list of objects are left to the schema. */
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

const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null
