const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const YEAR_MS = 365 * DAY_MS

/** The shortest stretch that can be zoomed to. */
const SPAN_MS_MIN = 10 * MINUTE_MS
/** Before any network of this kind. */
const BEGINNING_MS = Date.UTC(2000, 0, 1)

/**
 * From so many days on, the ups and downs of single days are a solid block on any screen: daily peaks are asked for,
 * up to where the service gives weekly ones by itself.
 */
const DAILY_DAYS_MIN = 120
const DAILY_DAYS_MAX = 2000

const NETWORK_RANGES = {
  '24h': { label: '24 h', spanMs: DAY_MS, query: () => 'days=1' },
  '7d': { label: '7 d', spanMs: 7 * DAY_MS, query: () => 'days=7' },
  '30d': { label: '30 d', spanMs: 30 * DAY_MS, query: () => 'days=30' },
  '1y': { label: '1 y', spanMs: YEAR_MS, query: (nowMs) => `from=${isoDay(nowMs - YEAR_MS)}${daily(YEAR_MS)}` },
  all: { label: 'All', spanMs: undefined, query: () => `from=${isoDay(BEGINNING_MS)}` }
}

const TITLE_RANGES = {
  '48h': { label: '48 h', spanMs: 2 * DAY_MS, query: () => 'hours=48' },
  '30d': { label: '30 d', spanMs: 30 * DAY_MS, query: () => 'hours=720' },
  '1y': { label: '1 y', spanMs: YEAR_MS, query: () => `hours=8760${daily(YEAR_MS)}` }
}

/** The ranges that can be chosen: of a title, or of the network. */
export function rangesOf(titleId) {
  return titleId === undefined ? NETWORK_RANGES : TITLE_RANGES
}

/**
 * What the address says is shown: `#range=7d`, `#range=all&from=…&to=…` (zoomed), and `title=…` for a game.
 * What cannot be read falls back to the first range.
 */
export function readView(hash) {
  const said = new URLSearchParams(hash.replace(/^#/, ''))
  const title = said.get('title')?.toLowerCase()
  const titleId = title !== undefined && /^[0-9a-f]{8}$/.test(title) ? title : undefined
  const ranges = rangesOf(titleId)
  const range = Object.hasOwn(ranges, said.get('range') ?? '') ? said.get('range') : Object.keys(ranges)[0]
  const fromMs = Date.parse(said.get('from') ?? '')
  const toMs = Date.parse(said.get('to') ?? '')
  const isZoomed = fromMs >= 0 && toMs > fromMs
  return { titleId, range, zoom: isZoomed ? { fromMs, toMs } : undefined }
}

/** The address of a view: the opposite of {@link readView}. */
export function hashOf({ titleId, range, zoom }) {
  const title = titleId === undefined ? '' : `title=${titleId}&`
  const stretch = zoom === undefined ? '' : `&from=${iso(zoom.fromMs)}&to=${iso(zoom.toMs)}`
  return `#${title}range=${range}${stretch}`
}

/** The questions that a view is made of: path and field of each series. */
export function questionsOf({ titleId, range, zoom }, nowMs) {
  const query =
    zoom === undefined
      ? rangesOf(titleId)[range].query(nowMs)
      : `from=${encodeURIComponent(iso(zoom.fromMs))}&to=${encodeURIComponent(iso(zoom.toMs))}${daily(zoom.toMs - zoom.fromMs)}`
  if (titleId !== undefined) {
    return [{ path: `api/title/${titleId}/online-users/history?${query}`, field: 'online_count', name: 'Online' }]
  }
  return [
    { path: `api/network-stats/online-24h?${query}`, field: 'online_count', name: 'Online' },
    { path: `api/network-stats/lobbies-24h?${query}`, field: 'lobby_count', name: 'Lobbies' }
  ]
}

/** The stretch that a view shows, or undefined when only the data say where it begins. */
export function stretchOf({ titleId, range, zoom }, nowMs) {
  if (zoom !== undefined) return zoom
  const { spanMs } = rangesOf(titleId)[range]
  return spanMs === undefined ? undefined : { fromMs: nowMs - spanMs, toMs: nowMs }
}

/** A stretch with whole minutes, not shorter than 10 of them, not behind the clock, not before the beginning. */
export function zoomTo(fromMs, toMs, nowMs) {
  const spanMs = Math.max(SPAN_MS_MIN, toMs - fromMs)
  const middle = (fromMs + toMs) / 2
  const lastMs = Math.ceil(nowMs / MINUTE_MS) * MINUTE_MS
  const to = Math.min(lastMs, Math.ceil((middle + spanMs / 2) / MINUTE_MS) * MINUTE_MS)
  const from = Math.max(BEGINNING_MS, Math.floor((to - spanMs) / MINUTE_MS) * MINUTE_MS)
  return { fromMs: Math.min(from, to - SPAN_MS_MIN), toMs: to }
}

function iso(ms) {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}

function isoDay(ms) {
  return iso(Math.floor(ms / DAY_MS) * DAY_MS)
}

function daily(spanMs) {
  const days = spanMs / DAY_MS
  return days >= DAILY_DAYS_MIN && days < DAILY_DAYS_MAX ? '&resolution=86400' : ''
}
