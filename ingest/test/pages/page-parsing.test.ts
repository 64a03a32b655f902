import { test } from 'tap'
import { createPageParsing } from '../../src/pages/page-parsing.js'

const GAMES =
  '<table><tr><td><a href="/games/4d530064">Halo 2</a></td><td>MS-100<br><small>4D530064</small></td></tr></table>'

test('concurrent calls each get their own page', async (t) => {
  const parsing = createPageParsing()
  t.teardown(() => parsing.close())
  const [games, home] = await Promise.all([
    parsing.parse('games', GAMES, 'http://upstream.example/games'),
    parsing.parse('home', GAMES, 'http://upstream.example/')
  ])
  t.match(games, { ok: true, page: { titles: [{ titleId: '4d530064', name: 'Halo 2' }] } })
  t.match(home, { ok: false, reason: 'section#connect is missing' })
})

test('parsing of a page that takes too long is aborted, and the next page is parsed', async (t) => {
  const parsing = createPageParsing({ timeoutMs: 2500 })
  t.teardown(() => parsing.close())
  const hostile = `<i ${Array.from({ length: 300_000 }, (_, at) => `a${at}`).join(' ')}>`
  t.match(await parsing.parse('games', hostile, 'http://a/'), { ok: false, reason: /longer than 2500 ms/ })
  t.match(await parsing.parse('games', GAMES, 'http://a/'), { ok: true })
})

test('a closed parser aborts the current page, and parses no more', async (t) => {
  const parsing = createPageParsing()
  const hostile = parsing.parse('games', `<i ${'a '.repeat(100_000)}>`, 'http://a/')
  await parsing.close()
  t.match(await hostile, { ok: false })
  t.match(await parsing.parse('games', GAMES, 'http://a/'), { ok: false, reason: 'the service is stopping' })
})
