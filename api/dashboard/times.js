/** @import { TimeMatches } from '@gamenet/schemas' */
import { counted } from './format.js'
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

const FOUND_MAX = 100
const HELP = 'A time as boards show it, such as 1:02.345, and how far a time may lie from it.'

/** The search for entries by time, on all boards. */
export class TimesSection {
  #onBoard
  #onPlayer
  /** @type {Part<TimeMatches>} */
  #part = new Part({
    message: element('time-message'),
    contents: [element('time-table'), element('time-facts')],
    draw: (found) => this.#drawFound(found)
  })

  /**
   * @param {{ onPlayer: (name: string) => void, onBoard: (titleId: string, leaderboardId: number) => void }} callbacks
   * for pressed names
   */
  constructor({ onPlayer, onBoard }) {
    this.#onPlayer = onPlayer
    this.#onBoard = onBoard
    for (const id of ['time', 'time-tolerance']) {
      element(id).addEventListener('change', () => void this.refresh().catch(() => undefined))
    }
    element('time-find').addEventListener('click', () => void this.refresh().catch(() => undefined))
  }

  /** Requests the answer again. Throws `Away`. */
  async refresh() {
    const time = elementOf('time', HTMLInputElement).value.trim()
    if (time === '') return this.#part.clear(HELP)
    const tolerance = elementOf('time-tolerance', HTMLInputElement).value
    const query = new URLSearchParams({ limit: String(FOUND_MAX), time, tolerance })
    await this.#part.show(`api/datasearch/time?${query}`)
  }

  /** @param {TimeMatches} answer */
  #drawFound({ results, count, searchTime, tolerance }) {
    replaceChildren(
      element('time-found'),
      results.map((entry) => this.#row(entry))
    )
    const near = tolerance === 0 ? '' : `, give or take ${tolerance} ms`
    setText(
      element('time-facts'),
      `${count === FOUND_MAX ? 'The nearest ' : ''}${counted(count, 'entry', 'entries')} at ${searchTime}${near}`
    )
    return count === 0 ? `No entry is known at ${searchTime}${near}.` : ''
  }

  /** @param {TimeMatches['results'][number]} entry */
  #row({ player_name, time_formatted, rank, game_name, leaderboard_name, leaderboard_id, title_id }) {
    const board = leaderboard_name === '' ? `Board ${leaderboard_id}` : leaderboard_name
    const open = textButton(board, () => this.#onBoard(title_id, leaderboard_id))
    const header = rowHeader(textButton(player_name, () => this.#onPlayer(player_name)))
    header.append(node('small', '', isolated(game_name), ' · ', open))
    return node('tr', '', header, numberCell(`rank ${rank}`), numberCell(time_formatted))
  }
}
