/** @import { Reply } from './ask.js' */
/** @import { Point, Series } from './series.js' */
/** @import { SeriesSource, Span, View } from './view.js' */
import { Away, ask, serverNow } from './ask.js'
import { Chart } from './chart.js'
import { count, counted, instant, width } from './format.js'
import { element, elementOf, setText } from './nodes.js'
import { messageOf } from './part.js'
import { pointsOf, withGaps } from './series.js'
import { hashOf, questionsOf, rangesOf, readView, spanOf, zoomTo } from './view.js'

const DAY_MS = 86_400_000
/** Above this many buckets the service chooses wider ones. */
const BUCKETS_MAX = 2000

/** @typedef {Series & { name: string, points: number, gaps: number }} Line */

/** The chart over time. It shows the view in the URL's fragment. */
export class HistorySection {
  #view = readView(location.hash)
  /**
   * Views before each zoom, newest last.
   * @type {View[]}
   */
  #before = []
  /** @type {Span | undefined} */
  #span
  /** @type {unknown[]} */
  #shown = []
  #requests = 0
  #nameOf
  #chart = new Chart(element('chart'), {
    onZoom: (fromMs, toMs) => this.#zoom(fromMs, toMs),
    onBack: () => this.#back()
  })

  /** @param {{ nameOf: (titleId: string) => string | undefined }} needs the name of a game, once it is known */
  constructor({ nameOf }) {
    this.#nameOf = nameOf
    addEventListener('hashchange', () => this.#follow())
    element('earlier').addEventListener('click', () => this.#move(-0.5, 1))
    element('later').addEventListener('click', () => this.#move(0.5, 1))
    element('zoom-in').addEventListener('click', () => this.#move(0, 0.5))
    element('zoom-out').addEventListener('click', () => this.#move(0, 2))
    element('zoom-back').addEventListener('click', () => this.#back())
    element('chart').addEventListener('keydown', (event) => this.#key(event))
    this.#showControls()
  }

  get titleId() {
    return this.#view.titleId
  }

  /** Requests the answers again. Throws `Away`. */
  async refresh() {
    const number = ++this.#requests
    const view = this.#view
    try {
      const { questions, answers } = await answersTo(view)
      if (number !== this.#requests) return
      elementOf('chart-data', HTMLAnchorElement).href = questions[0]?.path ?? ''
      this.#draw(questions, answers)
    } catch (error) {
      if (number === this.#requests) this.#fail(error)
      if (error instanceof Away) throw error
    } finally {
      if (number === this.#requests) element('history').removeAttribute('aria-busy')
    }
  }

  /** Shows the name of the game, once it is known. */
  showHeading() {
    const { titleId } = this.#view
    setText(element('chart-heading'), titleId === undefined ? 'Network' : (this.#nameOf(titleId) ?? titleId))
    element('to-network').hidden = titleId === undefined
  }

  /**
   * @param {readonly SeriesSource[]} questions
   * @param {readonly Reply<Point[]>[]} answers
   */
  #draw(questions, answers) {
    const nowMs = serverNow()
    // Without new data the right edge moves once a minute.
    const shown = [hashOf(this.#view), Math.floor(nowMs / 60_000), ...answers.map(({ body }) => body)]
    if (shown.every((part, index) => part === this.#shown[index])) return
    this.#shown = shown
    const resolutionSeconds = answers[0]?.resolutionSeconds ?? 0
    const series = questions
      .map(({ name, field }, index) => {
        const { body = [], resolutionSeconds = 0 } = answers[index] ?? {}
        return { name, points: body.length, ...withGaps(pointsOf(body, field), resolutionSeconds) }
      })
      .filter(({ points }, index) => index === 0 || points > 0)
    const firstMs = (series[0]?.instants[0] ?? nowMs / 1000 - 86_400) * 1000
    const span = spanOf(this.#view, nowMs) ?? { fromMs: firstMs, toMs: nowMs }
    this.#span = span
    const isEmpty = series.every(({ points }) => points === 0)
    this.#message(isEmpty ? 'There is no count in this range.' : '')
    this.#chart.draw({
      series,
      span,
      describe: (seconds) => describe('Peak of', seconds, resolutionSeconds)
    })
    this.#legend(series, span)
    setText(element('chart-facts'), series[0] === undefined ? '' : factsOf(series[0], resolutionSeconds))
  }

  /**
   * @param {readonly Line[]} series
   * @param {Span} span
   */
  #legend(series, { fromMs, toMs }) {
    const marks = series.map(({ name }, index) => {
      const mark = document.createElement('span')
      mark.className = `line series-${index + 1}`
      mark.textContent = name
      return mark
    })
    const stretch = document.createElement('span')
    stretch.className = 'stretch'
    stretch.textContent =
      toMs - fromMs > 3 * DAY_MS
        ? `${instant(fromMs).slice(0, 10)} to ${instant(toMs).slice(0, 10)}`
        : `${instant(fromMs).slice(0, 16)} to ${instant(toMs).slice(0, 16)}`
    element('legend').replaceChildren(...marks, stretch)
  }

  /** @param {unknown} error */
  #fail(error) {
    if (this.#shown.length > 0 && this.#shown[0] === hashOf(this.#view)) return
    this.#shown = []
    this.#chart.clear()
    element('legend').replaceChildren()
    setText(element('chart-facts'), '')
    this.#message(messageOf(error))
  }

  /** @param {string} text */
  #message(text) {
    element('chart-message').hidden = text === ''
    setText(element('chart-message'), text)
  }

  /** @param {View} view */
  #go(view) {
    location.hash = hashOf(view)
  }

  /**
   * @param {number} fromMs
   * @param {number} toMs
   */
  #zoom(fromMs, toMs) {
    this.#before.push(this.#view)
    this.#go({ ...this.#view, zoom: zoomTo(fromMs, toMs, serverNow()) })
  }

  /**
   * Moves the view by a share of its span, and scales the span.
   * @param {number} by
   * @param {number} scale
   */
  #move(by, scale) {
    if (this.#span === undefined) return
    const { fromMs, toMs } = this.#span
    const span = toMs - fromMs
    const middle = (fromMs + toMs) / 2 + by * span
    this.#zoom(middle - (span * scale) / 2, middle + (span * scale) / 2)
  }

  #back() {
    if (this.#view.zoom !== undefined) this.#go(this.#before.pop() ?? { ...this.#view, zoom: undefined })
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    /** @type {Record<string, () => void>} */
    const actions = {
      ArrowLeft: () => setText(element('readout'), this.#chart.step(-1)),
      ArrowRight: () => setText(element('readout'), this.#chart.step(1)),
      '+': () => this.#move(0, 0.5),
      '-': () => this.#move(0, 2),
      Escape: () => this.#back()
    }
    const action = actions[event.key]
    if (action === undefined || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    action()
  }

  #follow() {
    const { titleId } = this.#view
    this.#view = readView(location.hash)
    if (this.#view.zoom === undefined || this.#view.titleId !== titleId) this.#before = []
    this.#showControls()
    element('history').setAttribute('aria-busy', 'true')
    // The chart's place shows the error; the next poll reports an unavailable service.
    this.refresh().catch(() => undefined)
    if (this.#view.titleId === titleId) return
    element('history').scrollIntoView({ block: 'start' })
    element('chart-heading').focus({ preventScroll: true })
  }

  #showControls() {
    this.showHeading()
    const { titleId, range, zoom } = this.#view
    element('ranges').replaceChildren(
      ...Object.entries(rangesOf(titleId)).map(([name, { label }]) => {
        const link = document.createElement('a')
        link.href = hashOf({ titleId, range: name })
        link.textContent = label
        if (name === range) link.setAttribute('aria-current', zoom === undefined ? 'true' : 'location')
        return link
      })
    )
    elementOf('zoom-back', HTMLButtonElement).disabled = zoom === undefined
    for (const link of document.querySelectorAll('a'))
      if (link.dataset.titleId !== undefined) markCurrent(link, titleId)
  }
}

/**
 * Marks a link to a game when that game is shown.
 * @param {HTMLAnchorElement} link
 * @param {string | undefined} titleId
 */
export function markCurrent(link, titleId) {
  if (link.dataset.titleId === titleId) link.setAttribute('aria-current', 'true')
  else link.removeAttribute('aria-current')
}

/** @param {View} view */
async function answersTo(view) {
  const nowMs = serverNow()
  const questions = questionsOf(view, nowMs)
  /** @type {Reply<Point[]>[]} */
  const answers = await Promise.all(questions.map(({ path }) => ask(path)))
  const first = answers[0]?.body[0]
  if (view.range !== 'all' || view.zoom !== undefined || first === undefined) return { questions, answers }
  // A short history has finer buckets when it is requested from its first day.
  const firstDay = Date.parse(`${first.recorded_at.slice(0, 10)}T00:00:00Z`)
  if ((nowMs - firstDay) / DAY_MS >= BUCKETS_MAX) return { questions, answers }
  const finer = questions.map((question) => ({
    ...question,
    path: question.path.replace(/from=.*$/, `from=${first.recorded_at.slice(0, 10)}T00:00:00Z`)
  }))
  /** @type {Reply<Point[]>[]} */
  const finerAnswers = await Promise.all(finer.map(({ path }) => ask(path)))
  return { questions: finer, answers: finerAnswers }
}

/**
 * @param {Line} line
 * @param {number} resolutionSeconds
 */
function factsOf({ points, gaps, instants, counts }, resolutionSeconds) {
  if (points === 0) return ''
  let highest = 0
  counts.forEach((value, index) => {
    if ((value ?? 0) > (counts[highest] ?? 0)) highest = index
  })
  return [
    resolutionSeconds === 0 ? 'Samples' : `Peak of every ${width(resolutionSeconds)}`,
    counted(points, 'point'),
    gaps === 0 ? 'no gap' : counted(gaps, 'gap'),
    `highest ${count(counts[highest])} ${describe('in', instants[highest] ?? 0, resolutionSeconds)}`
  ].join(' · ')
}

/**
 * `2026-03-14 20:31 UTC`, or `Peak of the hour from 2026-03-14 20:00 UTC`.
 * @param {string} what
 * @param {number} seconds
 * @param {number} resolutionSeconds
 */
function describe(what, seconds, resolutionSeconds) {
  const at = instant(seconds * 1000)
  if (resolutionSeconds > 0) return `${what} the ${width(resolutionSeconds)} from ${at}`
  return what === 'in' ? `at ${at}` : at
}
