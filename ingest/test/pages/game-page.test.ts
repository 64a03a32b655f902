import { test } from 'tap'
import { type GamePage, parseGamePage } from '../../src/pages/game-page.js'
import { savedPage } from './saved-page.js'

function parsed(html: string): GamePage {
  const read = parseGamePage(html)
  if (!read.ok) throw new Error(read.reason)
  return read.page
}

test('matches are read by the host in the first cell and the players on the right, with any cells between', async (t) => {
  t.same(parsed(savedPage('game-scores')).matches, {
    ok: true,
    value: [
      { hostName: 'ann', currentPlayers: 3, maxPlayers: 16 },
      { hostName: '<script>alert(1)</script> x', currentPlayers: 1002, maxPlayers: 1024 },
      { hostName: 'ann', currentPlayers: 0, maxPlayers: 0 }
    ]
  })
  t.same(parsed(savedPage('game-races')).matches, { ok: true, value: [] }, 'an empty table says that there are none')
})

test('the list of boards is read without its placeholder; two boards may share a name', async (t) => {
  t.same(parsed(savedPage('game-scores')).boards, {
    ok: true,
    value: [
      { leaderboardId: 0, name: 'Overall & more' },
      { leaderboardId: 7, name: 'Team Slayer' },
      { leaderboardId: 12, name: 'Team Slayer' },
      { leaderboardId: 4_294_967_295, name: '' }
    ]
  })
  t.same(parsed(savedPage('game-races')).boards, { ok: true, value: [{ leaderboardId: 1, name: 'Edinburgh' }] })
})

test('a board is read as shown: tied, falling and negative ranks, odd names, huge and negative scores', async (t) => {
  const entry = { occurrence: 1, timeMs: null }
  t.same(parsed(savedPage('game-scores')).board, {
    ok: true,
    value: {
      leaderboardId: 7,
      entries: [
        { ...entry, rank: 1, playerName: 'ann', rating: '99,999,999,999,999,999,999' },
        { ...entry, rank: 1, playerName: 'Ann', rating: '9007199254740993' },
        { ...entry, rank: 4, playerName: 'ann', occurrence: 2, rating: '-5' },
        { ...entry, rank: 3, playerName: '<img src=x onerror=alert(1)>', rating: '1.5' },
        { ...entry, rank: 1000, playerName: 'two words\u00a0\u00a0three', rating: '0' },
        { ...entry, rank: -2, playerName: 'שלום e\u0301 é 👍🏽 \u202eabc', rating: 'LEVEL 9' },
        { ...entry, rank: 1001, playerName: 'bold name', rating: '2147483647' }
      ]
    }
  })
})

test('a board of seven cells has date, place and car in addition to times; empty cells are left out', async (t) => {
  const entry = { occurrence: 1 }
  t.same(parsed(savedPage('game-races')).board, {
    ok: true,
    value: {
      leaderboardId: 1,
      entries: [
        {
          ...entry,
          rank: 1,
          playerName: 'ann',
          rating: '01:02.345',
          timeMs: 62_345,
          details: { date: '2004-03-14 20:00:00', location: 'Edinburgh', circuit: 'Castle', car: 'Elise' }
        },
        {
          ...entry,
          rank: 2,
          playerName: 'bob',
          rating: '2147400000',
          timeMs: 83_647,
          details: { location: 'Edinburgh', car: 'TT' }
        },
        { ...entry, rank: 3, playerName: 'cid', rating: '00:00.000', timeMs: 0 }
      ]
    }
  })
})

test('a board of eight cells has races in addition to kudos', async (t) => {
  const page = pageWith(
    '<tr><td>1</td><td>ann</td><td>3</td><td>2</td><td>1</td><td>6</td><td>9</td><td>5,000</td></tr>'
  )
  t.same(parsed(page).board, {
    ok: true,
    value: {
      leaderboardId: 7,
      entries: [
        {
          rank: 1,
          playerName: 'ann',
          occurrence: 1,
          rating: '5,000',
          timeMs: null,
          details: { firsts: '3', seconds: '2', thirds: '1', races: '6', kudosRank: '9' }
        }
      ]
    }
  })
})

