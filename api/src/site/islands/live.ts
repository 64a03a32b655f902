import type { OnlineUsers, TitleSummary } from '@gamenet/schemas'
import { countText, instantText, showLocal } from './local.js'
import { read, readPage } from './service.js'

/** Boards change in bursts: the page is read again at most once in so long. */
const BOARD_MS = 30_000
/** All open pages receive a new count at once; they ask within so many milliseconds. */
const SPREAD_MS = 4000
const OLD_SECONDS = 600
/** Between two counts that are shown. */
const COUNT_MS_MIN = 15_000
let countedMs = 0
let updatedMs = Date.now()
/** Until a stream that was refused is opened again: a proxy answers 502 while the service restarts. */
const REOPEN_MS = 60_000
/** A connection that was lost is open again after 3 s, if the service answers. */
const AWAY_MS = 5000

type Count = { recorded_at: string; online_count: number | null }

/** A newer value of what `data-live` names; charts append it. */
export type LivePoint = { key: string; seconds: number; value: number }

let source: EventSource | undefined

/** Keeps numbers current by the event stream: one connection, closed while the page is hidden. */
export function followLive(): void {
  const address = addressOf()
  if (address === undefined) return
  const open = (): void => {
    if (document.hidden || source !== undefined) return
    source = new EventSource(address)
    source.addEventListener('count', ({ data }) => counted(JSON.parse(data).data))
    source.addEventListener('change', () => boardChanged())
    source.addEventListener('open', () => showAway(false))
    source.addEventListener('error', () => {
      setTimeout(() => showAway(source?.readyState !== EventSource.OPEN), AWAY_MS)
      // Refused: it does not reconnect by itself.
      if (source?.readyState !== EventSource.CLOSED) return
      close()
      setTimeout(open, REOPEN_MS * (0.5 + Math.random()))
    })
  }
  const close = (): void => {
    source?.close()
    source = undefined
  }
  document.addEventListener('visibilitychange', () => (document.hidden ? close() : open()))
  // A page in the browser's history keeps no connection.
  addEventListener('pagehide', close)
  addEventListener('pageshow', open)
  open()
}

/** While the service does not answer, the numbers are grey, and a note says how old they are. */
function showAway(isAway: boolean): void {
  document.body.classList.toggle('is-stale', isAway)
  const shown = document.getElementById('away')
  if (!isAway) shown?.remove()
  if (!isAway || shown !== null) return
  const note = document.createElement('p')
  note.id = 'away'
  note.className = 'note stale'
  note.role = 'status'
  note.textContent = `The service does not answer. Last update: ${instantText(updatedMs)}`
  document.getElementById('main')?.prepend(note)
}

function addressOf(): string | undefined {
  const board = document.querySelector<HTMLElement>('[data-live-board]')?.dataset.liveBoard
  if (board !== undefined) return `/api/stream?kinds=change&${board}`
  return document.querySelector('[data-live], [data-chart-live]') === null ? undefined : '/api/stream?kinds=count'
}

function counted({ recorded_at, online_count }: Count): void {
  if (online_count === null) return
  const seconds = Date.parse(`${recorded_at.replace(' ', 'T')}Z`) / 1000
  // A history that is being loaded sends thousands of old counts.
  if (Date.now() / 1000 - seconds > OLD_SECONDS || Date.now() - countedMs < COUNT_MS_MIN) return
  countedMs = Date.now()
  show({ key: 'network', seconds, value: online_count })
  const titles = new Set(
    [...document.querySelectorAll<HTMLElement>('[data-live^="title/"]')].map(({ dataset }) => dataset.live)
  )
  if (titles.size > 0) setTimeout(() => void readTitles(titles), Math.random() * SPREAD_MS)
}

/** One answer a minute: that of the only game, or that of all. */
async function readTitles(titles: ReadonlySet<string | undefined>): Promise<void> {
  const [only] = titles
  const games =
    titles.size === 1
      ? [await read<TitleSummary>(`/api/${only}`)]
      : Object.values((await read<OnlineUsers>('/api/online-users')) ?? {})
  const seconds = Math.floor(Date.now() / 60_000) * 60
  for (const game of games) {
    const key = `title/${game?.titleId}`
    if (titles.has(key)) show({ key, seconds, value: game?.online ?? 0 })
  }
}

function show(point: LivePoint): void {
  updatedMs = point.seconds * 1000
  for (const element of document.querySelectorAll<HTMLDataElement>(`[data-live="${point.key}"]`)) {
    if (Number(element.value) === point.value) continue
    element.value = String(point.value)
    element.textContent = countText(point.value)
    element.classList.remove('fresh')
    requestAnimationFrame(() => element.classList.add('fresh'))
  }
  dispatchEvent(new CustomEvent('livepoint', { detail: point }))
}

let isWaiting = false
let readMs = 0

/** Replaces the parts of the page that show the board. */
function boardChanged(): void {
  if (isWaiting) return
  isWaiting = true
  const wait = Math.max(Math.random() * SPREAD_MS, readMs + BOARD_MS - Date.now())
  setTimeout(async () => {
    isWaiting = false
    readMs = Date.now()
    const page = await readPage(location.href)
    for (const element of document.querySelectorAll('[data-fresh]')) {
      const fresh = page?.getElementById(element.id) ?? null
      // The reader's place in the page stays, and so does the focus.
      if (fresh !== null && !element.contains(document.activeElement)) element.replaceWith(fresh)
    }
    showLocal()
  }, wait)
}
