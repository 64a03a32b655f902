/** @import { Leaderboard, LeaderboardChanges, LeaderboardRecords } from '@gamenet/schemas' */
/** @import { Leaderboards, OnlineUsers, RecentRecords } from '@gamenet/schemas' */
import { count, counted, instant, time } from './format.js'
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
import { Part, settleAll } from './part.js'

const names = new Intl.Collator('en', { sensitivity: 'base', numeric: true })
/** Entries to show; the API has the rest. */
const ENTRIES_SHOWN = 200
const LISTED = 12
/** Reigns are listed oldest first; the last of them are shown. */
const REIGNS_MAX = 10_000
const KINDS = { new: 'entered with', updated: 'changed to', removed: 'left with' }

/** @typedef {{ value: string, name: string }} Choice */

/** A game's boards: the list, one board now or as of any instant, its records and its changes. */
export class BoardsSection {
  /** @type {OnlineUsers | undefined} */
  #games
  #game = ''
  #board = ''
  #onPlayer
  #onGame
  /** @type {Part<Leaderboards>} */
  #list = new Part({
    message: element('boards-message'),
    contents: [element('board-list')],
    draw: (boards) => this.#drawList(boards)
  })
  /** @type {Part<Leaderboard>} */
  #entries = new Part({
    message: element('board-message'),
    contents: [element('board-table'), element('board-foot')],
    draw: (board) => this.#drawBoard(board)
  })
  /** @type {Part<LeaderboardRecords | RecentRecords>} */
  #records = new Part({
    message: element('board-no-records'),
    contents: [element('board-records')],
    draw: (records) => this.#drawRecords(records)
  })
  /** @type {Part<LeaderboardChanges>} */
  #changes = new Part({
    message: element('board-no-changes'),
    contents: [element('board-changes')],
    draw: (changes) => this.#drawChanges(changes)
  })

  #gameSelect = elementOf('board-game', HTMLSelectElement)
  #boardSelect = elementOf('board-id', HTMLSelectElement)
  #asOfField = elementOf('board-as-of', HTMLInputElement)

  /**
   * @param {{ onPlayer: (name: string) => void, onGame: (titleId: string) => void }} callbacks for a pressed name and a
   * chosen game ("" for none)
   */
  constructor({ onPlayer, onGame }) {
    this.#onPlayer = onPlayer
    this.#onGame = onGame
    this.#gameSelect.addEventListener('change', () => this.pick(this.#gameSelect.value))
    this.#boardSelect.addEventListener('change', () => this.open(this.#game, this.#boardSelect.value))
    this.#asOfField.addEventListener('change', () => this.#again())
    element('board-now').addEventListener('click', () => this.#lookAt(''))
  }

  get game() {
    return this.#game
  }

  /**
   * Offers the games of an answer of /api/online-users.
   * @param {OnlineUsers} titles
   */
  offer(titles) {
    if (titles === this.#games) return
    this.#games = titles
    const games = Object.entries(titles).map(([name, { titleId }]) => ({ value: titleId, name }))
    games.sort((a, b) => names.compare(a.name, b.name))
    fill(this.#gameSelect, games, 'Pick a game', this.#game)
  }

  /**
   * Shows the boards of a game.
   * @param {string} titleId "" for none
   */
  pick(titleId) {
    if (titleId !== this.#game) this.open(titleId, '')
  }

  /**
   * Shows a board, now or as of an ISO instant.
   * @param {string} titleId
   * @param {number | string} leaderboardId "" for the list of the game's boards
   */
  open(titleId, leaderboardId, asOf = '') {
    const isOther = titleId !== this.#game
    this.#game = titleId
    this.#board = String(leaderboardId)
    this.#gameSelect.value = titleId
    if (isOther) fill(this.#boardSelect, [], 'Pick a board', '')
    this.#boardSelect.value = this.#board
    if (isOther) this.#onGame(titleId)
    this.#lookAt(asOf)
  }

  /** Requests the answers again. Throws `Away`. */
  async refresh() {
    elementOf('board-now', HTMLButtonElement).disabled = this.#asOf === ''
    this.#asOfField.disabled = this.#board === ''
    element('board-columns').dataset.view = this.#game === '' ? 'network' : this.#board === '' ? 'game' : 'board'
    setText(element('records-heading'), this.#board === '' ? 'Newest records' : 'The record over time')
    await settleAll([this.#showList(), this.#showBoard(), this.#showRecords(), this.#showChanges()])
  }

  /** @param {string} asOf */
  #lookAt(asOf) {
    this.#asOfField.value = asOf.replace(/(?:\.000)?Z$/, '')
    this.#again()
  }

  /** Answers an action of the visitor at once. The next poll reports an unavailable service. */
  #again() {
    void this.refresh().catch(() => undefined)
  }

  get #asOf() {
    const { value } = this.#asOfField
    // The field has seconds only where they are not 0.
    return value === '' ? '' : `${value.length === 16 ? `${value}:00` : value}Z`
  }

  get #path() {
    return `api/game/${this.#game}/leaderboards/${this.#board}`
  }

  /** The list is requested for a single board too, because it fills the field that selects another board. */
  async #showList() {
    if (this.#game === '') this.#list.clear('Pick a game to see its boards.')
    else await this.#list.show(`api/game/${this.#game}/leaderboards`)
  }

  async #showBoard() {
    if (this.#board === '') return this.#entries.clear('')
    const asOf = this.#asOf === '' ? '' : `&asOf=${encodeURIComponent(this.#asOf)}`
    const path = `${this.#path}?limit=${ENTRIES_SHOWN}${asOf}`
    elementOf('board-data', HTMLAnchorElement).href = path
    await this.#entries.show(path)
  }

  #showRecords() {
    const game = this.#game === '' ? '' : `&game=${this.#game}`
    const path =
      this.#board === '' ? `api/records/recent?limit=${LISTED}${game}` : `${this.#path}/records?limit=${REIGNS_MAX}`
    return this.#records.show(path)
  }

  #showChanges() {
    const game = this.#game === '' ? '' : `&game=${this.#game}`
    const board = this.#board === '' ? '' : `&leaderboardId=${this.#board}`
    return this.#changes.show(`api/leaderboard-changes?limit=${LISTED}${game}${board}`)
  }

  /** @param {Leaderboards} boards */
  #drawList(boards) {
    const options = boards.map(({ id, name }) => ({ value: String(id), name: nameOf(id, name) }))
    fill(this.#boardSelect, options, 'Pick a board', this.#board)
    this.#boardSelect.disabled = options.length === 0
    const items = options.map(({ value, name }) =>
      node(
        'li',
        '',
        textButton(name, () => this.#choose(value))
      )
    )
    replaceChildren(element('board-list'), items)
    return options.length === 0 ? 'This game has no boards.' : ''
  }

  /**
   * Opens a board of the list, which the board replaces, and moves the focus.
   * @param {string} leaderboardId
   */
  #choose(leaderboardId) {
    this.open(this.#game, leaderboardId)
    this.#boardSelect.focus()
  }

  /** @param {Leaderboard} board */
  #drawBoard(board) {
    const rows = board.entries.map(({ rank, name, rating, timeFormatted, isTime }) =>
      node('tr', '', numberCell(rank), rowHeader(this.#player(name)), numberCell(isTime ? timeFormatted : rating))
    )
    replaceChildren(element('board-entries'), rows)
    const size = board.total > board.entries.length ? `The first ${count(board.entries.length)} of ` : ''
    const asOf = board.asOf === undefined ? 'now' : `as of ${instant(Date.parse(board.asOf))}`
    const entries = counted(board.total, 'entry', 'entries')
    const listed = board.listed ? '' : '; the game does not list this board any more'
    setText(element('board-facts'), `${size}${entries}, ${asOf}${listed}`)
    if (board.total > 0) return ''
    return board.asOf === undefined
      ? 'No entry of this board is known.'
      : 'No entry of this board is known at that time.'
  }

  /** @param {string} name */
  #player(name) {
    return textButton(name, () => this.#onPlayer(name))
  }

  /**
   * The board and instant of an event: pressing the name opens the board, pressing the instant the board as of then.
   * @param {{ titleId: string, gameName: string, leaderboardId: number, leaderboardName: string }} board
   * @param {string} at
   */
  #place({ titleId, gameName, leaderboardId, leaderboardName }, at) {
    /** @param {string} asOf */
    const open = (asOf) => () => this.open(titleId, leaderboardId, asOf)
    const instantButton = textButton(instant(Date.parse(at)), open(at), 'Show the board as it stood then')
    if (this.#board !== '') return node('small', '', instantButton)
    const name = `${gameName} · ${nameOf(leaderboardId, leaderboardName)}`
    return node('small', '', textButton(name, open('')), ' · ', instantButton)
  }

  /**
   * Draws the records of a board, or the newest records of all boards.
   * @param {LeaderboardRecords | RecentRecords} answer
   */
  #drawRecords(answer) {
    const items = Array.isArray(answer)
      ? answer.map((record) => this.#record(record, this.#place(record, record.setAt)))
      : answer.records
          .slice(-LISTED)
          .reverse()
          .map((record) => this.#record(record, this.#reign(answer, record)))
    replaceChildren(element('board-records'), items)
    return items.length === 0 ? 'No record is known.' : ''
  }

  /**
   * @param {{ playerName: string, rating: string, timeFormatted: string, isTime: boolean }} record
   * @param {HTMLElement} place
   */
  #record({ playerName, rating, timeFormatted, isTime }, place) {
    const measure = node('strong', 'measure', isolated(isTime ? timeFormatted : rating))
    return node('li', '', measure, ' ', this.#player(playerName), place)
  }

  /**
   * @param {LeaderboardRecords} board
   * @param {LeaderboardRecords['records'][number]} record
   */
  #reign({ titleId, leaderboardId }, { fromAt, toAt, setAt }) {
    /** @param {string} asOf */
    const open = (asOf) => () => this.open(titleId, leaderboardId, asOf)
    /** @param {string} time */
    const at = (time) => textButton(instant(Date.parse(time)), open(time), 'Show the board as it stood then')
    const until = toAt === null ? [' until now'] : [' until ', at(toAt)]
    const back = fromAt === setAt ? [] : [' (again; set ', at(setAt), ')']
    return node('small', '', 'from ', at(fromAt), ...until, ...back)
  }

  /** @param {LeaderboardChanges} changes */
  #drawChanges(changes) {
    replaceChildren(
      element('board-changes'),
      changes.map((change) => this.#change(change))
    )
    return changes.length === 0 ? 'No change is known.' : ''
  }

  /** @param {LeaderboardChanges[number]} change */
  #change(change) {
    const { changeType, playerName, newRating, previousRating, newRank } = change
    const rating = [newRating, previousRating].find((each) => each !== null) ?? ''
    const rank = newRank === null ? '' : ` (rank ${count(newRank)})`
    const parts = [this.#player(playerName), ` ${KINDS[changeType]} `, isolated(measureOf(change, rating)), rank]
    return node('li', '', ...parts, ' ', this.#place(change, change.changedAt))
  }
}

/**
 * The text of a change's time or score.
 * @param {LeaderboardChanges[number]} change
 * @param {string} rating
 */
function measureOf({ isTime, newTimeMs, previousTimeMs }, rating) {
  const ms = newTimeMs ?? previousTimeMs
  return isTime && ms !== null ? time(ms) : rating
}

/**
 * @param {number} leaderboardId
 * @param {string} name
 */
function nameOf(leaderboardId, name) {
  return name === '' ? `Board ${leaderboardId}` : name
}

/**
 * Fills a list with options after one for none, and preserves the choice.
 * @param {HTMLSelectElement} select
 * @param {readonly Choice[]} options
 * @param {string} none
 * @param {string} chosen
 */
function fill(select, options, none, chosen) {
  const made = [{ value: '', name: none }, ...options].map(({ value, name }) => {
    const option = node('option', '', name)
    option.value = value
    return option
  })
  select.replaceChildren(...made)
  select.value = chosen
  if (select.value !== chosen) select.value = ''
}
