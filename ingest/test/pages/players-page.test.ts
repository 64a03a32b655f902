import assert from 'node:assert/strict'
import { runs } from '@gamenet/engines/testing'
import fc from 'fast-check'
import { test } from 'tap'
import { type PlayersPage, parsePlayersPage, type ShownPlayer } from '../../src/pages/players-page.js'
import type { RenderedPage } from '../page-model.js'
import { mutation } from '../page-mutation.js'

const text = fc
  .oneof(
    fc.constantFrom(
      '<b>',
      '&amp;',
      "Tom's",
      '"Q"',
      'שלום',
      'e\u0301',
      '1',
      'Online in',
      'a for b',
      '</td>',
      '</table>'
    ),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
  )
  .map((raw) => raw.replace(/\p{C}/gu, '').replace(/\s+/gu, ' ').trim())
  .filter((shown) => shown !== '')
const duration = fc.constantFrom(
  '0 minutes',
  '1 minute',
  '47 hours',
  '3 days',
  '1 hour 5 minutes',
  'a few seconds',
  '2:05'
)
const game = fc.oneof(fc.constantFrom('Need for Speed', 'Wait for 5 minutes', 'Online in X for 3 hours'), text)
const player = fc.record({
  username: text.filter((name) => name.length <= 60),
  gamertag: fc.option(text, { nil: undefined }),
  game: fc.option(game, { nil: undefined }),
  duration
})
type PlayerModel = typeof player extends fc.Arbitrary<infer Model> ? Model : never

/** Any players page without repeated names. */
const pageModel = fc.record({
  players: fc.uniqueArray(player, { selector: ({ username }) => keyOf(username), minLength: 1, maxLength: 6 }),
  comments: fc.boolean()
})
type PageModel = typeof pageModel extends fc.Arbitrary<infer Model> ? Model : never

test('every rendered page of players is parsed to its model', async () => {
  fc.assert(
    fc.property(pageModel, (model) => {
      assert.deepEqual(parsePlayersPage(rendered(model).html), {
        ok: true,
        page: { players: model.players.map(shown), unreadable: [] }
      })
    }),
    runs(50)
  )
})

test('a page of players that is truncated at any byte shows no user before its table is closed', async () => {
  fc.assert(
    fc.property(pageModel, fc.nat(), (model, at) => {
      const { html } = rendered(model)
      const length = at % html.length
      const parsed = parsePlayersPage(html.slice(0, length))
      return parsed.ok === length >= html.indexOf('</table>') + '</table>'.length
    }),
    runs(50)
  )
})

test('deleted, doubled, swapped or inserted markup never mixes up two users', async () => {
  const reached = { refused: 0, partial: 0, whole: 0 }
  fc.assert(
    fc.property(pageModel, fc.array(mutation, { minLength: 1, maxLength: 3 }), (model, mutations) => {
      const mutated = mutations.reduce((page, mutate) => mutate(page), rendered(model))
      const parsed = parsePlayersPage(mutated.html)
      if (!parsed.ok) reached.refused += 1
      else if (parsed.page.players.length < model.players.length) reached.partial += 1
      else reached.whole += 1
      const wrong = parsed.ok ? mixedUp(parsed.page, model) : []
      if (wrong.length > 0) throw new Error(`${wrong.join('; ')}\n${mutated.html}`)
    }),
    // Shrinking would parse for minutes, and a failing page is small enough to read.
    { ...runs(400), endOnFailure: true }
  )
  for (const [what, times] of Object.entries(reached)) assert.ok(times > 3, `${what}: ${times} times`)
})

