import { test } from 'tap'
import { parseGamesPage } from '../../src/pages/games-page.js'
import { parseHomePage } from '../../src/pages/home-page.js'
import { countIn, lobbiesIn } from '../../src/pages/page-text.js'
import { savedPage } from './saved-page.js'

const ADDRESS = 'https://upstream.example/home'

test('a minimal home page is read, with its numbers in any order', async (t) => {
  t.same(parseHomePage(savedPage('minimal'), ADDRESS), {
    ok: true,
    page: {
      registered: 7,
      gamesSupported: 1,
      online: 0,
      titles: [{ titleId: '0000000f', name: 'X', productCode: 'MS-001', online: 0, sessions: 0, lobbyPlayers: 0 }],
      unreadable: [],
      incomplete: []
    }
  })
})

test('odd names, shared names, missing icons and foreign pictures are read; broken rows are named', async (t) => {
  const parsed = parseHomePage(savedPage('odd-titles'), ADDRESS)
  t.ok(parsed.ok)
  if (!parsed.ok) return
  const { registered, online, titles, unreadable } = parsed.page
  t.same({ registered, online }, { registered: 1_234_567, online: 1002 })
  t.same(titles, [
    {
      titleId: '4d530064',
      name: 'Same Name',
      subtitle: 'First',
      productCode: 'MS-100',
      image: 'https://img.example/1.png',
      online: 1000,
      sessions: 203,
      lobbyPlayers: 1016,
      features: ['live-aware', 'matchmaking', 'leaderboards']
    },
    {
      titleId: '4d530065',
      name: 'Same Name',
      subtitle: 'Second',
      productCode: 'MS-101',
      image: 'https://upstream.example/img/2.png',
      online: 0,
      sessions: 0,
      lobbyPlayers: 0
    },
    {
      titleId: '4d530066',
      name: "A/B #1 & Tom's: Plus + 50% <b>",
      subtitle: 'été 日本',
      productCode: 'MS-102',
      image: 'https://upstream.example/img/3.png',
      online: 1,
      sessions: 1,
      lobbyPlayers: 1
    }
  ])
  t.same(unreadable, [
    'row 4 (4d530067): expected 5 cells, found 4',
    'row 5 (4d530068): expected users online, got "2,13,45"',
    'row 6 (4d530069): the link is to title 4d53006a, the id next to it is 4d530069'
  ])
})

