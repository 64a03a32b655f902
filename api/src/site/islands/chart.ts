import type uPlotType from 'uplot'
import type { LivePoint } from './live.js'
import { countText, instantText, zoneName } from './local.js'

// The service puts the library before this module, in the same file.
declare const uPlot: typeof uPlotType

type Line = { name: string; isRight: boolean; isDotted: boolean; y: (number | null | '')[]; band?: (number | null)[][] }
type Points = { x: number[]; lines: Line[] }

/** Axes are narrow below this width in CSS pixels. */
const NARROW = 560
const DRAG_PIXELS_MIN = 5
const TICKS_PIXELS = 20
const compact = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 })

// uPlot's defaults use the twelve-hour clock. Columns: smallest distance of ticks in seconds, text; what is added when
// the year, month, day, hour, minute or second changes; 1 for "added behind".
const TICKS: uPlotType.Axis.Values = [
  [365 * 86_400, '{YYYY}', null, null, null, null, null, null, 1],
  [28 * 86_400, '{MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [86_400, '{D} {MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [60, '{HH}:{mm}', '\n{D} {MMM} {YYYY}', null, '\n{D} {MMM}', null, null, null, 1],
  [1, '{HH}:{mm}:{ss}', '\n{D} {MMM} {YYYY}', null, '\n{D} {MMM}', null, null, null, 1]
]

for (const figure of document.querySelectorAll<HTMLElement>('figure.chart')) draw(figure)

/** Draws the points of a figure over its SVG, with a cursor, and selection of a span. */
function draw(figure: HTMLElement): void {
  const { x, lines } = JSON.parse(figure.querySelector('script.points')?.textContent ?? 'null') as Points
  const place = figure.querySelector<HTMLElement>('.plot')
  if (place === null || x.length === 0) return
  // '': another line has a point at this instant. A null is a gap.
  const columns = lines.flatMap(({ y, band }) => [
    y.map((value) => (value === '' ? undefined : value)),
    ...(band ?? [])
  ])
  const data = [x, ...columns] as uPlotType.AlignedData
  const tooltip = document.createElement('div')
  tooltip.className = 'tooltip'
  tooltip.hidden = true
  const described = document.createElement('p')
  described.className = 'unseen'
  described.setAttribute('aria-live', 'polite')
  // The axis takes the place of the ticks below the SVG.
  const sizeOf = () => ({ width: place.clientWidth, height: place.clientHeight + TICKS_PIXELS })
  const plot = new uPlot(optionsOf({ figure, place, lines, size: sizeOf(), tooltip }), data, place)
  plot.over.append(tooltip)
  figure.append(described)
  figure.classList.add('is-drawn')
  new ResizeObserver(() => plot.setSize(sizeOf())).observe(place)
  for (const change of ['themechange', 'zonechange']) addEventListener(change, () => plot.redraw(false, true))
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => plot.redraw(false, true))
  followKeys(place, plot, (index) => (described.textContent = textsAt(plot, lines, index).join(', ')))
  addEventListener('livepoint', (event) => {
    const { key, seconds, value } = (event as CustomEvent<LivePoint>).detail
    const last = x.at(-1) ?? 0
    if (figure.dataset.chartLive !== key || seconds <= last || seconds - last > 7200) return
    x.push(seconds)
    columns.forEach((column, index) => void column.push(index === 0 ? value : null))
    figure.dataset.to = String(Math.max(Number(figure.dataset.to), seconds * 1000))
    plot.setData(data)
  })
}

type Needs = {
  figure: HTMLElement
  place: HTMLElement
  lines: readonly Line[]
  size: { width: number; height: number }
  tooltip: HTMLElement
}

function optionsOf({ figure, place, lines, size, tooltip }: Needs): uPlotType.Options {
  const isWide = place.clientWidth >= NARROW
  const axis: uPlotType.Axis = {
    stroke: () => colour('--muted'),
    font: `12px ${getComputedStyle(document.body).fontFamily}`,
    grid: { stroke: () => colour('--grid'), width: 1 },
    ticks: { show: false }
  }
  const values: uPlotType.Axis.Values = (_plot, ticks) =>
    ticks.map((tick) => (Number.isInteger(tick) ? compact.format(tick) : ''))
  const scale = {
    range: (_plot: uPlotType, _min: number, max: number): [number, number] => [0, max > 0 ? max * 1.06 : 1]
  }
  const bands: uPlotType.Band[] = []
  const series: uPlotType.Series[] = [{}]
  for (const [index, line] of lines.entries()) {
    series.push(lineOf(line, index))
    if (line.band === undefined) continue
    const first = series.length
    const edge = { show: true, stroke: 'transparent', points: { show: false }, scale: 'left' }
    series.push(edge, edge)
    bands.push({ series: [first + 1, first], fill: () => `${colour(`--line-${index + 1}`)}22` } as never)
  }
  return {
    ...size,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), zoneName()),
    legend: { show: false },
    padding: [8, isWide ? 12 : 4, 0, 0],
    cursor: {
      y: false,
      // Shows the count at its own instant instead of the nearest one.
      dataIdx: (_plot, _series, index) => index,
      drag: { x: true, y: false, setScale: false },
      points: { size: 7 }
    },
    scales: {
      x: { time: true, range: () => [Number(figure.dataset.from) / 1000, Number(figure.dataset.to) / 1000] },
      left: scale,
      right: scale
    },
    axes: [
      { ...axis, values: TICKS, space: isWide ? 70 : 56 },
      { ...axis, scale: 'left', values, size: isWide ? 48 : 38 },
      ...(lines.some(({ isRight }) => isRight)
        ? [{ ...axis, scale: 'right', side: 1 as const, values, size: isWide ? 48 : 38, grid: { show: false } }]
        : [])
    ],
    series,
    bands,
    hooks: {
      setCursor: [(plot) => showTooltip(plot, lines, tooltip)],
      setSelect: [(plot) => zoom(plot, figure)]
    }
  }
}

