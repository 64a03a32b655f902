/** @import { Series } from './series.js' */
/** @import { Span } from './view.js' */
import { count } from './format.js'
import uPlot from './uplot.js'

/** Axes are narrow below this width in CSS pixels. */
const NARROW = 560
const SERIES_COLOURS = ['--series-1', '--series-2']

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })

// uPlot's defaults use the twelve-hour clock. Columns: smallest distance of ticks in seconds, text; what is added when
// the year, month, day, hour, minute or second changes; 1 for "added behind".
/** @type {uPlot.Axis.Values} */
const TICKS = [
  [365 * 86_400, '{YYYY}', null, null, null, null, null, null, 1],
  [28 * 86_400, '{MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [86_400, '{D} {MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [60, '{HH}:{mm}', '\n{D} {MMM} {YYYY}', null, '\n{D} {MMM}', null, null, null, 1],
  [1, '{HH}:{mm}:{ss}', '\n{D} {MMM} {YYYY}', null, '\n{D} {MMM}', null, null, null, 1]
]

/**
 * @typedef {Object} Drawing
 * @property {readonly (Series & { name: string })[]} series
 * @property {Span} span
 * @property {(seconds: number) => string} describe the words for a point at an instant
 */

/** A chart of counts over time. */
export class Chart {
  #element
  #onZoom
  #onBack
  #tooltip = document.createElement('div')
  /** @type {uPlot | undefined} */
  #plot
  /** @type {Drawing} */
  #drawn = { series: [], span: { fromMs: 0, toMs: 0 }, describe: String }

  /**
   * @param {HTMLElement} element
   * @param {{ onZoom: (fromMs: number, toMs: number) => void, onBack: () => void }} callbacks for a drag and a
   * double-click
   */
  constructor(element, { onZoom, onBack }) {
    this.#element = element
    this.#onZoom = onZoom
    this.#onBack = onBack
    element.tabIndex = 0
    this.#tooltip.className = 'tooltip'
    this.#tooltip.hidden = true
    new ResizeObserver(() => this.#plot?.setSize(this.#size())).observe(element)
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#plot?.redraw(false, true))
  }

  /**
   * Draws series over a span of time.
   * @param {Drawing} drawing
   */
  draw(drawing) {
    const before = namesOf(this.#drawn)
    this.#drawn = drawing
    const data = uPlot.join(drawing.series.map(({ instants, counts }) => [instants, counts]))
    if (this.#plot !== undefined && before === namesOf(drawing)) {
      this.#plot.setData(data)
      return
    }
    this.clear()
    this.#plot = new uPlot(this.#options(), data, this.#element)
    this.#plot.over.append(this.#tooltip)
  }

  /** Removes the drawing. */
  clear() {
    this.#plot?.destroy()
    this.#plot = undefined
    this.#tooltip.hidden = true
  }

  /**
   * Moves the cursor by points (negative: to the left), skipping gaps, and returns the text of the point there.
   * @param {number} by
   */
  step(by) {
    const plot = this.#plot
    if (plot === undefined) return ''
    const [instants, first] = plot.data
    let index = plot.cursor.idx ?? (by > 0 ? -1 : instants.length)
    do index += by
    while (index > 0 && index < instants.length - 1 && typeof first?.[index] !== 'number')
    index = Math.min(instants.length - 1, Math.max(0, index))
    const at = instants[index]
    if (at === undefined) return ''
    plot.setCursor({ left: plot.valToPos(at, 'x'), top: plot.over.clientHeight / 2 })
    return this.#linesAt(index).join(', ')
  }

  /** @returns {uPlot.Options} */
  #options() {
    const { series } = this.#drawn
    const isWide = this.#element.clientWidth >= NARROW
    const axis = {
      stroke: () => colour('--muted'),
      font: `12px ${getComputedStyle(document.body).fontFamily}`,
      grid: { stroke: () => colour('--grid'), width: 1 },
      ticks: { show: false }
    }
    /** @type {(plot: uPlot, ticks: number[]) => string[]} */
    const values = (_plot, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? compact.format(tick) : ''))
    return {
      ...this.#size(),
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
      legend: { show: false },
      padding: [12, null, 0, 0],
      cursor: {
        y: false,
        // Shows the count at its own instant instead of the nearest one.
        dataIdx: (_plot, _series, index) => index,
        drag: { x: true, y: false, setScale: false },
        points: { size: 7 },
        bind: {
          dblclick: () => () => {
            this.#onBack()
            return null
          }
        }
      },
      scales: {
        x: { time: true, range: () => [this.#drawn.span.fromMs / 1000, this.#drawn.span.toMs / 1000] },
        'scale-1': { range: (_plot, _min, max) => [0, max > 0 ? max * 1.06 : 1] },
        // Twice the necessary height keeps the second line below the first.
        'scale-2': { range: (_plot, _min, max) => [0, max > 0 ? max * 2.2 : 1] }
      },
      axes: [
        { ...axis, values: TICKS, space: isWide ? 70 : 56 },
        ...series.map((_, index) => ({
          ...axis,
          scale: `scale-${index + 1}`,
          side: index === 0 ? 3 : 1,
          stroke: () => colour(SERIES_COLOURS[index] ?? ''),
          grid: { ...axis.grid, show: index === 0 },
          values,
          size: isWide ? 48 : 40
        }))
      ],
      series: [{}, ...series.map(({ name }, index) => lineOf(name, index))],
      hooks: { setCursor: [() => this.#showTooltip()], setSelect: [() => this.#select()] }
    }
  }

  #size() {
    const width = this.#element.clientWidth
    return { width, height: Math.round(Math.min(380, Math.max(230, width * 0.42))) }
  }

  #select() {
    const plot = this.#plot
    const { left, width } = plot?.select ?? { left: 0, width: 0 }
    if (plot === undefined || width === 0) return
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
    if (width < 5) return
    this.#onZoom(plot.posToVal(left, 'x') * 1000, plot.posToVal(left + width, 'x') * 1000)
  }

  #showTooltip() {
    const plot = this.#plot
    const { idx, left = -1 } = plot?.cursor ?? {}
    const at = typeof idx === 'number' && left >= 0 ? plot?.data[0][idx] : undefined
    this.#tooltip.hidden = at === undefined
    if (plot === undefined || typeof idx !== 'number' || at === undefined) return
    this.#tooltip.replaceChildren(
      ...this.#linesAt(idx).map((text, index) => {
        const line = document.createElement('div')
        line.textContent = text
        if (index > 0) line.className = `line series-${index}`
        return line
      })
    )
    const place = plot.valToPos(at, 'x')
    const { offsetWidth } = this.#tooltip
    const isLeft = place + offsetWidth + 16 > plot.over.clientWidth
    this.#tooltip.style.left = `${Math.max(0, isLeft ? place - offsetWidth - 12 : place + 12)}px`
  }

  /**
   * The lines of text at a point.
   * @param {number} index
   */
  #linesAt(index) {
    const [instants, ...counts] = this.#plot?.data ?? [[]]
    // The beginning of a gap has no count.
    if (counts.every((values) => typeof values[index] !== 'number')) return ['No count here']
    const lines = this.#drawn.series.map(({ name }, place) => `${name} ${count(counts[place]?.[index])}`)
    return [this.#drawn.describe(instants[index] ?? 0), ...lines]
  }
}

/**
 * @param {string} label
 * @param {number} index
 * @returns {uPlot.Series}
 */
function lineOf(label, index) {
  const name = SERIES_COLOURS[index] ?? ''
  return {
    label,
    scale: `scale-${index + 1}`,
    stroke: () => colour(name),
    ...(index === 0 ? { fill: () => colour('--series-1-fill') } : {}),
    width: 1.5,
    spanGaps: false,
    points: { stroke: () => colour(name), fill: () => colour(name), size: 4 }
  }
}

/** @param {Drawing} drawing */
function namesOf({ series }) {
  return series.map(({ name }) => name).join()
}

/** @param {string} name */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim()
}
