import assert from 'node:assert/strict'
import { runs } from '@gamenet/engines/testing'
import fc from 'fast-check'
import { test } from 'tap'
import { type GamesPage, parseGamesPage } from '../../src/pages/games-page.js'
import { type PageModel, pageModel, renderGamesPage } from '../page-model.js'
import { mutation } from '../page-mutation.js'

const ADDRESS = 'https://upstream.example/games'

test('every rendered page of games is parsed to its model', async () => {
  fc.assert(
    fc.property(pageModel, (model) => {
      const titles = model.titles.map(({ titleId, name, subtitle, productCode, image }) => ({
        titleId,
        name,
        subtitle,
        productCode,
        image: `https://upstream.example${image}`
      }))
      assert.deepEqual(parseGamesPage(renderGamesPage(model).html, ADDRESS), {
        ok: true,
        page: { titles, unreadable: [] }
      })
    }),
    runs(40)
  )
})

test('a page of games that is truncated at any byte describes nothing before its table is closed, and nothing wrongly', async () => {
  fc.assert(
    fc.property(pageModel, fc.nat(), (model, at) => {
      const { html } = renderGamesPage(model)
      const length = at % html.length
      const parsed = parseGamesPage(html.slice(0, length), ADDRESS)
      if (length < html.indexOf('</table>') + '</table>'.length) return !parsed.ok
      return parsed.ok && parsed.page.titles.length === model.titles.length && mixedUp(parsed.page, model).length === 0
    }),
    runs(50)
  )
})

test('deleted, doubled, swapped or inserted markup never mixes up two titles', async () => {
  let refused = 0
  let partial = 0
  let whole = 0
  fc.assert(
    fc.property(pageModel, fc.array(mutation, { minLength: 1, maxLength: 3 }), (model, mutations) => {
      const mutated = mutations.reduce((page, mutate) => mutate(page), renderGamesPage(model))
      const parsed = parseGamesPage(mutated.html, ADDRESS)
      if (!parsed.ok) refused += 1
      else if (parsed.page.titles.length < model.titles.length) partial += 1
      else whole += 1
      const wrong = parsed.ok ? mixedUp(parsed.page, model) : []
      if (wrong.length > 0) throw new Error(`${wrong.join('; ')}\n${mutated.html}`)
    }),
    // Shrinking would parse for minutes, and a failing page is small enough to read.
    { ...runs(100), endOnFailure: true }
  )
  // If no mutation reached the parser, or all pages were refused, this property would prove nothing.
  for (const reached of [refused, partial, whole]) {
    if (reached < 4)
      throw new Error(`the mutations are lopsided: ${refused} refused, ${partial} partial, ${whole} whole`)
  }
})

test('a row that has parts of two titles describes neither', async (t) => {
  const cell = (titleId: string, code: string, name: string) =>
    `<a href="/games/${code}"><img src="/${titleId}.png"></a> <a href="/games/${code}">${name}</a><br><small>${name} too</small>`
  const [one, other] = [cell('4d530064', 'MS-100', 'One'), cell('4d530065', 'MS-101', 'Other')]
  const parsedRow = (first: string) =>
    parseGamesPage(
      `<table><tbody><tr><td>${first}</td><td>MS-101<br><small>4D530065</small></td></tr></tbody></table>`,
      ADDRESS
    )
  t.match(parsedRow(one), { ok: false, reason: /the link is to product MS-100, the code next to it is "MS-101"/ })
  t.match(parsedRow(one + other), { ok: false, reason: /expected one link with a name, found 2/ })
  t.match(parsedRow(`${other}<small>One too</small>`), { ok: false, reason: /expected one subtitle, found 2/ })
  const parsed = parsedRow(other.replace('href="/games/MS-101"', 'href="/games/MS-100"'))
  t.match(parsed, { ok: true, page: { titles: [{ titleId: '4d530065', name: 'Other' }] } })
  t.notMatch(parsed, { page: { titles: [{ image: String }] } }, 'nor is a picture that leads elsewhere its own')
})

test('no text breaks the parser of the page of games', async () => {
  const soup = fc.array(
    fc.oneof(
      fc.constantFrom('<table>', '<tbody>', '<tr>', '<td>', '</table>', '<small>4d530064', '<a href=/games/4d530064>x'),
      fc.constantFrom('<section id=games>', '<br>', '<img src=http://[>', '<svg>', '<template>', '<select>'),
      fc.string({ unit: 'binary' })
    ),
    { maxLength: 60 }
  )
  fc.assert(
    fc.property(soup, (pieces) => typeof parseGamesPage(pieces.join(''), ADDRESS).ok === 'boolean'),
    runs(50)
  )
})

/**
 * Returns how a parsed page contradicts its model: a title that the model lacks, that occurs twice, or that has values of
 * another one. Text that a mutation inserted next to a name is part of it for any reader.
 */
function mixedUp(page: GamesPage, model: PageModel): string[] {
  const found: string[] = []
  for (const read of page.titles) {
    const written = model.titles.find(({ titleId }) => titleId === read.titleId)
    if (written === undefined) found.push(`title ${read.titleId} was never written`)
    for (const field of ['name', 'subtitle', 'productCode', 'image'] as const) {
      const value = field === 'image' ? read.image?.replace('https://upstream.example', '') : read[field]
      const own: readonly unknown[] = Object.values(written ?? {})
      const isAnothers = !own.includes(value) && model.titles.some((title) => title[field] === value)
      if (isAnothers) found.push(`${field} of ${read.titleId} is ${JSON.stringify(value)}`)
    }
  }
  if (new Set(page.titles.map(({ titleId }) => titleId)).size !== page.titles.length) found.push('a title stands twice')
  return found
}
