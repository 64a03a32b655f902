import { timeText } from '@gamenet/schemas'
import fc from 'fast-check'
import type { RenderedPage } from '../page-model.js'

/** The facts of a game page, as numbers and texts. */
export type GamePageModel = {
  matches: { hostName: string; map: string; currentPlayers: number; maxPlayers: number }[]
  /** First the one that is shown. */
  boards: { leaderboardId: number; name: string }[]
  columns: 3 | 7 | 8
  isTimes: boolean
  entries: { playerName: string; rank: number; score: number; details: string[] }[]
  style: { attributes: boolean; comments: boolean; placeholder: boolean; bodies: boolean; headings: boolean }
}

/** The names of an entry's cells between name and score, by the number of cells. */
export const DETAIL_NAMES: Readonly<Record<GamePageModel['columns'], readonly string[]>> = {
  3: [],
  7: ['date', 'location', 'circuit', 'car'],
  8: ['firsts', 'seconds', 'thirds', 'races', 'kudosRank']
}

const text = fc
  .oneof(
    fc.constantFrom(
      '<b>',
      '&amp;',
      "Tom's",
      '"Q"',
      'שלום',
      'e\u0301',
      'a\u00a0b',
      '1',
      '3/16',
      '<!--',
      '</td>',
      '</table>'
    ),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
  )
  .map((raw) => raw.replace(/[\0\t\n\f\r ]+/g, ' ').replace(/^ | $/g, ''))
  .filter((shown) => shown !== '')
const players = fc.nat({ max: 20 })

/** Any game page with at least one match, one board and one entry; another test has empty tables. */
export const gamePageModel: fc.Arbitrary<GamePageModel> = fc
  .record({
    matches: fc.array(fc.record({ hostName: text, map: text, currentPlayers: players, maxPlayers: players }), {
      minLength: 1,
      maxLength: 4
    }),
    boards: fc.uniqueArray(fc.record({ leaderboardId: fc.nat({ max: 4_294_967_295 }), name: text }), {
      selector: ({ leaderboardId }) => leaderboardId,
      minLength: 1,
      maxLength: 5
    }),
    columns: fc.constantFrom(3 as const, 7 as const, 8 as const),
    isTimes: fc.boolean(),
    entries: fc.array(
      fc.record({
        playerName: text,
        rank: fc.integer({ min: -3, max: 2000 }),
        score: fc.nat({ max: 3_600_000 }),
        details: fc.array(text, { minLength: 5, maxLength: 5 })
      }),
      { minLength: 1, maxLength: 8 }
    ),
    style: fc.record({
      attributes: fc.boolean(),
      comments: fc.boolean(),
      placeholder: fc.boolean(),
      bodies: fc.boolean(),
      headings: fc.boolean()
    })
  })
  .map((model) => ({ ...model, style: { ...model.style, headings: model.style.headings || model.columns === 7 } }))

/** The text of an entry's last cell. */
export function ratingText(model: GamePageModel, score: number): string {
  return model.isTimes ? timeText(score) : `${score} points`
}

/** Writes a model as the network writes its game page; facts are ids, ranks, names, scores and players. */
export function renderGamePage(model: GamePageModel): RenderedPage {
  let html = ''
  const facts: RenderedPage['facts'] = []
  const { style, columns } = model
  const markup = (piece: string) => {
    html += piece
  }
  const comment = (piece: string) => {
    if (style.comments) html += `<!-- ${piece} -->\n`
  }
  const fact = (piece: string) => {
    const written = escaped(piece)
    facts.push({ first: html.length, next: html.length + written.length })
    html += written
  }
  const table = (headings: readonly string[], rows: readonly (() => void)[]) => {
    markup(`<table class="table table-striped"${style.attributes ? ' id="t"' : ''}>`)
    if (style.headings) markup(`<thead><tr>${headings.map((heading) => `<th>${heading}</th>`).join('')}</tr></thead>`)
    if (style.bodies) markup('<tbody>\n')
    for (const row of rows) {
      markup(style.attributes ? '<tr class="row">' : '<tr>')
      row()
      markup('</tr>\n')
      comment('a row')
    }
    if (style.bodies) markup('</tbody>')
    markup('</table>\n')
  }
  const cell = style.attributes ? '<td class="c">' : '<td>'

  markup('<!doctype html>\n<html><head><title>Game</title></head><body><h1>Game</h1>\n')
  comment('matches')
  table(
    ['Host', 'Map', 'Players'],
    model.matches.map(({ hostName, map, currentPlayers, maxPlayers }) => () => {
      markup(cell)
      fact(hostName)
      markup(`</td>${cell}`)
      markup(escaped(map))
      markup('</td><td class="text-right">')
      fact(`${currentPlayers}/${maxPlayers}`)
      markup('</td>')
    })
  )
  comment('boards')
  markup('<form><select id="leaderboard-select">\n')
  if (style.placeholder) markup('<option value="">Choose one</option>\n')
  for (const [index, { leaderboardId, name }] of model.boards.entries()) {
    markup('<option value="')
    fact(String(leaderboardId))
    markup(index === 0 ? '" selected>' : '">')
    fact(name)
    markup('</option>\n')
  }
  markup('</select></form>\n')
  table(
    Array.from({ length: columns }, (_, i) => `Column ${i}`),
    model.entries.map(({ rank, playerName, details, score }) => () => {
      const texts = [String(rank), playerName, ...details.slice(0, columns - 3), ratingText(model, score)]
      for (const each of texts) {
        markup(cell)
        fact(each)
        markup('</td>')
      }
    })
  )
  comment('the end')
  markup('</body></html>\n')
  return { html, facts }
}

function escaped(raw: string): string {
  return raw.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
