import assert from 'node:assert/strict'
import { runs } from '@gamenet/engines/testing'
import fc from 'fast-check'
import { test } from 'tap'
import { type GamePage, parseGamePage } from '../../src/pages/game-page.js'
import { mutation } from '../page-mutation.js'
import { DETAIL_NAMES, type GamePageModel, gamePageModel, ratingText, renderGamePage } from './game-page-model.js'

test('every rendered game page is parsed to its model', async () => {
  fc.assert(
    fc.property(gamePageModel, (model) => {
      assert.deepEqual(parseGamePage(renderGamePage(model).html), { ok: true, page: pageOf(model) })
    }),
    runs(50)
  )
})

test('of a game page that is truncated at any byte, each part is complete or unreadable', async () => {
  fc.assert(
    fc.property(gamePageModel, fc.nat(), (model, at) => {
      const { html } = renderGamePage(model)
      const parsed = parseGamePage(html.slice(0, at % html.length))
      if (!parsed.ok) return
      const whole = pageOf(model)
      if (parsed.page.matches.ok) assert.deepEqual(parsed.page.matches, whole.matches)
      if (parsed.page.board.ok) assert.deepEqual(parsed.page.board, whole.board)
      if (parsed.page.boards.ok && parsed.page.boards.value !== undefined) {
        assert.deepEqual(parsed.page.boards, whole.boards)
      }
    }),
    runs(75)
  )
})

test('deleted, doubled, swapped or inserted markup never removes a row or mixes up two', async () => {
  const reached = { matches: 0, boards: 0, board: 0, refused: 0 }
  fc.assert(
    fc.property(gamePageModel, fc.array(mutation, { minLength: 1, maxLength: 3 }), (model, mutations) => {
      const mutated = mutations.reduce((page, mutate) => mutate(page), renderGamePage(model))
      const parsed = parseGamePage(mutated.html)
      if (!parsed.ok) return
      const { matches, boards, board } = parsed.page
      for (const part of ['matches', 'boards', 'board'] as const) reached[part] += Number(parsed.page[part].ok)
      reached.refused += Number(!matches.ok || !boards.ok || !board.ok)
      const wrong = differences(parsed.page, model)
      if (wrong.length > 0) throw new Error(`${wrong.join('; ')}\n${mutated.html}`)
    }),
    // Shrinking would parse for minutes, and a failing page is small enough to read.
    { ...runs(100), endOnFailure: true }
  )
  // If no mutation reached the parser, or all pages were refused, this property would prove nothing.
  for (const [what, times] of Object.entries(reached)) {
    assert.ok(times >= 20, `the mutations are lopsided: ${what} ${times} times of 200`)
  }
})

test('a missing cell makes only its part unreadable: in a board row the board, in a lobby the matches', async () => {
  fc.assert(
    fc.property(gamePageModel, fc.nat(), fc.nat(), fc.boolean(), (model, table, cell, isBoard) => {
      const { html } = renderGamePage(model)
      const from = isBoard ? html.lastIndexOf('<table') : html.indexOf('<table')
      const next = html.indexOf('</table>', from)
      const cells = [...html.slice(from, next).matchAll(/<td[^>]*>[^<]*<\/td>/g)]
      const lost = cells[(table * 8 + cell) % cells.length]
      assert.ok(lost)
      const without = html.slice(0, from + lost.index) + html.slice(from + lost.index + lost[0].length)
      const parsed = parseGamePage(without)
      assert.ok(parsed.ok)
      const whole = pageOf(model)
      const isKnownByHeading = model.style.headings || (isBoard ? model.entries : model.matches).length > 1
      const isNoBoard = isBoard && model.columns !== 8
      if (isKnownByHeading || isNoBoard) assert.equal((isBoard ? parsed.page.board : parsed.page.matches).ok, false)
      assert.deepEqual(parsed.page.boards, whole.boards)
      if (isBoard) assert.deepEqual(parsed.page.matches, whole.matches)
      else assert.deepEqual(parsed.page.board, whole.board)
    }),
    runs(50)
  )
})

