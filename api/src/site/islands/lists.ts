import type { Leaderboard, OnlineUsers } from '@gamenet/schemas'
import { countText } from './local.js'
import { buttonOf, keep, kept, linkOf, read } from './service.js'

/** A watched page: a game, a board or a player, with what was last seen of it. */
type Watched = { href: string; name: string; seen?: string }
type Chosen = { id: string; name: string }
type Tray = Record<'games' | 'players', Chosen[]>

const POLL_MS = 60_000
const TRAY_MAX = 8
const WATCHED_MAX = 50
/** A minute has four requests: the counts of all games, and three boards. */
const BOARDS_MAX = 3
const PLAYERS_STEP = 1000

/** The watch list and the tray of comparisons, in the browser alone. */
export function keepLists(): void {
  showAll()
  const section = document.getElementById('watched')
  if (section !== null) void showWatched(section)
  document.addEventListener('visibilitychange', pollHidden)
  // Rows have come into the page.
  addEventListener('shown', showAll)
  // Another tab changed a list.
  addEventListener('storage', showAll)
}

function showAll(): void {
  showStars()
  showTray()
}

const watched = (): Watched[] => kept<Watched[]>('watched', [])

/** Shows a button that puts something into a list and takes it out. */
function showSwitch(button: HTMLButtonElement, isOn: boolean, text: string, turn: () => void): void {
  button.textContent = text
  button.setAttribute('aria-pressed', String(isOn))
  button.onclick = () => {
    turn()
    showAll()
  }
}

function showStars(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>('[data-watch]')) {
    const { watch = '', name = '' } = button.dataset
    const others = watched().filter(({ href }) => href !== watch)
    const isOn = others.length < watched().length
    showSwitch(button, isOn, isOn ? '★ Watching' : '☆ Watch', () =>
      keep('watched', isOn ? others : [...others, { href: watch, name }].slice(-WATCHED_MAX))
    )
  }
}

/** The watch list at the head of the home page. */
async function showWatched(section: HTMLElement): Promise<void> {
  const list = watched()
  if (list.length === 0) return
  section.hidden = false
  const counts = await readCounts(list)
  const items = list.map(({ href, name }) => {
    const item = document.createElement('li')
    const online = counts.get(titleOf(href))
    item.append(linkOf(href, name), online === undefined ? '' : ` ${countText(online)}`)
    return item
  })
  section.querySelector('ul')?.replaceChildren(...items)
  const button = section.querySelector('button')
  if (button === null || typeof Notification === 'undefined' || Notification.permission !== 'default') return
  button.hidden = false
  button.onclick = async () => {
    await Notification.requestPermission()
    button.hidden = true
  }
}

const titleOf = (href: string): string | undefined => /^\/games\/([0-9a-f]{8})\/[^/]+$/.exec(href)?.[1]

function boardOf(href: string): string | undefined {
  const [, titleId, board] = /^\/games\/([0-9a-f]{8})\/[^/]+\/boards\/(\d+)$/.exec(href) ?? []
  return titleId === undefined ? undefined : `/api/game/${titleId}/leaderboards/${board}?limit=1`
}

/** Returns the players of all games by title, if the list has a game. */
async function readCounts(list: readonly Watched[]): Promise<Map<string | undefined, number>> {
  const hasGame = list.some(({ href }) => titleOf(href) !== undefined)
  const games = hasGame ? await read<OnlineUsers>('/api/online-users') : undefined
  return new Map(Object.values(games ?? {}).map(({ titleId, online }) => [titleId, online]))
}

let timer: ReturnType<typeof setInterval> | undefined

/** While the page is hidden, and the reader allows notices, the list is asked once a minute. */
function pollHidden(): void {
  clearInterval(timer)
  const isAllowed = typeof Notification !== 'undefined' && Notification.permission === 'granted'
  if (document.hidden && isAllowed && watched().length > 0) timer = setInterval(() => void notice(), POLL_MS)
}

async function notice(): Promise<void> {
  const list = watched()
  const counts = await readCounts(list)
  const boards = list.filter(({ href }) => boardOf(href) !== undefined).slice(0, BOARDS_MAX)
  const now = await Promise.all(
    list.map(async (each): Promise<Watched> => {
      const online = counts.get(titleOf(each.href))
      if (online !== undefined) {
        const seen = String(Math.floor(online / PLAYERS_STEP))
        if (Number(seen) > Number(each.seen ?? seen)) notify(each, `${each.name} has ${countText(online)} players`)
        return { ...each, seen }
      }
      const seen = boards.includes(each) ? await recordOf(each.href) : undefined
      if (seen === undefined) return each
      if (seen !== (each.seen ?? seen)) notify(each, `The record on ${each.name} fell: ${seen}`)
      return { ...each, seen }
    })
  )
  keep('watched', now)
}

function notify({ href }: Watched, body: string): void {
  new Notification('Gamenet Stats', { body, icon: '/icon.svg', tag: href })
}

async function recordOf(href: string): Promise<string | undefined> {
  const [first] = (await read<Leaderboard>(boardOf(href) ?? ''))?.entries ?? []
  return first === undefined ? undefined : `${first.timeFormatted || first.rating}, ${first.name}`
}

function showTray(): void {
  const tray = kept<Tray>('tray', { games: [], players: [] })
  for (const button of document.querySelectorAll<HTMLButtonElement>('[data-tray]')) {
    const { tray: given, id = '', name = '' } = button.dataset
    const kind = given === 'players' ? 'players' : 'games'
    const others = tray[kind].filter((each) => each.id !== id)
    const isOn = others.length < tray[kind].length
    showSwitch(button, isOn, isOn ? '✓ In comparison' : '+ Compare', () =>
      keep('tray', { ...tray, [kind]: isOn ? others : [...others, { id, name }].slice(-TRAY_MAX) })
    )
  }
  document.getElementById('tray')?.remove()
  const links = [...linkTo('/compare?games=', tray.games), ...linkTo('/compare/players?names=', tray.players)]
  if (links.length === 0 || document.body.classList.contains('embed')) return
  const bar = document.createElement('aside')
  bar.id = 'tray'
  bar.className = 'card row'
  bar.setAttribute('aria-label', 'Comparison')
  const clear = buttonOf('Clear', () => {
    keep('tray', { games: [], players: [] })
    showTray()
  })
  bar.append(...links, clear)
  document.body.append(bar)
}

function linkTo(path: string, chosen: readonly Chosen[]): HTMLAnchorElement[] {
  const ids = chosen.map(({ id }) => encodeURIComponent(id)).join(',')
  const names = chosen.map(({ name }) => name).join(', ')
  return chosen.length === 0 ? [] : [linkOf(path + ids, `Compare ${names}`)]
}
