import { TITLE_FEATURES } from '@gamenet/schemas'
import fc from 'fast-check'

/** The facts of a home page, as numbers and texts. */
export type PageModel = {
  registered: number
  gamesSupported: number
  online: number
  titles: TitleModel[]
  style: PageStyle
}

export type TitleModel = {
  titleId: string
  name: string
  subtitle: string
  productCode: string
  image: string
  online: number
  lobbyPlayers: number
  sessions: number
  features: (typeof TITLE_FEATURES)[number][]
}

/** Differences in the markup of pages with the same facts. */
type PageStyle = {
  commas: boolean
  upperCaseIds: boolean
  linksByCode: boolean
  attributes: boolean
  quote: '"' | "'"
  comments: boolean
  boxes: number[]
}

/** A page's text, and the places of ids, numbers and lobbies, which a mutation must not change. */
export type RenderedPage = { html: string; facts: { first: number; next: number }[] }

const count = fc.oneof(fc.nat({ max: 30 }), fc.nat({ max: 3_000_000 }))
const oddName = fc.constantFrom(
  "Tom Clancy's",
  'A/B #1 & more: +',
  '<b>',
  '&amp;',
  'NHL 2K5',
  '"Q"',
  'Pokémon',
  '4 in 2'
)
const text = fc
  .oneof(oddName, fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 }))
  .map((raw) => raw.replace(/\s+/g, ' ').trim())
  .filter((shown) => shown !== '')

const title: fc.Arbitrary<TitleModel> = fc
  .record({
    titleId: fc.nat({ max: 0xffff_ffff }).map((id) => id.toString(16).padStart(8, '0')),
    name: text,
    subtitle: text,
    productCode: fc.nat({ max: 999 }).map((code) => `MS-${String(code).padStart(3, '0')}`),
    image: fc.nat({ max: 999 }).map((picture) => `/img/${picture}.png`),
    online: count,
    lobbies: fc.option(fc.record({ lobbyPlayers: count, sessions: fc.integer({ min: 1, max: 5000 }) })),
    features: fc.subarray([...TITLE_FEATURES])
  })
  .map(({ lobbies, ...rest }) => ({ ...rest, ...(lobbies ?? { lobbyPlayers: 0, sessions: 0 }) }))

/** Any home page on which the number of supported games is the number of rows. */
export const pageModel: fc.Arbitrary<PageModel> = fc
  .record({
    registered: count,
    online: count,
    titles: fc.uniqueArray(title, { selector: ({ titleId }) => titleId, minLength: 1, maxLength: 8 }),
    style: fc.record({
      commas: fc.boolean(),
      upperCaseIds: fc.boolean(),
      linksByCode: fc.boolean(),
      attributes: fc.boolean(),
      quote: fc.constantFrom('"' as const, "'" as const),
      comments: fc.boolean(),
      boxes: fc.shuffledSubarray([0, 1, 2, 3, 4], { minLength: 5 })
    })
  })
  .map((model) => ({ ...model, gamesSupported: model.titles.length }))

/** Writes a model as the network writes its home page. */
export function renderHomePage(model: PageModel): RenderedPage {
  const page = createWriter(model.style)
  page.markup(`<!doctype html>\n<html><head><title>Network</title><style>td { color: red }</style></head><body>\n`)
  page.comment('the numbers')
  page.markup(`<section id=q:connect:q><div class=q:row:q>\n`)
  const boxes = [
    () => page.box(model.registered, 'Registered Users'),
    () => page.box(model.gamesSupported, 'Games Supported'),
    () => page.box(model.online, 'Users Online Now'),
    () => page.markup('<div><p>Welcome</p></div>\n'),
    () => page.markup('<div><h3>soon</h3><p>Tournaments</p></div>\n')
  ]
  for (const box of model.style.boxes) boxes[box]?.()
  page.markup(`</div></section>\n<section id=q:games:q><table class=q:table:q><thead><tr>`)
  page.markup('<th>Name</th><th>ID</th><th>Online</th><th>Active</th><th>Features</th></tr></thead><tbody>\n')
  for (const row of model.titles) {
    page.comment('a row')
    page.row(row)
  }
  page.markup('</tbody></table></section>\n')
  page.comment('the end')
  page.markup('<script>let x = 1</script></body></html>\n')
  return page.rendered()
}

/** Writes the titles of a model as the network writes its page of all games. */
export function renderGamesPage(model: PageModel): RenderedPage {
  const page = createWriter(model.style)
  page.markup('<!doctype html>\n<html><head><title>Games</title></head><body><h1>Games</h1>\n')
  page.markup('<table class=q:table:q><thead><tr><th>Name</th><th>ID</th></tr></thead><tbody>\n')
  for (const row of model.titles) {
    page.comment('a row')
    page.markup('<tr>\n')
    page.listed(row)
    page.markup('</tr>\n')
  }
  page.markup('</tbody></table>\n')
  page.comment('the end')
  page.markup('</body></html>\n')
  return page.rendered()
}

function createWriter(style: PageStyle) {
  let html = ''
  const facts: RenderedPage['facts'] = []
  const right = style.attributes ? ' class=q:text-right:q' : ''
  const writer = {
    markup(piece: string) {
      html += piece.replaceAll('q:', style.quote).replaceAll(':q', style.quote)
    },
    text(piece: string) {
      html += escaped(piece)
    },
    fact(piece: string) {
      facts.push({ first: html.length, next: html.length + piece.length })
      html += piece
    },
    comment(piece: string) {
      if (style.comments) html += `<!-- ${piece} -->\n`
    },
    box(number: number, label: string) {
      writer.markup('<div><h3>')
      writer.fact(written(number, style))
      writer.markup(`</h3><p>${label}</p></div>\n`)
    },
    /** The two cells that both pages have. */
    listed(row: TitleModel) {
      const link = `https://upstream.example/games/${style.linksByCode ? row.productCode : row.titleId}`
      writer.markup(`<td><a href=q:${link}:q><img src=q:`)
      writer.fact(row.image)
      writer.markup(`:q></a> <a href=q:${link}:q>`)
      writer.text(row.name)
      writer.markup(`</a><br /><small>`)
      writer.text(row.subtitle)
      writer.markup(`</small></td>\n<td>`)
      writer.fact(row.productCode)
      writer.markup('<br />\n<small>')
      writer.fact(style.upperCaseIds ? row.titleId.toUpperCase() : row.titleId)
      writer.markup('</small></td>\n')
    },
    row(row: TitleModel) {
      writer.markup('<tr>\n')
      writer.listed(row)
      writer.markup(`<td${right}>`)
      writer.fact(written(row.online, style))
      writer.markup(`</td>\n<td${right}>`)
      writer.fact(row.sessions === 0 ? '-' : lobbies(row, style))
      writer.markup('</td>\n<td>')
      for (const feature of TITLE_FEATURES) {
        writer.markup(row.features.includes(feature) ? '<i class=q:icon:q></i>' : '<i class=q:icon invisible:q></i>')
      }
      writer.markup('</td>\n</tr>\n')
    },
    rendered: (): RenderedPage => ({ html, facts })
  }
  return writer
}

function lobbies({ lobbyPlayers, sessions }: TitleModel, style: PageStyle): string {
  return `${written(lobbyPlayers, style)} in ${written(sessions, style)} session${sessions === 1 ? '' : 's'}`
}

function written(number: number, { commas }: PageStyle): string {
  return commas ? number.toLocaleString('en-US') : String(number)
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
