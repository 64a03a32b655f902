import { createHash } from 'node:crypto'
import type { BoardEntry, GamePage, PageFetcher, PageParsing } from '@gamenet/ingest/internals'
import type { World } from './world.js'

type Board = { readonly leaderboardId: number; readonly name: string; entries: { name: string; score: number }[] }

const NAMES = ['ann', 'Bob', 'cy', 'dee', 'Eve'] as const
const ENTRIES_MAX = 7
const BOARDS_MAX = 3

/** The pages of games: a few boards whose entries come, leave and change ranks. */
export class Upstream {
  readonly boards = new Map<string, Board[]>()
  readonly #world: World
  #lastBoard = 6

  constructor(world: World, titleIds: readonly string[]) {
    this.#world = world
    for (const titleId of titleIds) {
      this.boards.set(titleId, [])
      this.#addBoard(titleId)
    }
  }

  /** Changes a board, or the list of a title. */
  move(titleId: string): void {
    const { chance } = this.#world
    const boards = this.boards.get(titleId) ?? []
    const drawn = chance.number()
    if (drawn < 0.04 && boards.length < BOARDS_MAX) this.#addBoard(titleId)
    else if (drawn < 0.06 && boards.length > 1) boards.splice(chance.below(boards.length), 1)
    else this.#moveEntry(boards, drawn)
  }

  #moveEntry(boards: readonly Board[], drawn: number): void {
    const { chance } = this.#world
    const board = boards[chance.below(boards.length)]
    if (board === undefined) return
    const at = chance.below(board.entries.length)
    const entry = board.entries[at]
    if (entry === undefined || (drawn < 0.4 && board.entries.length < ENTRIES_MAX)) {
      board.entries.push({ name: chance.oneOf(NAMES), score: chance.below(9) })
    } else if (drawn < 0.6) board.entries.splice(at, 1)
    else entry.score = chance.below(9)
    // Equal scores are listed in the order of arrival.
    board.entries = board.entries.toSorted((a, b) => b.score - a.score)
    this.#world.note(`board ${board.leaderboardId} is ${board.entries.map(({ name, score }) => `${name} ${score}`)}`)
  }

  get fetcher(): PageFetcher {
    return {
      fetch: async (path, options = {}) => {
        const answer = this.#world
          .call('upstream', { what: `page ${path}`, done: () => this.#page(path) })
          .catch((error: Error) => error)
        const page = await answer
        // By the clock of the requesting process.
        const answeredAtMs = Date.now()
        if (page instanceof Error) return { ok: false, reason: page.message }
        if (page === undefined) return { ok: false, reason: '404', isRefused: true, isAbsent: true }
        const html = JSON.stringify(page)
        const etag = createHash('sha1').update(html).digest('base64')
        if (options.validators?.etag === etag) return { ok: true, changed: false, answeredAtMs }
        return { ok: true, changed: true, html, address: `http://upstream${path}`, validators: { etag }, answeredAtMs }
      },
      close: async () => undefined
    }
  }

  /** A page is represented by its content. */
  get parsing(): PageParsing {
    return {
      parse: async (_, html) => JSON.parse(html),
      close: async () => undefined
    }
  }

  /** The entries of a board on its page; equal scores share a rank. */
  entriesOf({ entries }: Board): BoardEntry[] {
    const seen = new Map<string, number>()
    return entries.map(({ name, score }) => {
      const occurrence = (seen.get(name) ?? 0) + 1
      seen.set(name, occurrence)
      const rank = entries.findIndex((each) => each.score === score) + 1
      return { playerName: name, occurrence, rank, rating: String(score), timeMs: null }
    })
  }

  #page(path: string): { ok: true; page: GamePage } | undefined {
    const url = new URL(path, 'http://upstream')
    const boards = this.boards.get(url.pathname.slice('/games/'.length)) ?? []
    const parameter = url.searchParams.get('leaderboard')
    const shown = parameter === null ? boards[0] : boards.find(({ leaderboardId }) => `${leaderboardId}` === parameter)
    if (parameter !== null && shown === undefined) return undefined
    const list = boards.map(({ leaderboardId, name }) => ({ leaderboardId, name }))
    const board =
      shown === undefined
        ? ({ ok: false, reason: 'no board is shown' } as const)
        : ({ ok: true, value: { leaderboardId: shown.leaderboardId, entries: this.entriesOf(shown) } } as const)
    const page: GamePage = { matches: { ok: true, value: [] }, boards: { ok: true, value: list }, board }
    return { ok: true, page }
  }

  #addBoard(titleId: string): void {
    this.#lastBoard += 1
    const { chance } = this.#world
    const entries = [{ name: chance.oneOf(NAMES), score: chance.below(9) }]
    this.boards.get(titleId)?.push({ leaderboardId: this.#lastBoard, name: `Board ${this.#lastBoard}`, entries })
  }
}