test('a detail that is too long for an entry is left out', async (t) => {
  const page = (car: string) =>
    pageWith(`<tr><td>1</td><td>ann</td><td>2004-03-14</td><td></td><td></td><td>${car}</td><td>01:02.345</td></tr>`)
  const of = (car: string) => {
    const { board } = parsed(page(car))
    return board.ok ? board.value.entries.map(({ rating, details }) => ({ rating, details })) : board.reason
  }
  t.same(of('x'.repeat(501)), [{ rating: '01:02.345', details: { date: '2004-03-14' } }])
  t.same(of('x'.repeat(500)), [{ rating: '01:02.345', details: { date: '2004-03-14', car: 'x'.repeat(500) } }])
})

test('time text is a time by itself, and a raw score if all others of the page are times', async (t) => {
  const times = (...ratings: string[]) => {
    const { board } = parsed(pageWith(ratings.map((rating, i) => row(i + 1, `player ${i}`, rating)).join('')))
    return board.ok ? board.value.entries.map(({ timeMs }) => timeMs) : board.reason
  }
  t.same(times('1:00.000', '59:59.999'), [60_000, 3_599_999])
  t.same(times('2147483647', '2143883647', '0:01.000'), [0, 3_600_000, 1000])
  t.same(times('2147483647', '2143883646'), [null, null], 'more than an hour')
  t.same(times('2147483648'), [null], 'less than no time')
  t.same(times('1:00.000', '100', 'DNF'), [60_000, null, null])
  t.same(times('1:00.000', '2147483647', 'DNF'), [60_000, null, null])
  t.same(times('1:60.000'), [null])
  t.same(times(), [])
})

test('a board with an unreadable row is unreadable, and nothing else is', async (t) => {
  const good = row(1, 'ann', '5')
  const faults: [RegExp, string][] = [
    [/row 2 .*: expected a rank, got "first"/, good + row('first', 'bob', '4')],
    [/row 2 .*: expected a rank, got ""/, good + row('', 'bob', '4')],
    [/row 1 .*: expected a rank, got "1\.5"/, row('1.5', 'bob', '4')],
    [/row 1 .*: expected a rank, got "01"/, row('01', 'bob', '4')],
    [/row 1 .*: expected a rank, got "1,0"/, row('1,0', 'bob', '4')],
    [/row 1 .*: expected a rank, got "2147483648"/, row('2147483648', 'bob', '4')],
    [/row 2 .*: expected a name of 1 to 500 characters, got ""/, good + row(2, ' <script>x</script> ', '4')],
    [/row 1 .*: expected a name of 1 to 500 characters/, row(2, 'x'.repeat(501), '4')],
    [/row 2 .*: expected a score or time of 1 to 200 characters, got ""/, good + row(2, 'bob', '')],
    [/row 1 .*: expected a score or time/, row(2, 'bob', '9'.repeat(201))],
    [/row 2 of the table of the board has 2 cells, expected 3/, `${good}<tr><td>2</td><td>bob</td></tr>`],
    [/row 2 of the table of the board has no cells/, `${good}<tr></tr>`],
    [
      /row 1 of the table of the board: expected 3, 7 or 8 cells, found 4/,
      row(1, 'ann', '5').replace('<td>', '<td></td><td>')
    ],
    [/row 2 .* has 4 cells, expected 3/, `${good}<tr><td>2</td><td>bob</td><td colspan=2>4</td></tr>`],
    [/has a row inside a comment/, `${good}<!-- ${row(2, 'bob', '4')} -->${row(3, 'cid', '3')}`],
    [/has a broken tag/, `${good}<tr class="a"b"><td>2</td><td>bob</td><td>4</td></tr>`],
    [
      /has a broken tag/,
      `<tr><td>1</td><td class='x>ann</td><td>5</td></tr><tr><td>2</td><td>bob<'/td><td>4</td></tr>`
    ],
    [/has something between its cells/, `${good}<tr>2<td>bob</td><td>4</td></tr>`],
    [/has a broken tag/, '<tr><td>1</td><td>ann</td><td>5</tdd></tr>'],
    [/has something between its cells/, `${good}<tr><b>2</b></tr>`],
    [/has a heading under row 1/, `${good}<tr><th>2</th><th>bob</th><th>4</th></tr>`],
    [/has a row in its tfoot/, `${good}<tfoot>${row(2, 'bob', '4')}</tfoot>`]
  ]
  for (const [reason, rows] of faults) {
    const page = parsed(pageWith(rows))
    t.match(page.board, { ok: false, reason })
    t.match(page.matches, { ok: true, value: [{ hostName: 'host' }] }, String(reason))
    t.match(page.boards, { ok: true, value: [{ leaderboardId: 7 }] }, String(reason))
  }
  t.match(parsed(pageWith(row(1, 'x'.repeat(500), '5'))).board, { ok: true })
})

