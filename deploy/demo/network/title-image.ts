import { chance, chanceBelow, stream } from './chance.js'
import type { DemoTitle } from './titles.js'

/** Emblems in a square of 64 × 64, drawn with the current colour. */
const EMBLEMS = [
  '<path d="M32 9l7 15 16 2-12 11 3 17-14-8-14 8 3-17L9 26l16-2z"/>',
  '<path d="M32 8l20 7v14c0 14-8 22-20 27C20 51 12 43 12 29V15z"/>',
  '<path d="M6 50l17-30 10 16 6-9 19 23z"/><circle cx="46" cy="17" r="6"/>',
  '<path d="M37 6L15 36h13l-4 22 24-32H34z"/>',
  '<path d="M20 8v48h5V36l24-1-7-12 7-13z"/>',
  '<g fill="none" stroke="currentColor" stroke-width="5"><circle cx="32" cy="32" r="17"/><path d="M32 6v15M32 43v15M6 32h15M43 32h15"/></g>',
  '<g fill="none" stroke="currentColor" stroke-width="6"><circle cx="32" cy="32" r="21"/><path d="M32 32v21M32 32L13 22M32 32l19-10"/></g>',
  '<path d="M32 8c13 12 18 21 14 31-3 9-9 14-14 17-5-3-11-8-14-17-4-10 1-19 14-31zm0 17c-5 6-7 11-5 16l5 6 5-6c2-5 0-10-5-16z" fill-rule="evenodd"/>',
  '<path d="M6 40c9-14 17-14 26-4s17 10 26-4v8c-9 14-17 14-26 4s-17-10-26 4zM6 24c9-14 17-14 26-4s17 10 26-4v8c-9 14-17 14-26 4s-17-10-26 4z"/>',
  '<path d="M12 48V20l11 11 9-19 9 19 11-11v28z"/>'
]
/** Angles between the two colours of a picture. */
const HUES_APART = [30, 60, 150, 180, 210, 300]

/** Returns a title's picture: an emblem on two colours, with the title's initials; another one for each title. */
export function titleImage(seed: number, title: DemoTitle): string {
  const { index } = title
  const pick = (below: number, use: number) => chanceBelow(below, seed, stream.titleImage, index, use)
  const hue = (index * 47) % 360
  const other = (hue + (HUES_APART[pick(HUES_APART.length, 1)] ?? 60)) % 360
  const emblem = EMBLEMS[pick(EMBLEMS.length, 0)] ?? ''
  const turn = Math.floor(30 * chance(seed, stream.titleImage, index, 2)) - 15
  const initials = title.name.match(/(?<![\p{L}\p{N}])[\p{L}\p{N}]/gu)?.slice(0, 3) ?? []
  return `<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64" viewBox="0 0 64 64">
<defs><linearGradient id="g" x2="1" y2="1"><stop stop-color="hsl(${hue}, 55%, 38%)"/><stop offset="1" stop-color="hsl(${other}, 60%, 24%)"/></linearGradient></defs>
<rect width="64" height="64" rx="8" fill="url(#g)"/>
<g color="hsl(${other}, 80%, 78%)" fill="currentColor" opacity="0.55" transform="rotate(${turn} 32 32)">${emblem}</g>
<text x="32" y="41" font-family="sans-serif" font-weight="bold" font-size="${initials.length > 2 ? 20 : 24}" fill="#fff" text-anchor="middle">${initials.join('').toUpperCase()}</text>
</svg>
`
}
