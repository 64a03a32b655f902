/** @import { OnlineUsers } from '@gamenet/schemas' */
import { count } from './format.js'
import { markCurrent } from './history.js'
import { element, elementOf, setText } from './nodes.js'
import { hashOf } from './view.js'

const names = new Intl.Collator('en', { sensitivity: 'base', numeric: true })

/**
 * @typedef {{ titleId: string, name: string, online: number, lobbies: number, image: string, publisher: string }} Title
 */
/** @typedef {'name' | 'online' | 'lobbies'} Column */

/**
 * The order of rows by column; the first click on a column sorts so.
 * @type {Record<Column, (a: Title, b: Title) => number>}
 */
const ORDERS = {
  name: (a, b) => names.compare(a.name, b.name),
  online: (a, b) => b.online - a.online,
  lobbies: (a, b) => b.lobbies - a.lobbies
}
/**
 * The direction of each order when it is not reversed, for `aria-sort`.
 * @type {Record<Column, 'ascending' | 'descending'>}
 */
const DIRECTIONS = { name: 'ascending', online: 'descending', lobbies: 'descending' }

/** The games of the newest scrape. Row elements are reused, which preserves focus and pictures. */
export class TitlesTable {
  /** @type {Map<string, HTMLTableRowElement>} */
  #rows = new Map()
  /** @type {Title[]} */
  #titles = []
  /** @type {OnlineUsers | undefined} */
  #body
  /** @type {{ by: Column, isReversed: boolean }} */
  #sort = { by: 'online', isReversed: false }
  #table = elementOf('titles', HTMLTableSectionElement)
  #filter = elementOf('filter', HTMLInputElement)
  #currentId

  /** @param {{ currentId: () => string | undefined }} needs the game whose history is shown */
  constructor({ currentId }) {
    this.#currentId = currentId
    this.#filter.addEventListener('input', () => this.#arrange())
    for (const button of document.querySelectorAll('button')) {
      const by = button.dataset.sort
      if (by === 'name' || by === 'online' || by === 'lobbies') {
        button.addEventListener('click', () => this.#sortBy(by, button))
      }
    }
  }

  /**
   * Shows an answer of /api/online-users.
   * @param {OnlineUsers} body
   */
  show(body) {
    if (body === this.#body) return
    this.#body = body
    this.#titles = Object.entries(body).map(([name, { titleId, online, activeLobbies, image, publisher }]) => ({
      titleId,
      name,
      online,
      lobbies: activeLobbies,
      image,
      publisher
    }))
    const present = new Set(this.#titles.map(({ titleId }) => titleId))
    for (const titleId of this.#rows.keys()) if (!present.has(titleId)) this.#rows.delete(titleId)
    this.#arrange()
  }

  /** @param {string} titleId */
  nameOf(titleId) {
    return this.#titles.find((title) => title.titleId === titleId)?.name
  }

  get playedCount() {
    return this.#titles.filter(({ online }) => online > 0).length
  }

  /**
   * @param {Column} by
   * @param {HTMLButtonElement} button
   */
  #sortBy(by, button) {
    this.#sort = { by, isReversed: by === this.#sort.by && !this.#sort.isReversed }
    for (const header of document.querySelectorAll('th[aria-sort]')) header.removeAttribute('aria-sort')
    const opposite = DIRECTIONS[by] === 'ascending' ? 'descending' : 'ascending'
    button.closest('th')?.setAttribute('aria-sort', this.#sort.isReversed ? opposite : DIRECTIONS[by])
    this.#arrange()
  }

  #arrange() {
    const { by, isReversed } = this.#sort
    const wanted = this.#filter.value.trim().toLowerCase()
    const shown = this.#titles
      .filter(({ name, titleId }) => name.toLowerCase().includes(wanted) || titleId === wanted)
      .sort((a, b) => (isReversed ? -1 : 1) * ORDERS[by](a, b) || names.compare(a.name, b.name))
    const rows = shown.map((title) => this.#rowOf(title))
    // Moving a row takes the focus from it, so the table is left alone when the order is the same.
    const isSame =
      rows.length === this.#table.rows.length && rows.every((row, index) => row === this.#table.rows[index])
    if (!isSame) this.#place(rows)
    const total = this.#titles.length
    setText(
      element('titles-count'),
      shown.length === total ? `${count(total)}` : `${count(shown.length)} of ${count(total)}`
    )
  }

  /** @param {readonly HTMLTableRowElement[]} rows */
  #place(rows) {
    const focused = document.activeElement
    this.#table.replaceChildren(...rows)
    if (focused instanceof HTMLElement && this.#table.contains(focused)) focused.focus({ preventScroll: true })
  }

  /** @param {Title} title */
  #rowOf(title) {
    let row = this.#rows.get(title.titleId)
    if (row === undefined) {
      row = document.createElement('tr')
      row.append(headerOf(title, this.#currentId()), numberCell(), numberCell())
      this.#rows.set(title.titleId, row)
    }
    const [picture, name, publisher] = row.querySelectorAll('span')
    const [online, lobbies] = row.querySelectorAll('td')
    setPicture(picture, title)
    setText(name, title.name)
    setText(publisher, title.publisher)
    setText(online, count(title.online))
    setText(lobbies, count(title.lobbies))
    row.classList.toggle('quiet', title.online === 0)
    return row
  }
}

/**
 * @param {Title} title
 * @param {string | undefined} currentId
 */
function headerOf({ titleId }, currentId) {
  const header = document.createElement('th')
  header.scope = 'row'
  const link = document.createElement('a')
  link.href = hashOf({ titleId, range: '48h' })
  link.className = 'title'
  link.dataset.titleId = titleId
  markCurrent(link, currentId)
  for (const name of ['picture', 'name', 'publisher']) {
    const part = document.createElement('span')
    part.className = name
    link.append(part)
  }
  header.append(link)
  return header
}

function numberCell() {
  const cell = document.createElement('td')
  cell.className = 'number'
  return cell
}

/**
 * Shows the picture of a game, or its first letter when it has none.
 * @param {HTMLElement | undefined} place
 * @param {Title} title
 */
function setPicture(place, { image, name }) {
  if (place === undefined) return
  if (place.dataset.image === image && place.firstChild !== null) return
  place.dataset.image = image
  place.setAttribute('aria-hidden', 'true')
  const letter = (/[\p{L}\p{N}]/u.exec(name)?.[0] ?? '·').toUpperCase()
  if (!/^https?:\/\//i.test(image)) {
    place.textContent = letter
    return
  }
  const picture = document.createElement('img')
  picture.alt = ''
  picture.loading = 'lazy'
  picture.decoding = 'async'
  picture.referrerPolicy = 'no-referrer'
  picture.addEventListener('error', () => {
    place.textContent = letter
  })
  picture.src = image
  place.replaceChildren(picture)
}
