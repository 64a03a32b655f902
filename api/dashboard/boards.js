import { Away, ask } from './ask.js'
import { count, instant } from './format.js'
import { setText } from './history.js'

const element = (id) => document.getElementById(id)
const names = new Intl.Collator('en', { sensitivity: 'base', numeric: true })
/** Entries that are shown of a board; the API has the rest. */
const ENTRIES_SHOWN = 100
const CHANGES_SHOWN = 12
const KINDS = { new: 'came', updated: 'now', removed: 'left' }

/** A game's boards: which are there, one of them now or as it stood at any instant, and what changed lately. */
export class BoardsSection {
  #games = []
  #gameNames
  #game = ''
  #board = ''
  #boards
  #shown
  #changes
  #asked = 0
  #onPlayer

  /** `onPlayer(name)`: somebody wants to see this player. */
  constructor({ onPlayer }) {
    this.#onPlayer = onPlayer
    element('board-game').addEventListener('change', ({ target }) => this.pick(target.value))
    element('board-id').addEventListener('change', ({ target }) => this.#choose(target.value))
    element('board-as-of').addEventListener('change', () => void this.#again())
    element('board-now').addEventListener('click', () => {
      element('board-as-of').value = ''
      void this.#again()
    })
  }

  /** Offers the games of an answer of /api/online-users. */
  offer(titles) {
    if (titles === this.#gameNames) return
    this.#gameNames = titles
    this.#games = Object.entries(titles)
      .map(([name, { titleId }]) => ({ value: titleId, name }))
      .sort((a, b) => names.compare(a.name, b.name))
    fill(element('board-game'), this.#games, 'Pick a game', this.#game)
  }

  /** Shows the boards of a game, by its id; "" for none. */
  pick(titleId) {
    if (titleId === this.#game) return
    this.#game = titleId
    this.#boards = undefined
    element('board-game').value = titleId
    this.#choose('')
  }

  /** Asks again; most of the time nothing has changed. Throws when the service is away. */
  async refresh() {
    const asked = ++this.#asked
    try {
      const [boards, board, changes] = await Promise.all([this.#askBoards(), this.#askBoard(), this.#askChanges()])
      if (asked !== this.#asked) return
      this.#showBoards(boards)
      this.#showBoard(boards, board)
      this.#showChanges(changes)
    } catch (error) {
      if (asked === this.#asked) this.#fail(error)
      if (error instanceof Away) throw error
    }
  }

  #choose(leaderboardId) {
    this.#board = leaderboardId
    void this.#again()
  }

  /** What a visitor did is answered at once; a service that is away is told of by the next round. */
  async #again() {
    this.#shown = undefined
    await this.refresh().catch(() => undefined)
  }

  get #asOf() {
    const { value } = element('board-as-of')
    // The field has seconds only where they are not 0.
    return value === '' ? '' : `${value.length === 16 ? `${value}:00` : value}Z`
  }

  get #path() {
    return `api/game/${this.#game}/leaderboards/${this.#board}`
  }

  async #askBoards() {
    return this.#game === '' ? undefined : (await ask(`api/game/${this.#game}/leaderboards`)).body
  }

  async #askBoard() {
    if (this.#board === '') return undefined
    const asOf = this.#asOf
    const path = `${this.#path}?limit=${ENTRIES_SHOWN}${asOf === '' ? '' : `&asOf=${encodeURIComponent(asOf)}`}`
    element('board-data').href = path
    return (await ask(path)).body
  }

  async #askChanges() {
    const game = this.#game === '' ? '' : `&game=${this.#game}`
    const board = this.#board === '' ? '' : `&leaderboardId=${this.#board}`
    return (await ask(`api/leaderboard-changes?limit=${CHANGES_SHOWN}${game}${board}`)).body
  }

  #showBoards(boards) {
    if (boards === this.#boards && boards !== undefined) return
    this.#boards = boards
    const options = (boards ?? []).map(({ id, name }) => ({ value: String(id), name: name === '' ? String(id) : name }))
    fill(element('board-id'), options, 'Pick a board', this.#board)
    element('board-id').disabled = options.length === 0
  }

  #showBoard(boards, board) {
    element('board-now').disabled = this.#asOf === ''
    element('board-table').hidden = board === undefined
    element('board-foot').hidden = board === undefined
    if (board === undefined) this.#message(questionTo(this.#game, boards))
    if (board === undefined || board === this.#shown) return
    this.#shown = board
    this.#message(board.total === 0 ? 'Nobody stands on this board.' : '')
    element('board-entries').replaceChildren(...board.entries.map((entry) => this.#entry(entry)))
    const size = board.total > board.entries.length ? `The first ${board.entries.length} of ` : ''
    const asOf = this.#asOf === '' ? 'now' : `as of ${instant(Date.parse(this.#asOf))}`
    const noun = board.total === 1 ? 'entry' : 'entries'
    setText(element('board-facts'), `${size}${count(board.total)} ${noun}, ${asOf}`)
  }

  #entry({ rank, name, rating, timeFormatted, isTime }) {
    const row = document.createElement('tr')
    row.append(cell('td', rank, 'number'), this.#player(name), cell('td', isTime ? timeFormatted : rating, 'number'))
    return row
  }

  #player(name) {
    const header = document.createElement('th')
    header.scope = 'row'
    header.append(this.#playerButton(name))
    return header
  }

  #playerButton(name) {
    const button = document.createElement('button')
    button.type = 'button'
    button.className = 'player'
    // Isolated: a name that runs from right to left must not turn the rest of the line around.
    const text = document.createElement('bdi')
    text.textContent = name
    button.append(text)
    button.addEventListener('click', () => this.#onPlayer(name))
    return button
  }

  #showChanges(changes) {
    if (changes === this.#changes) return
    this.#changes = changes
    element('board-changes').replaceChildren(...changes.map((change) => this.#change(change)))
    element('board-no-changes').hidden = changes.length > 0
  }

  #change({ changeType, playerName, newRating, newRank, leaderboardName, gameName, changedAt }) {
    const item = document.createElement('li')
    const told = newRating === null ? '' : ` ${newRating}${newRank === null ? '' : ` (rank ${count(newRank)})`}`
    const where = [gameName, leaderboardName].filter((part) => part !== '').join(' · ')
    const small = document.createElement('small')
    const place = document.createElement('bdi')
    place.textContent = where
    small.append(place, ` · ${instant(Date.parse(changedAt))}`)
    item.append(this.#playerButton(playerName), ` ${KINDS[changeType]}${told} `, small)
    return item
  }

  #fail(error) {
    if (error instanceof Away && this.#shown !== undefined) return
    this.#shown = undefined
    element('board-table').hidden = true
    element('board-foot').hidden = true
    this.#message(error.message)
  }

  #message(text) {
    element('board-message').hidden = text === ''
    setText(element('board-message'), text)
  }
}

/** A cell of a table with a text in it. */
export function cell(tag, text, className) {
  const made = document.createElement(tag)
  made.className = className
  const isolated = document.createElement('bdi')
  isolated.textContent = text
  made.append(isolated)
  return made
}

function questionTo(game, boards) {
  if (game === '') return 'Pick a game to see its boards.'
  return boards?.length === 0 ? 'This game has no boards.' : 'Pick a board.'
}

/** Puts options into a list, behind one that stands for none; what was chosen stays chosen. */
function fill(select, options, none, chosen) {
  const made = [{ value: '', name: none }, ...options].map(({ value, name }) => {
    const option = document.createElement('option')
    option.value = value
    option.textContent = name
    return option
  })
  select.replaceChildren(...made)
  select.value = chosen
  if (select.value !== chosen) select.value = ''
}
