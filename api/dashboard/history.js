import { Away, ask, serverNow } from './ask.js'
import { Chart } from './chart.js'
import { count, counted, instant, width } from './format.js'
import { pointsOf, withGaps } from './series.js'
import { hashOf, questionsOf, rangesOf, readView, stretchOf, zoomTo } from './view.js'

const element = (id) => document.getElementById(id)
const DAY_MS = 86_400_000
/** Up to so many buckets an answer has; the service then chooses wider ones. */
const BUCKETS_MAX = 2000

/** The chart over time: follows the address behind #, asks what it says, draws it. */
export class HistorySection {
  #view = readView(location.hash)
  /** Views that were zoomed out of sight, newest last. */
  #before = []
  #stretch
  #shown = []
  #asked = 0
  #nameOf
  #chart = new Chart(element('chart'), {
    onZoom: (fromMs, toMs) => this.#zoom(fromMs, toMs),
    onBack: () => this.#back()
  })

  /** `nameOf(titleId)`: what a game is called, undefined while that is not known. */
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

  /** Asks again; most of the time nothing has changed. Throws when the service is away. */
  async refresh() {
    const asked = ++this.#asked
    const view = this.#view
    try {
      const { questions, answers } = await answersTo(view)
      if (asked !== this.#asked) return
      element('chart-data').href = questions[0].path
      this.#draw(questions, answers)
    } catch (error) {
      if (asked === this.#asked) this.#fail(error)
      if (error instanceof Away) throw error
    } finally {
      if (asked === this.#asked) element('history').removeAttribute('aria-busy')
    }
  }

  /** Shows the name of the game, once it is known. */
  showHeading() {
    const { titleId } = this.#view
    setText(element('chart-heading'), titleId === undefined ? 'Network' : (this.#nameOf(titleId) ?? titleId))
    element('to-network').hidden = titleId === undefined
  }

  #draw(questions, answers) {
    const nowMs = serverNow()
    // Nothing new: moving the right edge once a minute is enough.
    const shown = [hashOf(this.#view), Math.floor(nowMs / 60_000), ...answers.map(({ body }) => body)]
    if (shown.every((part, index) => part === this.#shown[index])) return
    this.#shown = shown
    const [{ resolutionSeconds }] = answers
    const series = answers
      .map(({ body, resolutionSeconds }, index) => ({
        name: questions[index].name,
        points: body.length,
        ...withGaps(pointsOf(body, questions[index].field), resolutionSeconds)
      }))
      .filter(({ points }, index) => index === 0 || points > 0)
    const firstMs = (series[0].instants[0] ?? nowMs / 1000 - 86_400) * 1000
    this.#stretch = stretchOf(this.#view, nowMs) ?? { fromMs: firstMs, toMs: nowMs }
    const isEmpty = series.every(({ points }) => points === 0)
    this.#message(isEmpty ? 'There is no count in this stretch.' : '')
    this.#chart.draw({
      series,
      stretch: this.#stretch,
      describe: (seconds) => describe('Peak of', seconds, resolutionSeconds)
    })
    this.#legend(series)
    setText(element('chart-facts'), factsOf(series[0], resolutionSeconds))
  }

  #legend(series) {
    const marks = series.map(({ name }, index) => {
      const mark = document.createElement('span')
      mark.className = `line series-${index + 1}`
      mark.textContent = name
      return mark
    })
    const { fromMs, toMs } = this.#stretch
    const stretch = document.createElement('span')
    stretch.className = 'stretch'
    stretch.textContent =
      toMs - fromMs > 3 * DAY_MS
        ? `${instant(fromMs).slice(0, 10)} to ${instant(toMs).slice(0, 10)}`
        : `${instant(fromMs).slice(0, 16)} to ${instant(toMs).slice(0, 16)}`
    element('legend').replaceChildren(...marks, stretch)
  }

  #fail(error) {
    if (this.#shown.length > 0 && this.#shown[0] === hashOf(this.#view)) return
    this.#shown = []
    this.#chart.clear()
    element('legend').replaceChildren()
    setText(element('chart-facts'), '')
    this.#message(error.message)
  }

  #message(text) {
    element('chart-message').hidden = text === ''
    setText(element('chart-message'), text)
  }

  #go(view) {
    location.hash = hashOf(view)
  }

  #zoom(fromMs, toMs) {
    this.#before.push(this.#view)
    this.#go({ ...this.#view, zoom: zoomTo(fromMs, toMs, serverNow()) })
  }

  #move(by, scale) {
    if (this.#stretch === undefined) return
    const { fromMs, toMs } = this.#stretch
    const span = toMs - fromMs
    const middle = (fromMs + toMs) / 2 + by * span
    this.#zoom(middle - (span * scale) / 2, middle + (span * scale) / 2)
  }

  #back() {
    if (this.#view.zoom !== undefined) this.#go(this.#before.pop() ?? { ...this.#view, zoom: undefined })
  }

  #key(event) {
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
    // What is wrong stands in the chart's place; the next round of polling tells of a service that is away.
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
    element('zoom-back').disabled = zoom === undefined
    for (const link of document.querySelectorAll('[data-title-id]')) markCurrent(link, titleId)
  }
}

/** Marks a link to a game when that game is shown. */
export function markCurrent(link, titleId) {
  if (link.dataset.titleId === titleId) link.setAttribute('aria-current', 'true')
  else link.removeAttribute('aria-current')
}

/** Sets text only where it is another one: a live region that is written again is read out again. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text
}

async function answersTo(view) {
  const nowMs = serverNow()
  const questions = questionsOf(view, nowMs)
  const answers = await Promise.all(questions.map(({ path }) => ask(path)))
  const first = answers[0].body[0]
  if (view.range !== 'all' || view.zoom !== undefined || first === undefined) return { questions, answers }
  // The whole history of a young network is short: asked for from its first day, it comes in finer buckets.
  const firstDay = Date.parse(`${first.recorded_at.slice(0, 10)}T00:00:00Z`)
  if ((nowMs - firstDay) / DAY_MS >= BUCKETS_MAX) return { questions, answers }
  const finer = questions.map((question) => ({
    ...question,
    path: question.path.replace(/from=.*$/, `from=${first.recorded_at.slice(0, 10)}T00:00:00Z`)
  }))
  return { questions: finer, answers: await Promise.all(finer.map(({ path }) => ask(path))) }
}

function factsOf({ points, gaps, instants, counts }, resolutionSeconds) {
  if (points === 0) return ''
  let highest = 0
  counts.forEach((value, index) => {
    if (value > counts[highest]) highest = index
  })
  return [
    resolutionSeconds === 0 ? 'Samples' : `Peak of every ${width(resolutionSeconds)}`,
    counted(points, 'point'),
    gaps === 0 ? 'no gap' : counted(gaps, 'gap'),
    `highest ${count(counts[highest])} ${describe('in', instants[highest], resolutionSeconds)}`
  ].join(' · ')
}

/** `2026-03-14 20:31 UTC`, or `Peak of the hour from 2026-03-14 20:00 UTC`. */
function describe(what, seconds, resolutionSeconds) {
  const at = instant(seconds * 1000)
  if (resolutionSeconds > 0) return `${what} the ${width(resolutionSeconds)} from ${at}`
  return what === 'in' ? `at ${at}` : at
}
