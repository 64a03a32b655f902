import { count, counted, instant, time } from './format.js'
import { setText } from './history.js'
import { element, isolated, node, numberCell, replaceChildren, rowHeader, textButton } from './nodes.js'
import { Part, showAll } from './part.js'

const names = new Intl.Collator('en', { sensitivity: 'base', numeric: true })
/** What is shown; the API has the rest. */
const ENTRIES_SHOWN = 200
const LISTED = 12
/** Reigns come oldest first; the last of them are shown. */
const REIGNS_MAX = 10_000
const KINDS = { new: 'came', updated: 'now', removed: 'left' }

/** A game's boards: which there are, one of them now or as it stood at any instant, its record and its changes. */
export class BoardsSection {
  #games
  #game = ''
  #board = ''
  #onPlayer
  #onGame
  #list = new Part({
    message: element('boards-message'),
    contents: [element('board-list')],
    draw: (boards) => this.#drawList(boards)
  })
  #entries = new Part({
    message: element('board-message'),
    contents: [element('board-table'), element('board-foot')],
    draw: (board) => this.#drawBoard(board)
  })
  #records = new Part({
    message: element('board-no-records'),
    contents: [element('board-records')],
    draw: (records) => this.#drawRecords(records)
  })
  #changes = new Part({
    message: element('board-no-changes'),
    contents: [element('board-changes')],
    draw: (changes) => this.#drawChanges(changes)
  })

  /** `onPlayer(name)`: somebody wants to see this player; `onGame(titleId)`: another game was picked, "" for none. */
  constructor({ onPlayer, onGame }) {
    this.#onPlayer = onPlayer
    this.#onGame = onGame
    element('board-game').addEventListener('change', ({ target }) => this.pick(target.value))
    element('board-id').addEventListener('change', ({ target }) => this.open(this.#game, target.value))
    element('board-as-of').addEventListener('change', () => this.#again())
    element('board-now').addEventListener('click', () => this.#lookAt(''))
  }

  get game() {
    return this.#game
  }

  /** Offers the games of an answer of /api/online-users. */
  offer(titles) {
    if (titles === this.#games) return
    this.#games = titles
    const games = Object.entries(titles).map(([name, { titleId }]) => ({ value: titleId, name }))
    games.sort((a, b) => names.compare(a.name, b.name))
    fill(element('board-game'), games, 'Pick a game', this.#game)
  }

  /** Shows the boards of a game, by its id; "" for none. */
  pick(titleId) {
    if (titleId !== this.#game) this.open(titleId, '')
  }

  /** Shows a board, now or as of an ISO instant; "" for the list of the game's boards. */
  open(titleId, leaderboardId, asOf = '') {
    const isOther = titleId !== this.#game
    this.#game = titleId
    this.#board = String(leaderboardId)
    element('board-game').value = titleId
    if (isOther) fill(element('board-id'), [], 'Pick a board', '')
    element('board-id').value = this.#board
    if (isOther) this.#onGame(titleId)
    this.#lookAt(asOf)
  }

  /** Asks again; most of the time nothing has changed. Throws when the service is away. */
  async refresh() {
    element('board-now').disabled = this.#asOf === ''
    element('board-as-of').disabled = this.#board === ''
    element('board-columns').dataset.view = this.#game === '' ? 'network' : this.#board === '' ? 'game' : 'board'
    setText(element('records-heading'), this.#board === '' ? 'Newest records' : 'The record over time')
    await showAll([this.#showList(), this.#showBoard(), this.#showRecords(), this.#showChanges()])
  }

  #lookAt(asOf) {
    element('board-as-of').value = asOf.replace(/(?:\.000)?Z$/, '')
    this.#again()
  }

  /** What a visitor did is answered at once; a service that is away is told of by the next round. */
  #again() {
    void this.refresh().catch(() => undefined)
  }

  get #asOf() {
    const { value } = element('board-as-of')
    // The field has seconds only where they are not 0.
    return value === '' ? '' : `${value.length === 16 ? `${value}:00` : value}Z`
  }

  get #path() {
    return `api/game/${this.#game}/leaderboards/${this.#board}`
  }

  /** The list is asked for beside a board too: it fills the field in which another board is picked. */
  async #showList() {
    if (this.#game === '') this.#list.clear('Pick a game to see its boards.')
    else await this.#list.show(`api/game/${this.#game}/leaderboards`)
  }

  async #showBoard() {
    if (this.#board === '') return this.#entries.clear('')
    const asOf = this.#asOf === '' ? '' : `&asOf=${encodeURIComponent(this.#asOf)}`
    const path = `${this.#path}?limit=${ENTRIES_SHOWN}${asOf}`
    element('board-data').href = path
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

  #drawList(boards) {
    const options = boards.map(({ id, name }) => ({ value: String(id), name: nameOf(id, name) }))
    fill(element('board-id'), options, 'Pick a board', this.#board)
    element('board-id').disabled = options.length === 0
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

  /** The list goes where the board comes: the keyboard goes along. */
  #choose(leaderboardId) {
    this.open(this.#game, leaderboardId)
    element('board-id').focus()
  }

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
    return board.asOf === undefined ? 'Nobody is known on this board.' : 'Nobody is known on this board at that time.'
  }

  #player(name) {
    return textButton(name, () => this.#onPlayer(name))
  }

  /** A place where something happened: pressing its name opens the board, pressing the instant the board of then. */
  #place({ titleId, gameName, leaderboardId, leaderboardName }, at) {
    const open = (asOf) => () => this.open(titleId, leaderboardId, asOf)
    const told = textButton(instant(Date.parse(at)), open(at), 'Show the board as it stood then')
    if (this.#board !== '') return node('small', '', told)
    const name = `${gameName} · ${nameOf(leaderboardId, leaderboardName)}`
    return node('small', '', textButton(name, open('')), ' · ', told)
  }

  /** Records of a board, or those newly set anywhere. */
  #drawRecords(answer) {
    const isOfBoard = !Array.isArray(answer)
    const records = isOfBoard ? answer.records.slice(-LISTED).reverse() : answer
    const items = records.map((record) => {
      const { playerName, rating, timeFormatted, isTime } = record
      const measure = node('strong', 'measure', isolated(isTime ? timeFormatted : rating))
      const place = isOfBoard
        ? this.#reign({ ...record, titleId: answer.titleId, leaderboardId: answer.leaderboardId })
        : this.#place(record, record.setAt)
      return node('li', '', measure, ' ', this.#player(playerName), place)
    })
    replaceChildren(element('board-records'), items)
    return items.length === 0 ? 'No record is known.' : ''
  }

  #reign({ titleId, leaderboardId, fromAt, toAt, setAt }) {
    const open = (asOf) => () => this.open(titleId, leaderboardId, asOf)
    const at = (time) => textButton(instant(Date.parse(time)), open(time), 'Show the board as it stood then')
    const until = toAt === null ? [' until now'] : [' until ', at(toAt)]
    const back = fromAt === setAt ? [] : [' (again; set ', at(setAt), ')']
    return node('small', '', 'from ', at(fromAt), ...until, ...back)
  }

  #drawChanges(changes) {
    replaceChildren(
      element('board-changes'),
      changes.map((change) => this.#change(change))
    )
    return changes.length === 0 ? 'No change has been seen.' : ''
  }

  #change(change) {
    const { changeType, playerName, newRating, previousRating, newRank } = change
    const told = [newRating, previousRating].find((rating) => rating !== null) ?? ''
    const rank = newRank === null ? '' : ` (rank ${count(newRank)})`
    const parts = [this.#player(playerName), ` ${KINDS[changeType]} `, isolated(measureOf(change, told)), rank]
    return node('li', '', ...parts, ' ', this.#place(change, change.changedAt))
  }
}

/** The text of a change's time or score; times as every other place shows them. */
function measureOf({ isTime, newTimeMs, previousTimeMs }, rating) {
  const ms = newTimeMs ?? previousTimeMs
  return isTime && ms !== null ? time(ms) : rating
}

function nameOf(leaderboardId, name) {
  return name === '' ? `Board ${leaderboardId}` : name
}

/** Puts options into a list, behind one that stands for none; what was chosen stays chosen. */
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
