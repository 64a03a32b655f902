import { Away, ask } from './ask.js'
import { cell } from './boards.js'
import { count, counted } from './format.js'
import { setText } from './history.js'

const element = (id) => document.getElementById(id)
const SUGGESTED = 10
const BOARDS_SHOWN = 100
/** A pause in typing: between two letters of one word there is less. */
const PAUSE_MS = 150

/** A search box for players, with names as they are typed, and where the player stands. */
export class PlayersSection {
  #name = ''
  #shown
  #asked = 0
  #timer
  #box = element('player')

  constructor() {
    this.#box.addEventListener('input', () => this.#typed())
    this.#box.addEventListener('change', () => this.show(this.#box.value))
    this.#box.addEventListener('keydown', ({ key }) => {
      if (key === 'Enter') this.show(this.#box.value)
    })
  }

  /** Shows where a player stands. */
  show(name) {
    if (name === this.#name) return
    this.#name = name
    this.#shown = undefined
    this.#box.value = name
    void this.refresh().catch(() => undefined)
  }

  /** Asks again about the player that is shown. Throws when the service is away. */
  async refresh() {
    const asked = ++this.#asked
    const name = this.#name
    try {
      const body = await askPlayer(name)
      if (asked === this.#asked) this.#draw(body)
    } catch (error) {
      if (asked === this.#asked && !(error instanceof Away && this.#shown !== undefined)) this.#fail(error)
      if (error instanceof Away) throw error
    }
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
      const option = document.createElement('option')
      option.value = name
      return option
    })
    element('player-names').replaceChildren(...options)
    // A name that was picked out of the list, or typed to its end.
    if (results.includes(beginning)) this.show(beginning)
  }

  #draw(body) {
    if (body === this.#shown && body !== undefined) return
    this.#shown = body
    const boards = body?.boards ?? []
    element('player-table').hidden = boards.length === 0
    element('player-boards').replaceChildren(...boards.map(boardRow))
    setText(element('player-facts'), body === undefined ? '' : factsOf(body))
  }

  #fail(error) {
    this.#draw(undefined)
    setText(element('player-facts'), error.message)
  }
}

async function askPlayer(name) {
  if (name.trim() === '') return undefined
  return (await ask(`api/player/${encodeURIComponent(name)}?limit=${BOARDS_SHOWN}`)).body
}

function factsOf({ playerName, spellings, total, boards }) {
  if (total === 0) return `Nobody of the name ${playerName} stands on a board.`
  const shown = total > boards.length ? `; the best ${boards.length} are shown` : ''
  return `${spellings.join(', ')}: on ${counted(total, 'board')}${shown}`
}

function boardRow({ gameName, leaderboardName, leaderboardId, rank, entries, rating, timeFormatted, isTime, next }) {
  const row = document.createElement('tr')
  const header = cell('th', gameName, 'board')
  header.scope = 'row'
  const small = document.createElement('small')
  small.textContent = leaderboardName === '' ? `Board ${leaderboardId}` : leaderboardName
  header.append(small)
  const place = cell('td', `${count(rank)} of ${count(entries)}`, 'number')
  row.append(header, place, cell('td', isTime ? timeFormatted : rating, 'number'), cell('td', gapOf(next), 'number'))
  return row
}

function gapOf(next) {
  if (next === null) return 'leads'
  if (next.gap === null) return '—'
  return next.isTime ? `${(next.gap / 1000).toFixed(3)} s` : count(next.gap)
}