function lineOf({ name, isRight, isDotted, band }: Line, index: number): uPlotType.Series {
  const variable = `--line-${Math.min(4, index + 1)}`
  return {
    label: name,
    scale: isRight ? 'right' : 'left',
    stroke: () => colour(variable),
    ...(index === 0 && band === undefined && !isDotted ? { fill: () => `${colour(variable)}22` } : {}),
    ...(isDotted ? { dash: [4, 4] } : {}),
    width: 1.5,
    spanGaps: false,
    points: { stroke: () => colour(variable), fill: () => colour(variable), size: 4 }
  }
}

/** The address says what is chosen: a selected span is another one. */
function zoom(plot: uPlotType, figure: HTMLElement): void {
  const { left, width } = plot.select
  const path = figure.dataset.zoom
  if (path === undefined || width < DRAG_PIXELS_MIN) return
  const url = new URL(location.href)
  for (const [name, pixels] of [
    ['from', left],
    ['to', left + width]
  ] as const) {
    const minute = Math.round(plot.posToVal(pixels, 'x') / 60) * 60
    url.searchParams.set(name, `${new Date(minute * 1000).toISOString().slice(0, 19)}Z`)
  }
  location.assign(url)
}

function showTooltip(plot: uPlotType, lines: readonly Line[], tooltip: HTMLElement): void {
  const { idx, left = -1 } = plot.cursor
  tooltip.hidden = typeof idx !== 'number' || left < 0
  if (typeof idx !== 'number' || tooltip.hidden) return
  tooltip.replaceChildren(
    ...textsAt(plot, lines, idx).map((text, index) => {
      const line = document.createElement('div')
      line.textContent = text
      if (index > 0) line.className = `line-${index}`
      return line
    })
  )
  const at = plot.valToPos(plot.data[0][idx] ?? 0, 'x')
  const isLeft = at + tooltip.offsetWidth + 16 > plot.over.clientWidth
  tooltip.style.left = `${Math.max(0, isLeft ? at - tooltip.offsetWidth - 12 : at + 12)}px`
}

function textsAt(plot: uPlotType, lines: readonly Line[], index: number): string[] {
  let column = 1
  const counts = lines.flatMap(({ name, band }) => {
    const value = plot.data[column]?.[index]
    const [low, high] = [plot.data[column + 1]?.[index], plot.data[column + 2]?.[index]]
    column += band === undefined ? 1 : 3
    if (typeof value !== 'number') return []
    const range =
      band === undefined || typeof low !== 'number' || typeof high !== 'number'
        ? ''
        : `, ${countText(low)} to ${countText(high)}`
    return [`${name} ${countText(value)}${range}`]
  })
  return counts.length === 0 ? ['No data here'] : [instantText((plot.data[0][index] ?? 0) * 1000), ...counts]
}

/** Arrow keys move the cursor from point to point and say what is there. */
function followKeys(place: HTMLElement, plot: uPlotType, say: (index: number) => void): void {
  place.tabIndex = 0
  place.setAttribute('role', 'application')
  place.setAttribute('aria-label', 'Chart: arrow keys move from point to point')
  place.addEventListener('keydown', ({ key }) => {
    const by = key === 'ArrowRight' ? 1 : key === 'ArrowLeft' ? -1 : 0
    if (by === 0) return
    const [x, first] = plot.data
    let index = plot.cursor.idx ?? (by > 0 ? -1 : x.length)
    do index += by
    while (index > 0 && index < x.length - 1 && typeof first?.[index] !== 'number')
    index = Math.min(x.length - 1, Math.max(0, index))
    plot.setCursor({ left: plot.valToPos(x[index] ?? 0, 'x'), top: plot.over.clientHeight / 2 })
    say(index)
  })
}

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim()
}
