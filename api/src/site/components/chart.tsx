import {
  alignedOf,
  areaPath,
  type Box,
  bandPath,
  type Line,
  linePath,
  type Point,
  type Series,
  type StepSeries,
  scaleOf,
  stepEnds,
  stepsPath
} from './series.js'
import { compact, count, DAY_MS, dayText, instantText } from './text.js'

/** Units of the drawing; it is stretched to the width of the page. */
const SIZE = { width: 1000, height: 1000 } as const
const TICKS = 5

export type ChartProps = {
  /** The first says which span is shown. */
  readonly lines: readonly Line[]
  /** What the chart shows, for readers who do not see it. */
  readonly label: string
  /** Whether a selected span is another address. */
  readonly zooms?: boolean
  /** The metric that the stream appends. */
  readonly live?: string
}

/**
 * A line chart as SVG, complete without script. The island adds a cursor and the selection of a span; the points that
 * it needs stand in a block of data behind the drawing.
 */
export function Chart({ lines, label, zooms, live }: ChartProps) {
  const { fromMs = 0, toMs = 0 } = lines[0] ?? {}
  const series = lines.map((line) => line.series)
  const [left, right] = [false, true].map((isRight) => scaleOf(highestOf(series, isRight)))
  const maxOf = ({ isRight = false }: Series) => (isRight ? right : left)?.max ?? 1
  const form = toMs - fromMs > 4 * DAY_MS ? 'day' : 'tick'
  const firstMs = Math.min(toMs, ...series.flatMap(({ points }) => points[0]?.[0] ?? []))
  return (
    <figure class="chart" data-from={fromMs} data-to={toMs} data-zoom={zooms} data-chart-live={live}>
      <Legend series={series} />
      <div class="plot">
        <svg role="img" aria-label={`${label}. ${factsOf(series[0])}`}>
          {left === undefined ? null : <Ticks scale={left} />}
          {right === undefined ? null : <Ticks scale={right} isRight />}
          <svg class="lines" viewBox={`0 0 ${SIZE.width} ${SIZE.height}`} preserveAspectRatio="none" aria-hidden="true">
            {series.map((each, index) => (
              <Drawn key={each.name} series={each} index={index} box={{ fromMs, toMs, ...SIZE, max: maxOf(each) }} />
            ))}
          </svg>
          {firstMs - fromMs > (toMs - fromMs) / 10 ? (
            <text class="tick" x="20%" y="50%">
              {firstMs >= toMs ? 'no data in this range' : `no data before ${instantText(firstMs)}`}
            </text>
          ) : null}
        </svg>
      </div>
      <div class="ticks">
        {ticksOf(fromMs, toMs).map((ms) => (
          <time key={ms} datetime={new Date(ms).toISOString()} data-form={`${ms === toMs ? 'last-' : ''}${form}`}>
            {form === 'day' ? dayText(ms) : instantText(ms)}
            {ms === toMs ? ' UTC' : ''}
          </time>
        ))}
      </div>
      <ChartData series={series} maxOf={maxOf} />
    </figure>
  )
}

function Legend({ series }: { series: readonly Series[] }) {
  if (series.length < 2) return null
  return (
    <p class="legend">
      {series.map(({ name, isDotted }, index) => (
        <span key={name} class={`key line-${index + 1}${isDotted ? ' dotted' : ''}`}>
          <bdi>{name}</bdi>
        </span>
      ))}
    </p>
  )
}

function Ticks({ scale: { lines, max }, isRight = false }: { scale: ReturnType<typeof scaleOf>; isRight?: boolean }) {
  return (
    <>
      {lines.map((line) => {
        const y = `${100 - (line / max) * 100}%`
        return (
          <g key={line}>
            {isRight ? null : <line class="grid" x1="0" x2="100%" y1={y} y2={y} />}
            <text class="tick" text-anchor={isRight ? 'end' : undefined} x={isRight ? '100%' : '2'} y={y} dy="-3">
              {compact(line)}
            </text>
          </g>
        )
      })}
    </>
  )
}

