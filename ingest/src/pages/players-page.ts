import { nameKey, Username, visibleText } from '@gamenet/schemas'
import { placesText } from './page-text.js'
import { childElements, named, type PageElement, shownText } from './page-tree.js'
import { type PageSource, type ParsedPage, parseHtml } from './parsed-page.js'
import { markupFault } from './striped-table.js'
import { unreadablePage } from './unreadable-page.js'

/** A row of the players page. */
export type ShownPlayer = {
  readonly username: string
  /** Undefined if the page shows none, or one that is too long. */
  readonly gamertag: string | undefined
  readonly isOnline: boolean
  /** The user's current game; undefined when offline, or when its name is too long. */
  readonly game: string | undefined
}

/** The players page, as far as it could be read. */
export type PlayersPage = {
  readonly players: readonly ShownPlayer[]
  /**
   * One sentence per row without a sighting and per name that is left out, without names: the log keeps reasons
   * forever.
   */
  readonly unreadable: readonly string[]
}

const NAME = 'the table of players'
const CELLS = 3
const ROWS_MAX = 100_000
/** The limit of the schema of a sighting. */
const NAME_LENGTH_MAX = 200
/**
 * The last ` for ` before a duration ends the game's name, which may contain others: `Need for Speed`. A truncated cell
 * has no duration.
 */
const ONLINE =
  /^Online in (.+) for ((?:less than |about |over |almost )?(?:an?|a few|\d[\d,]*) ?[a-z]+(?:(?! for ).)*|\d+:[\d:]+)$/i
const OFFLINE = /^Last seen .+ ago$/i

/**
 * Parses the page of all users: gamertag, username, state. An unreadable row is not a sighting; neither are the rows of
 * a user who has several. A page without its table, or with broken markup that could mix up users, is refused.
 */
export function parsePlayersPage(html: string): ParsedPage<PlayersPage> {
  return parseHtml(html, (document, source) => {
    const tables = named([document], 'table')
    if (tables.length === 0) return unreadablePage(`${NAME} is missing`)
    const rows: PageElement[][] = []
    for (const table of tables) {
      const fault = addRows(table, source, rows)
      if (fault !== undefined) return unreadablePage(fault)
    }
    const { players, unreadable } = readRows(rows)
    if (rows.length > 0 && players.length === 0)
      return unreadablePage(`no row of ${NAME} can be read; ${unreadable[0] ?? ''}`)
    return { ok: true, page: { players, unreadable } }
  })
}

/** Adds the rows of a table without headings, or returns its fault. */
function addRows(table: PageElement, source: PageSource, rows: PageElement[][]): string | undefined {
  const fault = markupFault(table, source, NAME)
  if (fault !== undefined) return fault
  for (const body of childElements(table, 'tbody')) {
    for (const row of childElements(body, 'tr')) {
      const cells = childElements(row, 'td', 'th')
      const isHeading = cells.length > 0 && cells.every(({ name }) => name === 'th')
      if (!isHeading) rows.push(cells)
    }
  }
  return rows.length > ROWS_MAX ? `${NAME} has ${rows.length} rows, more than ${ROWS_MAX}` : undefined
}

function readRows(rows: readonly (readonly PageElement[])[]): PlayersPage {
  const readable: { player: ShownPlayer; userKey: string }[] = []
  const places = new Map<string, number[]>()
  const unreadable: string[] = []
  for (const [index, cells] of rows.entries()) {
    const place = index + 1
    const username = usernameIn(cells)
    const userKey = username === undefined ? undefined : nameKey(username)
    if (userKey !== undefined) places.set(userKey, [...(places.get(userKey) ?? []), place])
    const player = playerIn(cells, username, (reason) => unreadable.push(`row ${place}: ${reason}`))
    if (typeof player === 'string') unreadable.push(`row ${place}: ${player}`)
    else if (userKey !== undefined) readable.push({ player, userKey })
  }
  for (const at of places.values()) {
    if (at.length > 1) unreadable.push(`one user is on the rows ${placesText(at)}`)
  }
  return {
    players: readable.filter(({ userKey }) => places.get(userKey)?.length === 1).map(({ player }) => player),
    unreadable
  }
}

function playerIn(
  cells: readonly PageElement[],
  username: string | undefined,
  report: (reason: string) => void
): ShownPlayer | string {
  if (cells.length !== CELLS) return `expected ${CELLS} cells, found ${cells.length}`
  const [name = '', , whereabouts = ''] = cells.map(shownText)
  if (username === undefined) return 'expected a username of 1 to 64 visible characters'
  const shown = visibleText(whereabouts)
  const isOnline = !OFFLINE.test(shown)
  const [, game = ''] = isOnline ? (ONLINE.exec(shown) ?? []) : []
  if (isOnline && game === '') return 'expected "Online in GAME for DURATION" or "Last seen … ago" in the third cell'
  const known = (what: string, text: string) => {
    if (text.length <= NAME_LENGTH_MAX) return text === '' ? undefined : text
    report(`expected a ${what} of at most ${NAME_LENGTH_MAX} characters, got ${text.length}; it is left out`)
    return undefined
  }
  return { username, gamertag: known('gamertag', name), isOnline, game: known('game', game) }
}

function usernameIn([, cell]: readonly PageElement[]): string | undefined {
  const parsed = Username.safeParse(cell === undefined ? '' : shownText(cell))
  return parsed.success ? parsed.data : undefined
}
