import assert from 'node:assert/strict'
import { runs } from '@gamenet/engines/testing'
import fc from 'fast-check'
import { test } from 'tap'
import { type HomePage, parseHomePage } from '../../src/pages/home-page.js'
import { type PageModel, pageModel, renderHomePage } from '../page-model.js'
import { mutation } from '../page-mutation.js'

const ADDRESS = 'https://upstream.example/'

test('every rendered page is parsed to its model', async () => {
  fc.assert(
    fc.property(pageModel, (model) => {
      const parsed = parseHomePage(renderHomePage(model).html, ADDRESS)
      const { registered, gamesSupported, online } = model
      const titles = model.titles.map(({ image, ...title }) => ({
        ...title,
        image: `https://upstream.example${image}`
      }))
      assert.deepEqual(parsed, {
        ok: true,
        page: { registered, gamesSupported, online, titles, unreadable: [], incomplete: [] }
      })
    }),
    runs(50)
  )
})

test('a page that is truncated at any byte gives no wrong sample, and none before its table is closed', async () => {
  fc.assert(
    fc.property(pageModel, fc.nat(), (model, at) => {
      const { html } = renderHomePage(model)
      const length = at % html.length
      const parsed = parseHomePage(html.slice(0, length), ADDRESS)
      if (length < html.indexOf('</table>') + '</table>'.length) return !parsed.ok
      return parsed.ok && differences(parsed.page, model).length === 0
    }),
    runs(100)
  )
})

test('deleted, doubled, swapped or inserted markup never changes a number', async () => {
  let refused = 0
  let partial = 0
  let whole = 0
  fc.assert(
    fc.property(pageModel, fc.array(mutation, { minLength: 1, maxLength: 3 }), (model, mutations) => {
      const mutated = mutations.reduce((page, mutate) => mutate(page), renderHomePage(model))
      const parsed = parseHomePage(mutated.html, ADDRESS)
      if (!parsed.ok) refused += 1
      else if (parsed.page.unreadable.length > 0) partial += 1
      else whole += 1
      const wrong = parsed.ok ? differences(parsed.page, model) : []
      if (wrong.length > 0) throw new Error(`${wrong.join('; ')}\n${mutated.html}`)
    }),
    // Shrinking would parse for minutes, and a failing page is small enough to read.
    { ...runs(150), endOnFailure: true }
  )
  // If no mutation reached the parser, or all pages were refused, this property would prove nothing.
  for (const reached of [refused, partial, whole]) {
    if (reached < 6)
      throw new Error(`the mutations are lopsided: ${refused} refused, ${partial} partial, ${whole} whole`)
  }
})

test('a row with a missing cell is not a sample, and all other rows are', async () => {
  fc.assert(
    fc.property(pageModel, fc.nat(), fc.nat({ max: 4 }), (model, title, cell) => {
      const { html } = renderHomePage(model)
      const place = title % model.titles.length
      const rows = html.split('<tr>\n')
      const cells = (rows[place + 1] ?? '').split(/(?<=<\/td>\n)/)
      rows[place + 1] = cells.filter((_, at) => at !== cell).join('')
      const parsed = parseHomePage(rows.join('<tr>\n'), ADDRESS)
      if (model.titles.length === 1) return !parsed.ok
      if (!parsed.ok) return false
      assert.equal(parsed.page.unreadable.length, 1)
      assert.deepEqual(
        parsed.page.titles.map(({ titleId }) => titleId),
        model.titles.filter((_, at) => at !== place).map(({ titleId }) => titleId)
      )
      return differences(parsed.page, model).length === 0
    }),
    runs(50)
  )
})

test('no text breaks the parser', async () => {
  const soup = fc.array(
    fc.oneof(
      fc.constantFrom('<table>', '<tbody>', '<tr>', '<td>', '</table>', '<section id=games>', '<section id=connect>'),
      fc.constantFrom('<div class=row>', '<h3>1', '<p>Users Online Now', '<a>', '<svg>', '<template>', '<select>'),
      fc.string({ unit: 'binary' })
    ),
    { maxLength: 60 }
  )
  fc.assert(
    fc.property(soup, (pieces) => typeof parseHomePage(pieces.join(''), ADDRESS).ok === 'boolean'),
    runs(75)
  )
})

test('a page with extremely deep nesting is unreadable; the process does not crash', async (t) => {
  const parsed = parseHomePage('<table><td>'.repeat(100_000), ADDRESS)
  t.equal(parsed.ok, false)
})

/** Returns how a parsed page contradicts its model; a missing sample that leaves a trace is not a contradiction. */
function differences(page: HomePage, model: PageModel): string[] {
  const found: string[] = []
  for (const field of ['registered', 'online', 'gamesSupported'] as const) {
    if (page[field] !== undefined && page[field] !== model[field])
      found.push(`${field} is ${page[field]}, not ${model[field]}`)
  }
  for (const { titleId, online, sessions, lobbyPlayers } of page.titles) {
    const written = model.titles.find((title) => title.titleId === titleId)
    const sameLobbies =
      sessions === undefined || (written?.sessions === sessions && written.lobbyPlayers === lobbyPlayers)
    const same = written?.online === online && sameLobbies
    if (!same) found.push(`title ${titleId} reads ${online}, ${lobbyPlayers} in ${sessions}`)
  }
  if (new Set(page.titles.map(({ titleId }) => titleId)).size !== page.titles.length) found.push('a title stands twice')
  // A broken comment can hide a whole row. The source notices it by the number of supported games.
  const lost = model.titles.length - page.titles.length
  if (lost > 0 && page.unreadable.length === 0 && page.gamesSupported === page.titles.length)
    found.push(`${lost} rows are lost without a trace`)
  return found
}