function Drawn({ series: { points, band, isDotted }, index, box }: { series: Series; index: number; box: Box }) {
  const name = `line-${index + 1}`
  const isFilled = index === 0 && band === undefined && !isDotted
  return (
    <>
      {band === undefined ? null : <path class={`band ${name}`} d={bandPath(band, box)} />}
      {isFilled ? <path class={`band ${name}`} d={areaPath(points, box)} /> : null}
      <path class={`${isDotted ? 'line dotted' : 'line'} ${name}`} d={linePath(points, box)} />
    </>
  )
}

/** The points for the island. A browser does not run a script of this type, so the policy permits it. */
function ChartData({ series, maxOf }: { series: readonly Series[]; maxOf: (series: Series) => number }) {
  const { x, y } = alignedOf(series)
  const lines = series.map((each, index) => ({
    name: each.name,
    max: maxOf(each),
    // JSON has no undefined: another line has a point at this instant.
    y: y[index]?.map((value) => value ?? (value === null ? null : '')),
    ...(each.band === undefined ? {} : { band: bandOn(x, each.band) })
  }))
  const json = JSON.stringify({ x, lines }).replaceAll('<', '\\u003c')
  // JSON without "<": the text of a script is not escaped.
  return <script type="application/json" class="points" dangerouslySetInnerHTML={{ __html: json }} />
}

/** The band as a low and a high at each instant. */
function bandOn(x: readonly number[], band: NonNullable<Series['band']>) {
  const at = new Map(band.map(([ms, low, high]) => [Math.round(ms / 1000), [low, high] as const]))
  return x.map((seconds) => at.get(seconds) ?? null)
}

function highestOf(series: readonly Series[], isRight: boolean): number {
  const of = series.filter((each) => (each.isRight ?? false) === isRight)
  const values = of.flatMap(({ points, band = [] }) => [
    ...points.map(([, value]) => value ?? 0),
    ...band.map(([, , high]) => high)
  ])
  return Math.max(0, ...values)
}

function factsOf(series: Series | undefined): string {
  const known = (series?.points ?? []).filter((point): point is [number, number] => point[1] !== null)
  const last = known.at(-1)
  if (last === undefined) return 'No data.'
  const highest = known.reduce((best, point) => (point[1] > best[1] ? point : best))
  const textAt = ([ms, value]: [number, number]) => `${count(value)} on ${instantText(ms)} UTC`
  return `Highest ${textAt(highest)}, last ${textAt(last)}`
}

function ticksOf(fromMs: number, toMs: number): number[] {
  return Array.from({ length: TICKS }, (_, index) => fromMs + ((toMs - fromMs) * index) / (TICKS - 1))
}

/** A trend line of a table: a few values without axes. */
export function Trend({ values, label }: { values: readonly (number | null)[]; label: string }) {
  if (values.length < 2) return null
  const points = values.map((value, index): Point => [index, value])
  const max = Math.max(1, ...values.map((value) => value ?? 0))
  const box: Box = { fromMs: 0, toMs: values.length - 1, max, width: 90, height: 24 }
  return (
    <svg class="trend" viewBox="-1 -1 92 26" role="img" aria-label={label}>
      <path class="line line-1" d={linePath(points, box)} />
    </svg>
  )
}

/** A value over time as steps; nothing while there is one value. */
export function Steps(steps: StepSeries) {
  const { label, points, textOf } = steps
  if (points.length < 2) return null
  const [first = 0, last = 0] = [points[0]?.[1], points.at(-1)?.[1]]
  return (
    <figure>
      <svg
        class="steps"
        viewBox="-4 -8 608 116"
        role="img"
        aria-label={`${label} from ${textOf(first)} to ${textOf(last)}`}
      >
        <path class="line line-1" d={stepsPath(steps, 600, 100)} />
      </svg>
      <figcaption class="ticks">
        {stepEnds(steps).map((text) => (
          <span key={text}>{text}</span>
        ))}
      </figcaption>
    </figure>
  )
}
