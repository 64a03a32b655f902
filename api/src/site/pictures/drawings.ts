import { escaped } from '../../pages/html.js'
import {
  areaPath,
  type Box,
  type Line,
  linePath,
  type StepSeries,
  scaleOf,
  stepEnds,
  stepsPath
} from '../components/series.js'
import { compact, dayText } from '../components/text.js'

/*
 * drawing   SVG that stands alone: with its colours and sizes, for embeds, badges and previews
 */

/** What the shipped font can draw: left out are emoji and the scripts of East Asia. */
const MISSING = /[^\u0020-\u06ff\u1e00-\u1fff\u2000-\u22ff\u2500-\u26ff]/gu
const FONT = 'font-family="DejaVu Sans, Verdana, sans-serif"'

/** Returns text that fits: without letters that the font lacks, cut at `max` characters. */
function fitting(text: string, max: number): string {
  const known = text.replace(MISSING, '').trim()
  return escaped(known.length > max ? `${known.slice(0, max - 1)}…` : known)
}

/** Returns a chart of 800 × 300: a line, or steps. */
export function chartDrawing({ title, chart, steps }: Card): string {
  const [line] = chart ?? []
  const days = [dayText(line?.fromMs ?? 0), `${dayText(line?.toMs ?? 0)} UTC`]
  const [from, to] = steps === undefined ? days : stepEnds(steps)
  const name = `${title}: ${steps?.label ?? 'players'}`
  const place = { x: 16, y: 44, width: 768, height: 220 }
  return `<svg xmlns="http://www.w3.org/2000/svg" width="800" height="300" viewBox="0 0 800 300" ${FONT}>
<rect width="800" height="300" fill="#fff"/>
<text x="16" y="28" font-size="16" font-weight="bold" fill="#18212d">${fitting(name, 60)}</text>
${steps === undefined ? plot(chart, place) : drawn(place, linePart(stepsPath(steps, place.width, place.height)))}
<text x="16" y="288" font-size="12" fill="#55616f">${from}</text>
<text x="784" y="288" font-size="12" fill="#55616f" text-anchor="end">${to} · Gamenet Stats</text>
</svg>
`
}

/** Returns a badge such as `Halo 2 | 5,837 playing`. */
export function badgeDrawing({ title, value }: Card): string {
  // DejaVu Sans at 11 px takes about 7 px a letter.
  const [left, right] = [title, value].map((text) => Math.min(fitting(text, 40).length, 40) * 7 + 12) as [
    number,
    number
  ]
  const text = (at: number, of: string) => `<text x="${at}" y="14" text-anchor="middle">${fitting(of, 40)}</text>`
  const name = escaped(`${title}: ${value}`)
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${left + right}" height="20" role="img" aria-label="${name}">
<rect width="${left + right}" height="20" rx="3" fill="#1668c7"/>
<path d="M3 0h${left - 3}v20H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3" fill="#3a4654"/>
<g fill="#fff" ${FONT} font-size="11">${text(left / 2, title)}${text(left + right / 2, value)}</g>
</svg>
`
}

export type Card = {
  readonly title: string
  readonly value: string
  readonly lines: readonly string[]
  readonly chart?: readonly Line[]
  readonly steps?: StepSeries
}

/** Returns the preview of a page: 1200 × 630. */
export function cardDrawing({ title, value, lines, chart }: Card): string {
  const texts = lines
    .slice(0, chart === undefined ? 6 : 2)
    .map(
      (line, index) => `<text x="64" y="${290 + index * 48}" font-size="32" fill="#a3afbd">${fitting(line, 60)}</text>`
    )
  return `<svg xmlns="http://www.w3.org/2000/svg" width="1200" height="630" viewBox="0 0 1200 630" ${FONT}>
<rect width="1200" height="630" fill="#0f141b"/>
<text x="64" y="110" font-size="48" font-weight="bold" fill="#e5eaf0">${fitting(title, 38)}</text>
<text x="64" y="220" font-size="84" font-weight="bold" fill="#5aa9ff">${fitting(value, 22)}</text>
${texts.join('\n')}
${plot(chart, { x: 64, y: 370, width: 1072, height: 180 })}
<text x="1136" y="600" font-size="26" fill="#a3afbd" text-anchor="end">Gamenet Stats</text>
</svg>
`
}

type Place = { readonly x: number; readonly y: number; readonly width: number; readonly height: number }

function plot([line]: readonly Line[] = [], place: Place): string {
  if (line === undefined) return ''
  const {
    series: { points },
    fromMs,
    toMs
  } = line
  const highest = Math.max(0, ...points.map(([, value]) => value ?? 0))
  const { max, lines } = scaleOf(highest)
  const { width, height } = place
  const box: Box = { fromMs, toMs, max, width, height }
  const grid = lines.map((line) => {
    const at = Math.round(height - (line / max) * height)
    return `<path d="M0 ${at}h${width}" stroke="#8b98a7" stroke-opacity=".3"/>
<text x="2" y="${at - 4}" font-size="12" fill="#7a8694">${compact(line)}</text>`
  })
  const area = `<path d="${areaPath(points, box)}" fill="#1668c7" fill-opacity=".18"/>`
  return drawn(place, grid.join('') + area + linePart(linePath(points, box)))
}

const drawn = ({ x, y }: Place, parts: string): string => `<g transform="translate(${x} ${y})">${parts}</g>`

function linePart(path: string): string {
  return `<path d="${path}" fill="none" stroke="#3b8be8" stroke-width="2" stroke-linejoin="round"/>`
}