test('a list of boards with an unreadable option is unreadable, and the matches are not', async (t) => {
  const faults: [RegExp, string][] = [
    [/option 1 .*: expected a whole number as its value, got "seven"/, '<option value="seven">x</option>'],
    [/option 1 .*: expected a whole number/, '<option>7</option>'],
    [/option 1 .*: expected a whole number/, '<option value="-1">x</option>'],
    [/option 1 .*: expected a whole number/, '<option value="4294967296">x</option>'],
    [/option 2 .*: the board 7 occurs in it twice/, '<option value="7">x</option><option value="7">y</option>'],
    [/option 1 .*: expected a name of at most 500/, `<option value="7">${'x'.repeat(501)}</option>`],
    [/has text outside of its options/, '<option value="7">x</option> y <option value="8">z</option>'],
    [/options with and without an end tag/, '<option value="7">x <option value="8">y</option>'],
    [/has a broken tag/, '<option value="7">x"8">y</option>'],
    [/has a broken tag/, '<option value="7">x</optivalue="8">y</option>'],
    [/has a broken tag/, '<option value="7">x</option value="8">y</option>'],
    [/has a broken tag/, '<option value="">x</8" selected>y</option>'],
    [/option 1 .*: expected a whole number as its value, got ""/, '<option value value="7">x</option>'],
    [/has a broken tag/, '<option value="7">x<ption value="8">y</option>'],
    [/option 1 .* as its value, got ""/, '<option value=""option value="7">x</option>'],
    [/option 1 .* as its value, got ""/, '<option value=""lue="7" selected>x</option>'],
    [/has an option inside a comment/, '<!-- <option value="7">x</option> -->'],
    [/has a broken tag/, '<option value="7>x</option><option value="8">y</option>']
  ]
  for (const [reason, options] of faults) {
    const page = parsed(pageWith(row(1, 'ann', '5'), options))
    t.match(page.boards, { ok: false, reason })
    t.match(page.matches, { ok: true, value: [{ hostName: 'host' }] }, String(reason))
  }
  const page = parsed(pageWith(row(1, 'ann', '5'), '<option value="x">x</option><option value="7" selected>y</option>'))
  t.match(page.boards, { ok: false })
  t.match(page.board, { ok: true, value: { leaderboardId: 7 } }, 'the board itself says which one it is')
  t.match(parsed(pageWith('', '<option value=7>x<option value=8>y')).boards, { ok: true, value: [{}, {}] })
})

test('the selected option is the board of a page; the placeholder means none, no selection means unknown', async (t) => {
  const shownBy = (options: string) => {
    const { board } = parsed(pageWith(row(1, 'ann', '5'), options))
    return board.ok ? board.value.leaderboardId : board.reason
  }
  t.equal(shownBy('<option value="7">x</option><option value="8" selected>y</option>'), 8)
  t.equal(shownBy('<option value="" selected>-</option><option value="8" selected>y</option>'), 8)
  t.equal(shownBy('<option value="" selected>-</option><option value="8">y</option>'), null)
  t.equal(shownBy('<option value="8">y</option>'), undefined)
  t.match(shownBy('<option value="eight" selected>y</option>'), /no whole number selected, but "eight"/)
})

