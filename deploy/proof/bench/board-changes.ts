import { diffBoard, type KnownEntry } from '@gamenet/ingest'
import {
  encodeEvent,
  instantOf,
  type LeaderboardEntryChanged,
  type LogMessage,
  leaderboardEntryTopic
} from '@gamenet/schemas'
import { randomness } from './count-files.js'

/*
 * Changes of boards with random scores, as the messages that ingest would publish: the differ compares successive pages.
 */

const ENTRIES = 1000
const PLAYERS = 20_000
const FIRST_MS = Date.UTC(2026, 0, 1)
const VISIT_MS = 1733
const SCRAPED = { source: '/scrape/boards' }

type Player = { readonly playerName: string; readonly score: number }
type Board = { players: Player[]; known: Map<string, KnownEntry> }

/** Visits boards round-robin. `next` returns the messages of one append: first the whole board, later `edits` random edits. */
export function boardVisits(options: { boards: number; edits: number }): { next(): LogMessage[] } {
  const random = randomness(20_260_103)
  const below = (count: number): number => Math.floor(random() * count)
  const boards: Board[] = Array.from({ length: options.boards }, () => ({ players: [], known: new Map() }))
  let visit = 0
  const score = () => below(4_000_000) * 5
  const nameOf = (player: number) => `${NAMES[player % NAMES.length]}${(player * 2_654_435_761) % 9973}`
  return {
    next() {
      const number = visit % boards.length
      const board = boards[number]
      if (board === undefined) return []
      if (board.players.length === 0) {
        const taken = new Set(Array.from({ length: ENTRIES }, () => nameOf(below(PLAYERS))))
        board.players = [...taken].map((playerName) => ({ playerName, score: score() }))
      } else {
        for (let edit = 0; edit < options.edits; edit += 1)
          change(board, { playerName: nameOf(below(PLAYERS)), score: score() })
      }
      visit += 1
      return changesOf(board, number, instantOf(FIRST_MS + visit * VISIT_MS)).map((event) =>
        encodeEvent(leaderboardEntryTopic, event, SCRAPED)
      )
    }
  }
}

/** Sets the score of a player; a full board loses its last entry. */
function change(board: Board, player: Player): void {
  board.players = board.players.filter(({ playerName }) => playerName !== player.playerName)
  board.players.push(player)
  board.players.sort((a, b) => b.score - a.score)
  if (board.players.length > ENTRIES) board.players.pop()
}

function changesOf(board: Board, number: number, changedAt: string): LeaderboardEntryChanged[] {
  board.players.sort((a, b) => b.score - a.score)
  const events = diffBoard({
    titleId: (0x4d53_0064 + (number % 40)).toString(16),
    leaderboardId: number,
    changedAt,
    last: [...board.known.values()],
    page: board.players.map(({ playerName, score }, i) => ({
      playerName,
      occurrence: 1,
      rank: i + 1,
      rating: String(score),
      timeMs: null
    }))
  })
  for (const { playerName, changeType, rating = '', order = null, step = null } of events) {
    if (changeType === 'removed') board.known.delete(playerName)
    else board.known.set(playerName, { playerName, occurrence: 1, rating, timeMs: null, order, step })
  }
  return events
}

const NAMES = [
  'Shadow',
  'xX Reaper ',
  'MC',
  'Sgt ',
  'Ghost',
  'The Real ',
  'Turbo',
  'ninja',
  'Lady ',
  'Ol ',
  'Blue',
  'Kilo'
]
