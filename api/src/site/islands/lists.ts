import { countText } from './local.js'

/** A watched page: a game, a board or a player, with what was last seen of it. */
type Watched = { href: string; name: string; seen?: string }
type Tray = Record<'games' | 'players', { id: string; name: string }[]>

const POLL_MS = 60_000
const TRAY_MAX = 8
const WATCHED_MAX = 50
const PLAYERS_STEP = 1000

/** The watch list and the tray of comparisons, in the browser alone. */
export function keepLists(): void {
  showStars()
  showTray()
  const section = document.getElementById('watched')
  if (section !== null) void showWatched(section)
  document.addEventListener('visibilitychange', pollHidden)
  // Another tab changed a list.
  addEventListener('storage', () => {
    showStars()
    showTray()
  })
}

function read<Value>(key: string, otherwise: Value): Value {
  try {
    return JSON.parse(localStorage.getItem(key) ?? 'null') ?? otherwise
  } catch {
    return otherwise
  }
}

function write(key: string, value: unknown): void {
  try {
    localStorage.setItem(key, JSON.stringify(value))
  } catch {
    // Storage is blocked: nothing is kept.
  }
}

const watched = (): Watched[] => read<Watched[]>('watched', [])

function showStars(): void {
  const list = new Set(watched().map(({ href }) => href))
  for (const button of document.querySelectorAll<HTMLButtonElement>('[data-watch]')) {
    const { watch = '', name = '' } = button.dataset
    const isOn = list.has(watch)
    button.hidden = false
    button.textContent = isOn ? '★ Watching' : '☆ Watch'
    button.setAttribute('aria-pressed', String(isOn))
    button.onclick = () => {
      const others = watched().filter(({ href }) => href !== watch)
      write('watched', isOn ? others : [...others, { href: watch, name }].slice(-WATCHED_MAX))
      showStars()
    }
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
    const link = document.createElement('a')
    link.href = href
    link.textContent = name
    item.append(link)
    const online = counts.get(titleOf(href) ?? '')
    if (online !== undefined) item.append(` ${countText(online)}`)
    return item
  })
  section.querySelector('ul')?.replaceChildren(...items)
  const button = section.querySelector('button')
  if (button === null || typeof Notification === 'undefined' || Notification.permission !== 'default') return
  button.hidden = false
  button.addEventListener('click', async () => {
    await Notification.requestPermission()
    button.hidden = true
  })
}

function titleOf(href: string): string | undefined {
  return /^\/games\/([0-9a-f]{8})\/[^/]+$/.exec(href)?.[1]
}

function boardOf(href: string): string | undefined {
  const [, titleId, board] = /^\/games\/([0-9a-f]{8})\/[^/]+\/boards\/(\d+)$/.exec(href) ?? []
  return titleId === undefined ? undefined : `/api/game/${titleId}/leaderboards/${board}?limit=1`
}

async function readCounts(list: readonly Watched[]): Promise<Map<string, number>> {
  if (!list.some(({ href }) => titleOf(href) !== undefined)) return new Map()
  const response = await fetch('/api/online-users').catch(() => undefined)
  if (response?.ok !== true) return new Map()
  const games: { titleId: string; online: number }[] = Object.values(await response.json())
  return new Map(games.map(({ titleId, online }) => [titleId, online]))
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
  let boards = 0
  const now: Watched[] = []
  for (const each of list) {
    const online = counts.get(titleOf(each.href) ?? '')
    const board = boardOf(each.href)
    let seen: string | undefined
    if (online !== undefined) seen = String(Math.floor(online / PLAYERS_STEP))
    else if (board !== undefined && boards < 3) {
      boards += 1
      seen = await recordOf(board)
    }
    if (
      seen !== undefined &&
      each.seen !== undefined &&
      seen !== each.seen &&
      (online === undefined || Number(seen) > Number(each.seen))
    ) {
      const text =
        online === undefined
          ? `The record on ${each.name} fell: ${seen}`
          : `${each.name} has ${countText(online)} players`
      new Notification('Gamenet Stats', { body: text, icon: '/icon.svg', tag: each.href })
    }
    now.push(seen === undefined ? each : { ...each, seen })
  }
  write('watched', now)
}

async function recordOf(address: string): Promise<string | undefined> {
  const response = await fetch(address).catch(() => undefined)
  if (response?.ok !== true) return undefined
  const [first] = (await response.json()).entries
  return first === undefined ? undefined : `${first.timeFormatted || first.rating}, ${first.name}`
}

function showTray(): void {
  const tray = read<Tray>('tray', { games: [], players: [] })
  for (const button of document.querySelectorAll<HTMLButtonElement>('[data-tray]')) {
    const { tray: kind, id = '', name = '' } = button.dataset
    if (kind !== 'games' && kind !== 'players') continue
    const isIn = tray[kind].some((each) => each.id === id)
    button.hidden = false
    button.textContent = isIn ? '✓ In comparison' : '+ Compare'
    button.onclick = () => {
      const others = tray[kind].filter((each) => each.id !== id)
      write('tray', { ...tray, [kind]: isIn ? others : [...others, { id, name }].slice(-TRAY_MAX) })
      showTray()
    }
  }
  document.getElementById('tray')?.remove()
  const links = [
    linkTo(`/compare?games=${tray.games.map(({ id }) => id).join(',')}`, tray.games),
    linkTo(`/compare/players?names=${tray.players.map(({ id }) => encodeURIComponent(id)).join(',')}`, tray.players)
  ].filter((link) => link !== undefined)
  if (links.length === 0 || document.body.classList.contains('embed')) return
  const bar = document.createElement('aside')
  bar.id = 'tray'
  bar.setAttribute('aria-label', 'Comparison')
  const clear = document.createElement('button')
  clear.type = 'button'
  clear.textContent = 'Clear'
  clear.onclick = () => {
    write('tray', { games: [], players: [] })
    showTray()
  }
  bar.append(...links, clear)
  document.body.append(bar)
}

function linkTo(href: string, chosen: readonly { name: string }[]): HTMLAnchorElement | undefined {
  if (chosen.length === 0) return undefined
  const link = document.createElement('a')
  link.href = href
  link.textContent = `Compare ${chosen.map(({ name }) => name).join(', ')}`
  return link
}
