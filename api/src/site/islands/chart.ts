import type { LivePoint } from './live.js'
import { countText, instantText } from './local.js'

/** A line as `components/chart.tsx` writes it; '' where another line has a point, null in a gap. */
type Line = { name: string; max: number; y: (number | null | '')[]; band?: ([low: number, high: number] | null)[] }
type Points = { x: number[]; lines: Line[] }
/** What the left and right edge of a chart mean, in milliseconds since 1970. */
type View = { fromMs: number; toMs: number }

const DRAG_PIXELS_MIN = 5
/** Units of the drawing, as in `components/chart.tsx`. */
const UNITS = 1000
/** A count after a longer gap is not joined to the one before. */
const LIVE_GAP_SECONDS = 7200

for (const figure of document.querySelectorAll<HTMLElement>('figure.chart')) follow(figure)

/** Adds a cursor, the selection of a span and live counts to a chart that is drawn already. */
function follow(figure: HTMLElement): void {
  const points = JSON.parse(figure.querySelector('script.points')?.textContent ?? 'null') as Points
  const place = figure.querySelector<HTMLElement>('.plot')
  if (place === null || points.x.length === 0) return
  const view = { fromMs: Number(figure.dataset.from), toMs: Number(figure.dataset.to) }
  const show = cursorOf(place, points, view)
  followKeys(place, points, show)
  if (figure.dataset.zoom !== undefined) followFingers(place, view)
  place.addEventListener('pointermove', ({ clientX }) => {
    const ms = instantAt(place, view, clientX)
    // The first point behind the middle of two.
    const index = points.x.findIndex((seconds, at) => (seconds + (points.x[at + 1] ?? seconds)) * 500 >= ms)
    show(index === -1 ? points.x.length - 1 : index)
  })
  place.addEventListener('pointerleave', () => show(undefined))
  addEventListener('livepoint', (event) => {
    const { detail } = event as CustomEvent<LivePoint>
    if (figure.dataset.chartLive === detail.key) append(place, points, view, detail)
  })
}

function instantAt(place: HTMLElement, { fromMs, toMs }: View, clientX: number): number {
  const { left, width } = place.getBoundingClientRect()
  return fromMs + ((clientX - left) / width) * (toMs - fromMs)
}

type Show = (index: number | undefined) => string

/** Returns what moves the cursor to a point, or away, and returns what stands there. */
function cursorOf(place: HTMLElement, { x, lines }: Points, view: View): Show {
  const rule = place.appendChild(document.createElement('div'))
  rule.className = 'cursor'
  const tooltip = place.appendChild(document.createElement('div'))
  tooltip.className = 'tooltip'
  const show: Show = (index) => {
    rule.hidden = tooltip.hidden = index === undefined
    if (index === undefined) return ''
    const ms = (x[index] ?? 0) * 1000
    const counts = lines.map((line) => textOf(line, index))
    const texts = counts.every((text) => text === '') ? ['No data here'] : [instantText(ms), ...counts]
    tooltip.replaceChildren(...texts.flatMap((text, line) => (text === '' ? [] : [lineOf(text, line)])))
    const share = (ms - view.fromMs) / (view.toMs - view.fromMs)
    rule.style.left = `${share * 100}%`
    const room = place.clientWidth - tooltip.offsetWidth
    const at = share * place.clientWidth
    tooltip.style.left = `${Math.max(0, at + 12 > room ? at - tooltip.offsetWidth - 12 : at + 12)}px`
    return texts.filter((text) => text !== '').join(', ')
  }
  show(undefined)
  return show
}

function lineOf(text: string, line: number): HTMLElement {
  const element = document.createElement('div')
  element.textContent = text
  if (line > 0) element.className = `line-${line}`
  return element
}

function textOf({ name, y, band }: Line, index: number): string {
  const value = y[index]
  if (typeof value !== 'number') return ''
  const range = band?.[index]
  return `${name} ${countText(value)}${range == null ? '' : `, ${countText(range[0])} to ${countText(range[1])}`}`
}

