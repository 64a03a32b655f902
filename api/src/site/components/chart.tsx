import { alignedOf, areaPath, type Box, bandPath, linePath, type Point, type Series, scaleOf } from './series.js'
import { compact, count, DAY_MS, dayText, instantText } from './text.js'

/** Units of the drawing; it is stretched to the width of the page. */
const SIZE = { width: 1000, height: 1000 } as const
const TICKS = 5

export type ChartProps = {
  readonly series: readonly Series[]
  readonly fromMs: number
  readonly toMs: number
  /** What the chart shows, for readers who do not see it. */
  readonly label: string
  /** The address to which a selected span is added as `from` and `to`. */
  readonly zoomPath?: string
  /** The metric that the stream appends. */
  readonly live?: string
}

/**
 * A line chart as SVG, complete without script. The island draws the same points with a cursor and zoom; they stand
 * in a block of data behind the drawing.
 */
export function Chart({ series, fromMs, toMs, label, zoomPath, live }: ChartProps) {
  const [left, right] = [false, true].map((isRight) => scaleOf(highestOf(series, isRight)))
  const boxOf = ({ isRight = false }: Series): Box => ({
    fromMs,
    toMs,
    ...SIZE,
    max: (isRight ? right : left)?.max ?? 1
  })
  const { lines, max } = left ?? { lines: [], max: 1 }
  const dataMs = series.flatMap(({ points }) => points[0]?.[0] ?? [])
  const firstMs = dataMs.length === 0 ? toMs : Math.min(...dataMs)
  return (
    <figure
      class="chart"
      data-from={fromMs}
      data-to={toMs}
      {...(zoomPath === undefined ? {} : { 'data-zoom': zoomPath })}
      {...(live === undefined ? {} : { 'data-chart-live': live })}
    >
      {series.length > 1 ? (
        <p class="legend">
          {series.map(({ name, isDotted }, index) => (
            <span key={name} class={`key line-${index + 1}${isDotted ? ' dotted' : ''}`}>
              <bdi>{name}</bdi>
            </span>
          ))}
        </p>
      ) : null}
      <div class="plot">
        <svg role="img" aria-label={`${label}. ${factsOf(series[0])}`}>
          {lines.map((line) => (
            <g key={line}>
              <line
                class="grid"
                x1="0"
                x2="100%"
                y1={`${100 - (line / max) * 100}%`}
                y2={`${100 - (line / max) * 100}%`}
              />
              <text class="tick" x="2" y={`${100 - (line / max) * 100}%`} dy="-3">
                {compact(line)}
              </text>
            </g>
          ))}
          <svg viewBox={`0 0 ${SIZE.width} ${SIZE.height}`} preserveAspectRatio="none" aria-hidden="true">
            {series.map((each, index) => (
              <Line key={each.name} series={each} index={index} box={boxOf(each)} />
            ))}
          </svg>
          {firstMs - fromMs > (toMs - fromMs) / 10 ? (
            <text class="tick blank" x="20%" y="50%">
              {firstMs >= toMs ? 'no data in this range' : `no data before ${instantText(firstMs)}`}
            </text>
          ) : null}
        </svg>
      </div>
      <div class="ticks">
        {ticksOf(fromMs, toMs).map((ms) => (
          <time key={ms} datetime={new Date(ms).toISOString()} data-form={toMs - fromMs > 4 * DAY_MS ? 'day' : 'tick'}>
            {toMs - fromMs > 4 * DAY_MS ? dayText(ms) : instantText(ms)}
          </time>
        ))}
      </div>
      <ChartData series={series} />
    </figure>
  )
}

function Line({ series: { points, band, isDotted = false }, index, box }: { series: Series; index: number; box: Box }) {
  const name = `line-${index + 1}`
  return (
    <>
      {band === undefined ? null : <path class={`band ${name}`} d={bandPath(band, box)} />}
      {index === 0 && band === undefined && !isDotted ? (
        <path class={`area ${name}`} d={areaPath(points, box)} />
      ) : null}
      <path class={`${isDotted ? 'line dotted' : 'line'} ${name}`} d={linePath(points, box)} />
    </>
  )
}

/** The points for the island. A browser does not run a script of this type, so the policy permits it. */
function ChartData({ series }: { series: readonly Series[] }) {
  const { x, y } = alignedOf(series)
  const lines = series.map(({ name, isRight = false, isDotted = false, band }, index) => ({
    name,
    isRight,
    isDotted,
    y: y[index]?.map((value) => (value === undefined ? '' : value)),
    ...(band === undefined ? {} : { band: bandOn(x, band) })
  }))
  const json = JSON.stringify({ x, lines }).replaceAll('<', '\\u003c')
  // JSON without "<": the text of a script is not escaped.
  return <script type="application/json" class="points" dangerouslySetInnerHTML={{ __html: json }} />
}

function bandOn(x: readonly number[], band: NonNullable<Series['band']>) {
  const at = new Map(band.map(([ms, low, high]) => [Math.round(ms / 1000), [low, high] as const]))
  return [0, 1].map((side) => x.map((seconds) => at.get(seconds)?.[side] ?? null))
}

function highestOf(series: readonly Series[], isRight: boolean): number {
  return Math.max(
    0,
    ...series
      .filter((each) => (each.isRight ?? false) === isRight)
      .flatMap(({ points, band = [] }) => [...points.map(([, value]) => value ?? 0), ...band.map(([, , high]) => high)])
  )
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
