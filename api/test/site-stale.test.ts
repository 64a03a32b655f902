import { Refusal } from '@gamenet/schemas'
import { test } from 'tap'
import { NOW_MS, testApp } from './support/test-app.js'

const RECORD = {
  ...{ titleId: '4d530064', leaderboardId: 1, player: 'ann', rating: '900', timeMs: null, setMs: NOW_MS - 60_000 },
  ...{ isCurrent: true, hasPrevious: false, previousPlayer: '', previousRating: '', previousTimeMs: null }
}
const HTML = { accept: 'text/html' }

test('a page with a part that is old or missing says so and is not kept; the rest stands', async (t) => {
  const { app, tables, versions } = await testApp(t)
  const isRecords = (parameters: object) => 'contested' in parameters
  const get = (url: string) => app.inject({ url, headers: HTML })
  const change = async () => {
    tables.changes.push({
      version: tables.changes.length + 1,
      projection: 'leaderboard-entry',
      fromMs: 0,
      toMs: NOW_MS
    })
    await versions.refresh()
  }
  tables.answer = async (parameters) => (isRecords(parameters) ? [RECORD] : [])
  const whole = await get('/records?first=1')
  t.match(whole.body, /<bdi>ann<\/bdi>/)
  t.match(whole.headers, { etag: /^"/, 'cache-control': /must-revalidate/ })

  tables.answer = async (parameters) => {
    if (isRecords(parameters)) throw new Refusal('engine_away', ['The tables'])
    return []
  }
  await change()
  const old = await get('/records?first=1')
  t.equal(old.statusCode, 200)
  t.match(old.body, /Newer numbers cannot be read at the moment.*<bdi>ann<\/bdi>/s)
  t.match(old.headers, { etag: undefined, 'cache-control': 'no-store' })

  const never = await get('/records?game=4d530064')
  t.equal(never.statusCode, 404, 'the game is not known')
  const away = await get('/records')
  t.equal(away.statusCode, 503)
  t.match(away.body, /This part of the service is away.*Pages that were read lately still work/s)

  const home = await get('/')
  t.equal(home.statusCode, 200)
  t.match(home.body, /A part of this page is missing.*Games now/s)
  t.match(home.headers, { etag: undefined, 'cache-control': 'no-store' })

  tables.answer = async (parameters) => (isRecords(parameters) ? [RECORD] : [])
  const again = await get('/')
  t.notMatch(again.body, 'A part of this page is missing')
  t.match(again.headers.etag, /^"/, 'a whole page is kept again')
})