test('no text breaks the parser of game pages', async () => {
  const soup = fc.array(
    fc.oneof(
      fc.constantFrom('<table class=table-striped>', '<tbody>', '<tr>', '<td>', '<td class=text-right>1/2', '</table>'),
      fc.constantFrom('<select id=leaderboard-select>', '<option value=1>', '<optgroup>', '</select>', '<template>'),
      fc.constantFrom('<svg>', '<math>', '<caption>', '<colgroup>', '<td colspan=1e9>', '<!--', '<input>', '<td>5'),
      fc.string({ unit: 'binary' })
    ),
    { maxLength: 60 }
  )
  fc.assert(
    fc.property(soup, (pieces) => typeof parseGamePage(pieces.join('')).ok === 'boolean'),
    runs(75)
  )
})

type Row = readonly (string | number)[]

function pageOf(model: GamePageModel): GamePage {
  const seen = new Map<string, number>()
  const entries = model.entries.map(({ playerName, rank, score, details }) => {
    const occurrence = (seen.get(playerName) ?? 0) + 1
    seen.set(playerName, occurrence)
    const named = Object.fromEntries(DETAIL_NAMES[model.columns].map((name, i) => [name, details[i] ?? '']))
    return {
      playerName,
      rank,
      rating: ratingText(model, score),
      occurrence,
      timeMs: model.isTimes ? score : null,
      ...(model.columns > 3 && { details: named })
    }
  })
  return {
    matches: {
      ok: true,
      value: model.matches.map(({ hostName, currentPlayers, maxPlayers }) => ({ hostName, currentPlayers, maxPlayers }))
    },
    boards: { ok: true, value: model.boards.map(({ leaderboardId, name }) => ({ leaderboardId, name })) },
    board: { ok: true, value: { leaderboardId: model.boards[0]?.leaderboardId, entries } }
  }
}

/**
 * Returns how a parsed page contradicts its model: additional, missing or reordered rows, or a number that the model lacks.
 * Text that a mutation inserted next to a text is part of it for any reader.
 */
function differences({ matches, boards, board }: GamePage, model: GamePageModel): string[] {
  const found: string[] = []
  // If a row has neither headings nor other rows next to it, nothing shows that it has a cell too many.
  const isPublished = ({ length }: readonly unknown[]) => model.style.headings || length > 1
  const compare = (what: string, read: readonly Row[], written: readonly Row[]) => {
    const same = (row: Row, at: number) => row.every((cell, i) => contains(cell, written[at]?.[i]))
    if (read.length === written.length && read.every(same)) return
    found.push(`${what} ${JSON.stringify(read)}, written ${JSON.stringify(written)}`)
  }
  if (matches.ok && isPublished(model.matches)) {
    compare(
      'matches',
      matches.value.map(({ hostName, currentPlayers, maxPlayers }) => [hostName, currentPlayers, maxPlayers]),
      model.matches.map(({ hostName, currentPlayers, maxPlayers }) => [hostName, currentPlayers, maxPlayers])
    )
  }
  if (boards.ok && boards.value !== undefined) {
    const texts = (list: GamePageModel['boards']) => list.map(({ leaderboardId, name }) => [leaderboardId, name])
    compare('boards', texts([...boards.value]), texts(model.boards))
  }
  if (board.ok && isPublished(model.entries)) {
    const { leaderboardId, entries } = board.value
    const isShown = leaderboardId == null || leaderboardId === model.boards[0]?.leaderboardId
    if (!isShown) found.push(`board ${leaderboardId} is shown`)
    compare(
      'entries',
      entries.map(({ rank, playerName, rating }) => [rank, playerName, rating]),
      model.entries.map(({ rank, playerName, score }) => [rank, playerName, ratingText(model, score)])
    )
  }
  return found
}

/** Returns whether a number is equal, or a text contains the one of the model. */
function contains(read: string | number, written: string | number | undefined): boolean {
  return read === written || (typeof read === 'string' && typeof written === 'string' && read.includes(written))
}
