/** @import { Player } from '@gamenet/schemas' */
import { ask } from './ask.js'
import { count, counted } from './format.js'
import {
  element,
  elementOf,
  isolated,
  node,
  numberCell,
  replaceChildren,
  rowHeader,
  setText,
  textButton
} from './nodes.js'
import { Part } from './part.js'

const SUGGESTED = 10
const BOARDS_SHOWN = 100
/** Wait after a keystroke; letters of one word come faster. */
const PAUSE_MS = 150
const HELP = 'Type the beginning of a name, or press a name anywhere on this page.'

/** A search box for players with suggestions, and the boards of the chosen player. */
export class PlayersSection {
  #name = ''
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer
  #box = elementOf('player', HTMLInputElement)
  #onBoard
  /** @type {Part<Player>} */
  #part = new Part({
    message: element('player-message'),
    contents: [element('player-table'), element('player-facts')],
    draw: (player) => this.#drawPlayer(player)
  })

  /** @param {{ onBoard: (titleId: string, leaderboardId: number) => void }} callbacks for pressed names */
  constructor({ onBoard }) {
    this.#onBoard = onBoard
    this.#box.addEventListener('input', () => this.#typed())
    this.#box.addEventListener('change', () => this.show(this.#box.value))
    this.#box.addEventListener('keydown', ({ key }) => {
      if (key === 'Enter') this.show(this.#box.value)
    })
  }

  /**
   * Shows the boards of a player.
   * @param {string} name
   */
  show(name) {
    this.#box.value = name
    if (name === this.#name) return
    this.#name = name
    void this.refresh().catch(() => undefined)
  }

  /** Requests the answer again. Throws `Away`. */
  async refresh() {
    if (this.#name.trim() === '') return this.#part.clear(HELP)
    await this.#part.show(`api/player/${encodeURIComponent(this.#name)}?limit=${BOARDS_SHOWN}`)
  }

  #typed() {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#suggest(this.#box.value), PAUSE_MS)
  }

  /**
   * Suggests names. Without an answer the box works without suggestions.
   * @param {string} beginning
   */
  async #suggest(beginning) {
    if (beginning.trim() === '') return
    const path = `api/datasearch/suggest?limit=${SUGGESTED}&q=${encodeURIComponent(beginning)}`
    /** @type {Promise<import('./ask.js').Reply<{ results: string[] }>>} */
    const reply = ask(path)
    /** @type {string[]} */
    const results = await reply.then(
      ({ body }) => body.results,
      () => []
    )
    if (this.#box.value !== beginning) return
    const options = results.map((name) => {
      const option = node('option', '')
      option.value = name
      return option
    })
    element('player-names').replaceChildren(...options)
    // A name that was chosen from the list or typed completely.
    if (results.includes(beginning)) this.show(beginning)
  }

  /** @param {Player} player */
  #drawPlayer({ playerName, spellings, total, boards }) {
    replaceChildren(
      element('player-boards'),
      boards.map((board) => this.#row(board))
    )
    const shown = total > boards.length ? `; the best ${boards.length} are shown` : ''
    setText(element('player-facts'), `${spellings.join(', ')}: on ${counted(total, 'board')}${shown}`)
    return total === 0 ? `No board has an entry of ${playerName}.` : ''
  }

  /** @param {Player['boards'][number]} board */
  #row({ titleId, gameName, leaderboardName, leaderboardId, rank, entries, rating, timeFormatted, isTime, next }) {
    const board = leaderboardName === '' ? `Board ${leaderboardId}` : leaderboardName
    const open = textButton(board, () => this.#onBoard(titleId, leaderboardId))
    const header = rowHeader(open, node('small', '', isolated(gameName)))
    const cells = [`${count(rank)} of ${count(entries)}`, isTime ? timeFormatted : rating, gapOf(next)].map(numberCell)
    return node('tr', '', header, ...cells)
  }
}

/** @param {Player['boards'][number]['next']} next */
function gapOf(next) {
  if (next === null) return 'leads'
  if (next.gap === null) return '—'
  return next.isTime ? `${(next.gap / 1000).toFixed(3)} s` : count(next.gap)
}
