import { ask } from './ask.js'
import { count, counted } from './format.js'
import { setText } from './history.js'
import { element, isolated, node, numberCell, replaceChildren, rowHeader, textButton } from './nodes.js'
import { Part } from './part.js'

const SUGGESTED = 10
const BOARDS_SHOWN = 100
/** A pause in typing: between two letters of one word there is less. */
const PAUSE_MS = 150
const HELP = 'Type the beginning of a name, or press a name anywhere on this page.'

/** A search box for players, with names as they are typed, and where the player stands. */
export class PlayersSection {
  #name = ''
  #timer
  #box = element('player')
  #onBoard
  #part = new Part({
    message: element('player-message'),
    contents: [element('player-table'), element('player-facts')],
    draw: (player) => this.#drawPlayer(player)
  })

  /** `onBoard(titleId, leaderboardId)`: somebody wants to see this board. */
  constructor({ onBoard }) {
    this.#onBoard = onBoard
    this.#box.addEventListener('input', () => this.#typed())
    this.#box.addEventListener('change', () => this.show(this.#box.value))
    this.#box.addEventListener('keydown', ({ key }) => {
      if (key === 'Enter') this.show(this.#box.value)
    })
  }

  /** Shows where a player stands. */
  show(name) {
    this.#box.value = name
    if (name === this.#name) return
    this.#name = name
    void this.refresh().catch(() => undefined)
  }

  /** Asks again about the player that is shown. Throws when the service is away. */
  async refresh() {
    if (this.#name.trim() === '') return this.#part.clear(HELP)
    await this.#part.show(`api/player/${encodeURIComponent(this.#name)}?limit=${BOARDS_SHOWN}`)
  }

  #typed() {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#suggest(this.#box.value), PAUSE_MS)
  }

  /** Suggestions are a help: when there are none for whatever reason, the box goes on without. */
  async #suggest(beginning) {
    if (beginning.trim() === '') return
    const path = `api/datasearch/suggest?limit=${SUGGESTED}&q=${encodeURIComponent(beginning)}`
    const results = await ask(path).then(
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
    // A name that was picked out of the list, or typed to its end.
    if (results.includes(beginning)) this.show(beginning)
  }

  #drawPlayer({ playerName, spellings, total, boards }) {
    replaceChildren(
      element('player-boards'),
      boards.map((board) => this.#row(board))
    )
    const shown = total > boards.length ? `; the best ${boards.length} are shown` : ''
    setText(element('player-facts'), `${spellings.join(', ')}: on ${counted(total, 'board')}${shown}`)
    return total === 0 ? `Nobody of the name ${playerName} stands on a board.` : ''
  }

  #row({ titleId, gameName, leaderboardName, leaderboardId, rank, entries, rating, timeFormatted, isTime, next }) {
    const board = leaderboardName === '' ? `Board ${leaderboardId}` : leaderboardName
    const open = textButton(board, () => this.#onBoard(titleId, leaderboardId))
    const header = rowHeader(open, node('small', '', isolated(gameName)))
    const cells = [`${count(rank)} of ${count(entries)}`, isTime ? timeFormatted : rating, gapOf(next)].map(numberCell)
    return node('tr', '', header, ...cells)
  }
}

function gapOf(next) {
  if (next === null) return 'leads'
  if (next.gap === null) return '—'
  return next.isTime ? `${(next.gap / 1000).toFixed(3)} s` : count(next.gap)
}