test('an unreadable lobby makes the matches unreadable, but not the board', async (t) => {
  const faults: [RegExp, string][] = [
    [/row 1 .*: expected a host .*, got ""/, '<tr><td></td><td class="text-right">1/2</td></tr>'],
    [/row 1 .*: expected a host/, `<tr><td>${'x'.repeat(501)}</td><td class="text-right">1/2</td></tr>`],
    [/row 1 .*: expected one cell CURRENT\/MAX at the right, got ""/, '<tr><td>host</td><td>1/2</td></tr>'],
    [/row 1 .*: expected one cell .* got "1 of 2"/, '<tr><td>host</td><td class="text-right">1 of 2</td></tr>'],
    [
      /expected one cell .* got "1\/2 \| 3\/4"/,
      '<tr><td>a</td><td class=text-right>1/2</td><td class=text-right>3/4</td></tr>'
    ],
    [/expected one cell .* got "1\/2x"/, '<tr><td>host</td><td class="text-right">1/2x</td></tr>'],
    [/expected two counts CURRENT\/MAX, got "01\/2"/, '<tr><td>host</td><td class="text-right">01/2</td></tr>'],
    [/expected two counts/, '<tr><td>host</td><td class="text-right">4294967296/2</td></tr>'],
    [/row 1 .*: expected one cell/, '<tr><td colspan="2">No matches</td></tr>'],
    [/row 1 .* has 1 cells, expected 2/, '<tr><td>No matches</td></tr>']
  ]
  for (const [reason, rows] of faults) {
    const lobbies = `<thead><tr><th>Host</th><th>Players</th></tr></thead>${rows}`
    const heading = rows.includes('3/4') ? rows : lobbies
    const page = parsed(pageWith(row(1, 'ann', '5'), '<option value="7" selected>x</option>', heading))
    t.match(page.matches, { ok: false, reason })
    t.match(page.board, { ok: true }, String(reason))
  }
})

test('missing, truncated and doubled tables and lists make their part unreadable', async (t) => {
  const whole = savedPage('game-scores')
  const at = (text: string, from = 0) => whole.indexOf(text, from)
  const cutInMatches = parsed(whole.slice(0, at('</table>')))
  t.match(cutInMatches, {
    matches: { ok: false, reason: /is not closed/ },
    boards: { ok: true, value: undefined },
    board: { ok: false, reason: /the list of boards .* is missing/ }
  })
  const cutInList = parsed(whole.slice(0, at('<option value="12"')))
  t.match(cutInList, { matches: { ok: true }, boards: { ok: false, reason: /is not closed/ }, board: { ok: false } })
  const cutInBoard = parsed(whole.slice(0, at('<td>Ann</td>')))
  t.match(cutInBoard, { matches: { ok: true }, boards: { ok: true }, board: { ok: false, reason: /is not closed/ } })
  const noBoard = parsed(whole.slice(0, at('</form>')))
  t.match(noBoard, {
    matches: { ok: true },
    boards: { ok: true },
    board: { ok: false, reason: /table of a board .* is missing/ }
  })

  const noMatches = parsed(whole.replace('table table-striped table-sm', 'table table-sm'))
  t.match(noMatches, {
    matches: { ok: false, reason: /the table of matches \(table.table-striped before the list of boards\) is missing/ },
    board: { ok: true }
  })
  t.match(parsed('<p>maintenance</p>'), {
    matches: { ok: false, reason: /the table of matches \(table.table-striped\) is missing/ },
    board: { ok: false }
  })
  const twice = parsed(whole.replace('</form>', '</form><select id="leaderboard-select"></select>'))
  t.match(twice, {
    matches: { ok: true },
    boards: { ok: false, reason: /found 2/ },
    board: { ok: false, reason: /found 2/ }
  })
})

test('a board of 100,000 entries on one page is read', async (t) => {
  const rows = Array.from({ length: 100_000 }, (_, i) => row(i + 1, `player ${i}`, String(200_000 - i)))
  const { board } = parsed(pageWith(rows.join('\n')))
  t.equal(board.ok && board.value.entries.length, 100_000)
  t.match(board.ok && board.value.entries.at(-1), { rank: 100_000, playerName: 'player 99999', rating: '100001' })
})

function row(rank: number | string, playerName: string, rating: string): string {
  return `<tr><td>${rank}</td><td>${playerName}</td><td>${rating}</td></tr>`
}

function pageWith(
  rows: string,
  options = '<option value="7" selected>x</option>',
  matches = '<tr><td>host</td><td class="text-right">1/2</td></tr>'
): string {
  return `<!doctype html><table class="table-striped">${matches}</table>
<select id="leaderboard-select">${options}</select>
<table class="table-striped"><tbody>${rows}</tbody></table>`
}
