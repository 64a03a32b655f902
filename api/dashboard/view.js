const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const YEAR_MS = 365 * DAY_MS

/** The shortest span to zoom to. */
const SPAN_MS_MIN = 10 * MINUTE_MS
/** Before any network of this kind. */
const BEGINNING_MS = Date.UTC(2000, 0, 1)

/**
 * From this many days on, hourly values would fill the chart as a solid block: daily peaks are requested instead, up to
 * the span for which the service chooses weekly ones.
 */
const DAILY_DAYS_MIN = 120
const DAILY_DAYS_MAX = 2000

/** @typedef {{ readonly fromMs: number, readonly toMs: number }} Span milliseconds since 1970 */
/** @typedef {{ titleId?: string | undefined, range: string, zoom?: Span | undefined }} View */
/** @typedef {{ label: string, spanMs: number | undefined, query: (nowMs: number) => string }} Range */

/** @type {Record<string, Range>} */
const NETWORK_RANGES = {
  '24h': { label: '24 h', spanMs: DAY_MS, query: () => 'days=1' },
  '7d': { label: '7 d', spanMs: 7 * DAY_MS, query: () => 'days=7' },
  '30d': { label: '30 d', spanMs: 30 * DAY_MS, query: () => 'days=30' },
  '1y': { label: '1 y', spanMs: YEAR_MS, query: (nowMs) => `from=${isoDay(nowMs - YEAR_MS)}${daily(YEAR_MS)}` },
  all: { label: 'All', spanMs: undefined, query: () => `from=${isoDay(BEGINNING_MS)}` }
}

/** @type {Record<string, Range>} */
const TITLE_RANGES = {
  '48h': { label: '48 h', spanMs: 2 * DAY_MS, query: () => 'hours=48' },
  '30d': { label: '30 d', spanMs: 30 * DAY_MS, query: () => 'hours=720' },
  '1y': { label: '1 y', spanMs: YEAR_MS, query: () => `hours=8760${daily(YEAR_MS)}` }
}

/**
 * The ranges to choose from: those of titles, or of the network.
 * @param {string | undefined} titleId
 */
export function rangesOf(titleId) {
  return titleId === undefined ? NETWORK_RANGES : TITLE_RANGES
}

/**
 * What the address says is shown: `#range=7d`, `#range=all&from=…&to=…` (zoomed), and `title=…` for a game.
 * Invalid values fall back to the first range.
 * @param {string} hash
 * @returns {View}
 */
export function readView(hash) {
  const said = new URLSearchParams(hash.replace(/^#/, ''))
  const title = said.get('title')?.toLowerCase()
  const titleId = title !== undefined && /^[0-9a-f]{8}$/.test(title) ? title : undefined
  const ranges = rangesOf(titleId)
  const wanted = said.get('range') ?? ''
  const range = Object.hasOwn(ranges, wanted) ? wanted : (Object.keys(ranges)[0] ?? '')
  const fromMs = Date.parse(said.get('from') ?? '')
  const toMs = Date.parse(said.get('to') ?? '')
  const isZoomed = fromMs >= 0 && toMs > fromMs
  return { titleId, range, zoom: isZoomed ? { fromMs, toMs } : undefined }
}

/**
 * The address of a view: the opposite of {@link readView}.
 * @param {View} view
 */
export function hashOf({ titleId, range, zoom }) {
  const title = titleId === undefined ? '' : `title=${titleId}&`
  const span = zoom === undefined ? '' : `&from=${iso(zoom.fromMs)}&to=${iso(zoom.toMs)}`
  return `#${title}range=${range}${span}`
}

/** @typedef {{ path: string, field: string, name: string }} SeriesSource */

/**
 * The path, field and name of each series of a view.
 * @param {View} view
 * @param {number} nowMs
 * @returns {SeriesSource[]}
 */
export function questionsOf({ titleId, range, zoom }, nowMs) {
  const query =
    zoom === undefined
      ? rangeOf({ titleId, range }).query(nowMs)
      : `${new URLSearchParams({ from: iso(zoom.fromMs), to: iso(zoom.toMs) })}${daily(zoom.toMs - zoom.fromMs)}`
  if (titleId !== undefined) {
    return [{ path: `api/title/${titleId}/online-users/history?${query}`, field: 'online_count', name: 'Online' }]
  }
  return [
    { path: `api/network-stats/online-24h?${query}`, field: 'online_count', name: 'Online' },
    { path: `api/network-stats/lobbies-24h?${query}`, field: 'lobby_count', name: 'Lobbies' }
  ]
}

/**
 * @param {View} view
 * @returns {Range}
 */
function rangeOf({ titleId, range }) {
  const found = rangesOf(titleId)[range]
  if (found === undefined) throw new Error(`There is no range ${range}.`)
  return found
}

/**
 * The span that a view shows; undefined when it begins with the data.
 * @param {View} view
 * @param {number} nowMs
 * @returns {Span | undefined}
 */
export function spanOf({ titleId, range, zoom }, nowMs) {
  if (zoom !== undefined) return zoom
  const { spanMs } = rangeOf({ titleId, range })
  return spanMs === undefined ? undefined : { fromMs: nowMs - spanMs, toMs: nowMs }
}

/**
 * A span of whole minutes, at least 10, that ends at the current minute at the latest.
 * @param {number} fromMs
 * @param {number} toMs
 * @param {number} nowMs
 */
export function zoomTo(fromMs, toMs, nowMs) {
  const spanMs = Math.max(SPAN_MS_MIN, toMs - fromMs)
  const middle = (fromMs + toMs) / 2
  const lastMs = Math.ceil(nowMs / MINUTE_MS) * MINUTE_MS
  const to = Math.min(lastMs, Math.ceil((middle + spanMs / 2) / MINUTE_MS) * MINUTE_MS)
  const from = Math.max(BEGINNING_MS, Math.floor((to - spanMs) / MINUTE_MS) * MINUTE_MS)
  return { fromMs: Math.min(from, to - SPAN_MS_MIN), toMs: to }
}

/** @param {number} ms */
function iso(ms) {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}

/** @param {number} ms */
function isoDay(ms) {
  return iso(Math.floor(ms / DAY_MS) * DAY_MS)
}

/** @param {number} spanMs */
function daily(spanMs) {
  const days = spanMs / DAY_MS
  return days >= DAILY_DAYS_MIN && days < DAILY_DAYS_MAX ? '&resolution=86400' : ''
}