/** Arrow keys move the cursor from point to point and say what is there. */
function followKeys(place: HTMLElement, { x, lines: [first] }: Points, show: Show): void {
  const said = document.createElement('p')
  said.className = 'unseen'
  said.setAttribute('aria-live', 'polite')
  place.after(said)
  place.tabIndex = 0
  place.setAttribute('role', 'application')
  place.setAttribute('aria-label', 'Chart: arrow keys move from point to point')
  let index: number | undefined
  place.addEventListener('keydown', (event) => {
    const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
    if (by === 0) return
    event.preventDefault()
    let at = index ?? (by > 0 ? -1 : x.length)
    do at += by
    while (at > 0 && at < x.length - 1 && typeof first?.y[at] !== 'number')
    index = Math.min(x.length - 1, Math.max(0, at))
    said.textContent = show(index)
  })
}

/** A mouse selects a span by dragging, two fingers by spreading or closing; the span is another address. */
function followFingers(place: HTMLElement, view: View): void {
  const selection = place.appendChild(document.createElement('div'))
  selection.className = 'selection'
  const downAt = new Map<number, number>()
  const nowAt = new Map<number, number>()
  const isMouse = ({ pointerType }: PointerEvent): boolean => pointerType === 'mouse'
  const forget = (): void => {
    downAt.clear()
    nowAt.clear()
    selection.hidden = true
  }
  forget()
  place.addEventListener('pointerdown', (event) => {
    if (!event.isPrimary && isMouse(event)) return
    downAt.set(event.pointerId, event.clientX)
    nowAt.set(event.pointerId, event.clientX)
    if (isMouse(event)) place.setPointerCapture(event.pointerId)
  })
  place.addEventListener('pointermove', (event) => {
    const start = downAt.get(event.pointerId)
    if (start === undefined) return
    nowAt.set(event.pointerId, event.clientX)
    if (!isMouse(event)) return
    const { left } = place.getBoundingClientRect()
    selection.hidden = false
    selection.style.left = `${Math.min(start, event.clientX) - left}px`
    selection.style.width = `${Math.abs(event.clientX - start)}px`
  })
  place.addEventListener('pointerup', (event) => {
    const [[first, second], [firstNow = 0, secondNow = 0]] = [[...downAt.values()], [...nowAt.values()]]
    forget()
    if (first === undefined) return
    const at = (clientX: number): number => instantAt(place, view, clientX)
    if (second === undefined) {
      if (isMouse(event) && Math.abs(firstNow - first) >= DRAG_PIXELS_MIN) open(at(first), at(firstNow))
      return
    }
    if (Math.abs(secondNow - firstNow) < DRAG_PIXELS_MIN) return
    // What lay below the fingers at first shall lie below them now.
    const scale = (at(second) - at(first)) / (at(secondNow) - at(firstNow))
    if (scale < 0 || Math.abs(scale - 1) < 0.1) return
    const fromMs = at(first) - (at(firstNow) - view.fromMs) * scale
    open(fromMs, Math.min(Date.now(), fromMs + (view.toMs - view.fromMs) * scale))
  })
  place.addEventListener('pointercancel', forget)
}

/** Opens the page with another span, in whole minutes. */
function open(aMs: number, bMs: number): void {
  const url = new URL(location.href)
  for (const [name, ms] of [
    ['from', Math.min(aMs, bMs)],
    ['to', Math.max(aMs, bMs)]
  ] as const) {
    url.searchParams.set(name, `${new Date(Math.max(0, Math.round(ms / 60_000) * 60_000)).toISOString().slice(0, 19)}Z`)
  }
  location.assign(url)
}

/** Adds a count behind the others: the drawing becomes wider, and is shown in the same width. */
function append(place: HTMLElement, { x, lines: [first, ...others] }: Points, view: View, point: LivePoint): void {
  const { seconds, value } = point
  const last = x.at(-1) ?? 0
  if (first === undefined || seconds <= last || seconds - last > LIVE_GAP_SECONDS) return
  x.push(seconds)
  first.y.push(value)
  for (const { y } of others) y.push('')
  const drawing = place.querySelector<SVGSVGElement>('svg.lines')
  const path = drawing?.querySelector('path.line')
  const from = Number(place.parentElement?.dataset.from)
  const unitMs = (Number(place.parentElement?.dataset.to) - from) / UNITS
  const at = Math.round((seconds * 1000 - from) / unitMs)
  path?.setAttribute('d', `${path.getAttribute('d') ?? ''}L${at} ${Math.round(UNITS * (1 - value / first.max))}`)
  view.toMs = Math.max(view.toMs, seconds * 1000)
  drawing?.setAttribute('viewBox', `0 0 ${Math.max(UNITS, at)} ${UNITS}`)
}