test('a home page without a required part is refused, and the reason names that part', async (t) => {
  const page = savedPage('odd-titles')
  const faults: [RegExp, string][] = [
    [/section#connect is missing/, ''],
    [/section#connect is missing/, '{"registered": 5}'],
    [/section#connect is missing/, page.replace('id="connect"', 'id="join"')],
    [/"Users Online Now" once in section#connect, found it 0 times/, page.replace('Users Online Now', 'Online')],
    [/"Users Online Now" once in section#connect, found it 2 times/, page.replace('Tournaments', 'Users Online Now')],
    [/one number next to the label "Registered Users", found 0/, page.replace(/<h3> 1,234,567 <\/h3>/, '')],
    [/the table of games .* is missing/, page.replace('id="games"', 'id="titles"')],
    [/is not closed: the page is truncated/, page.slice(0, page.indexOf('</table>'))],
    [/a count above "Registered Users", got "1,234,5671"/, page.replace('1,234,567', '1,234,5671')],
    [/a count above "Registered Users", got "-3"/, page.replace('1,234,567', '-3')],
    [/a count above "Registered Users", got "4,294,967,296"/, page.replace('1,234,567', '4,294,967,296')],
    [/is empty, yet 6 games/, page.replace(/<tbody>[\s\S]*<\/tbody>/, '<tbody></tbody>')],
    [/no row of the table of games can be read; row 1/, page.replaceAll('<small', '<big')]
  ]
  for (const [expected, html] of faults) {
    t.match(parseHomePage(html, ADDRESS), { ok: false, reason: expected })
  }
})

test('an unreadable lobby cell or number of games of a home page costs that value alone, and the reason names it', async (t) => {
  const html = savedPage('odd-titles')
  const whole = parseHomePage(html, ADDRESS)
  if (!whole.ok) throw new Error(whole.reason)
  const { titles, unreadable } = whole.page
  const lobbies = '1,016 in 203 sessions'
  t.ok(html.includes(lobbies))
  for (const text of ['n/a', '', '1,016 players', '1,016 in -1 sessions', '1,016 in 4,294,967,296 sessions']) {
    const [{ sessions: _, lobbyPlayers: __, ...first } = { sessions: 0, lobbyPlayers: 0 }, ...others] = titles
    t.match(parseHomePage(html.replace(lobbies, text), ADDRESS), {
      ok: true,
      page: {
        titles: [first, ...others],
        unreadable,
        incomplete: [`row 1 (4d530064): expected "-" or "N in M sessions", got ${JSON.stringify(text)}`]
      }
    })
  }
  const broken = html.replace(/<h3>6<.h3>/, '<h3>TBA</h3>')
  t.not(broken, html)
  t.match(parseHomePage(broken, ADDRESS), {
    ok: true,
    page: {
      gamesSupported: undefined,
      titles,
      unreadable: ['expected a count above "Games Supported", got "TBA"', ...unreadable]
    }
  })
})

test('the games page is read by the first two cells of its rows', async (t) => {
  t.same(parseGamesPage(savedPage('games'), 'https://upstream.example/games'), {
    ok: true,
    page: {
      titles: [
        {
          titleId: '4d530064',
          name: 'Halo 2',
          subtitle: 'Halo 2 (USA)',
          productCode: 'MS-100',
          image: 'https://upstream.example/img/1.png'
        },
        { titleId: '4d530065', name: 'NFL & Co', image: 'https://upstream.example/img/2.png' }
      ],
      unreadable: [
        'row 3 ("No Id"): expected a title id of 8 hexadecimal digits, got "MS-102"',
        'row 4: expected at least 2 cells, found 1'
      ]
    }
  })
})

test('a games page without a complete table of titles is refused', async (t) => {
  const page = savedPage('games')
  const faults: [RegExp, string][] = [
    [/table of games is missing/, '<html><body>maintenance</body></html>'],
    [/is not closed/, page.slice(0, -30)],
    [/is empty/, '<table><tbody></tbody></table>'],
    [/no row .* can be read/, '<table><tr><td>a</td><td>b</td></tr></table>']
  ]
  for (const [expected, html] of faults) t.match(parseGamesPage(html, ADDRESS), { ok: false, reason: expected })
})

test('only whole numbers with correct commas are counts', async (t) => {
  const counts = {
    '0': 0,
    '7': 7,
    '21345': 21_345,
    '21,345': 21_345,
    '1,000,000': 1_000_000,
    '4294967295': 4_294_967_295
  }
  for (const [text, count] of Object.entries(counts)) t.equal(countIn(text), count, text)
  for (const text of [
    '',
    '-3',
    '+3',
    '1.5',
    '2,13,45',
    ',345',
    '1,',
    '0,123',
    '007',
    '1e3',
    '٣',
    '1 000',
    '4294967296'
  ]) {
    t.equal(countIn(text), undefined, text)
  }
})

test('lobbies are a dash or players in sessions', async (t) => {
  t.same(lobbiesIn('-'), { lobbyPlayers: 0, sessions: 0 })
  t.same(lobbiesIn('1,016 in 203 sessions'), { lobbyPlayers: 1016, sessions: 203 })
  t.same(lobbiesIn('1 in 1 session'), { lobbyPlayers: 1, sessions: 1 })
  for (const text of [
    '',
    '--',
    '3',
    '3 in sessions',
    '3 of 4 sessions',
    '-1 in 1 session',
    '1 in 1 sessionss',
    '1in 1 session'
  ]) {
    t.equal(lobbiesIn(text), undefined, text)
  }
})