test('an unreadable row is not a sighting, a too long name is left out, and no reason contains a name', async (t) => {
  const rows: [string, RegExp | undefined][] = [
    [row('Tag One', 'ann', 'Online in Halo &amp; Co for 5 minutes'), undefined],
    [row('Tag Two', 'bob', 'Online in Halo'), /row 2: expected "Online in GAME for DURATION"/],
    [row('Tag Three', 'cid', 'Online in Need for Speed'), /row 3: expected "Online in/],
    [row('Tag Four', 'dan', 'Away'), /row 4: expected "Online in/],
    [
      row('g'.repeat(201), 'eve', 'Last seen 3 days ago'),
      /row 5: expected a gamertag of at most 200 characters, got 201/
    ],
    [row('Tag Six', '', 'Last seen 3 days ago'), /row 6: expected a username/],
    [row('Tag Seven', 'f\u200bay', 'Last seen 3 days ago'), /row 7: expected a username/],
    [row('Tag Eight', 'x'.repeat(65), 'Last seen 3 days ago'), /row 8: expected a username/],
    ['<tr><td>Tag Nine</td><td>gil</td></tr>', /row 9: expected 3 cells, found 2/],
    [
      row('Tag Ten', 'hal', `Online in ${'g'.repeat(201)} for 1 day`),
      /row 10: expected a game of at most 200 characters/
    ],
    [row('Tag Eleven', 'ian', 'Online in Halo for 1 day'), undefined],
    [row('Tag Twelve', 'ＩＡＮ', 'Last seen 1 day ago'), /one user is on the rows 11, 12/],
    [row('Tag <b>13</b>', ' jo \n e ', ' LAST  seen\n just a moment ago '), undefined],
    [row(' \n ', 'kim', 'Online in Halo for 1 day'), undefined]
  ]
  const parsed = parsePlayersPage(page(rows.map(([html]) => html).join('\n')))
  t.ok(parsed.ok)
  if (!parsed.ok) return
  t.same(parsed.page.players, [
    { username: 'ann', gamertag: 'Tag One', isOnline: true, game: 'Halo & Co' },
    { username: 'eve', gamertag: undefined, isOnline: false, game: undefined },
    { username: 'hal', gamertag: 'Tag Ten', isOnline: true, game: undefined },
    { username: 'jo e', gamertag: 'Tag 13', isOnline: false, game: undefined },
    { username: 'kim', gamertag: undefined, isOnline: true, game: 'Halo' }
  ])
  t.match(
    parsed.page.unreadable,
    rows.flatMap(([, reason]) => reason ?? [])
  )
  t.notMatch(parsed.page.unreadable.join(), /Tag [TFSNE1]|bob|dan|gil|hal|\bian|x{65}/i)
})

test('a page without a complete table of players is refused, and an empty table shows no user', async (t) => {
  const whole = page(row('Tag', 'ann', 'Last seen 3 days ago'))
  const faults: [RegExp, string][] = [
    [/the table of players is missing/, ''],
    [/the table of players is missing/, '{"players": []}'],
    [/is not closed: the page is truncated/, whole.slice(0, whole.indexOf('</table>'))],
    [/has a broken tag/, whole.replace('<td>ann</td><td>', '<td class="a>ann</td><td class="b">')],
    [/has a row inside a comment/, whole.replace('<tr><td>', '<!-- <tr><td>x</td></tr> --><tr><td>')],
    [/has something between its cells/, whole.replace('</td><td>ann', '</td>ann<td>')],
    [/no row of the table of players can be read; row 1: expected a username/, whole.replace('ann', '')]
  ]
  for (const [reason, html] of faults) t.match(parsePlayersPage(html), { ok: false, reason })
  t.same(parsePlayersPage(page('')), { ok: true, page: { players: [], unreadable: [] } })
})

test('a duration followed by other text is none, and no other part of the cell is read as one', (t) => {
  const { ok, reason } = {
    reason: '',
    ...parsePlayersPage(page(row('Tag', 'kay', 'Online in Wait for 5 minutes for 2:05&lt;')))
  }
  t.notOk(ok)
  t.match(reason, /row 1: expected "Online in/)
  t.end()
})

test('no text breaks the parser of the page of players', async () => {
  const soup = fc.array(
    fc.oneof(
      fc.constantFrom('<table>', '<tbody>', '<tr>', '<td>', '</table>', 'Online in X for 1 day', '<template>', '<svg>'),
      fc.string({ unit: 'binary' })
    ),
    { maxLength: 60 }
  )
  fc.assert(
    fc.property(soup, (pieces) => typeof parsePlayersPage(pieces.join('')).ok === 'boolean'),
    runs(50)
  )
})

function keyOf(name: string): string {
  return name.normalize('NFKC').toLowerCase().normalize('NFKC')
}

function shown({ username, gamertag, game }: PlayerModel): ShownPlayer {
  return { username, gamertag, isOnline: game !== undefined, game }
}

function row(...cells: readonly string[]): string {
  return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`
}

function page(rows: string): string {
  return `<html><body><table><thead><tr><th>Gamertag</th><th>User</th><th>Status</th></tr></thead><tbody>${rows}</tbody></table></body></html>`
}

/** Writes a model as the network writes its page of players; usernames and whereabouts are its facts. */
function rendered({ players, comments }: PageModel): RenderedPage {
  let html =
    '<!doctype html>\n<html><body><h1>Players</h1>\n<table class="table"><thead><tr><th>Gamertag</th><th>User</th><th>Status</th></tr></thead><tbody>\n'
  const facts: RenderedPage['facts'] = []
  const fact = (piece: string) => {
    facts.push({ first: html.length, next: html.length + piece.length })
    html += piece
  }
  for (const { username, gamertag, game, duration } of players) {
    if (comments) html += '<!-- a row -->\n'
    html += `<tr><td>${escaped(gamertag ?? '')}</td><td>`
    fact(escaped(username))
    html += '</td>\n<td class="text-right">'
    fact(game === undefined ? `Last seen ${duration} ago` : `Online in ${escaped(game)} for ${duration}`)
    html += '</td></tr>\n'
  }
  return { html: `${html}</tbody></table>\n</body></html>\n`, facts }
}

/** Returns how a parsed page contradicts its model; text inserted next to a name is part of it for any reader. */
function mixedUp(read: PlayersPage, model: PageModel): string[] {
  return read.players.flatMap(({ username, game }) => {
    const written = model.players.filter((each) => username.includes(each.username))
    return written.some(
      (each) => (game === undefined) === (each.game === undefined) && (game ?? '').includes(each.game ?? '')
    )
      ? []
      : [`${JSON.stringify(username)} is shown in ${JSON.stringify(game)}`]
  })
}

function escaped(piece: string): string {
  return piece.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
