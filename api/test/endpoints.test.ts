import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { nameKey } from '@gamenet/schemas'
import { test } from 'tap'
import { Components } from '../src/answers/components.js'
import { DataVersions } from '../src/answers/data-versions.js'
import { answeredTable, type Table } from '../src/answers/table.js'
import { exampleOf } from '../src/open-api/example.js'
import { catalogCache, compareNames } from '../src/queries/catalog.js'
import { endpoints } from '../src/routes/endpoints.js'
import { MINUTE_MS } from './plain-counts.js'
import { openStoredTables, type StoredTables, time } from './stored-tables.js'
import { type Teardown, TestTables, testApp } from './support/test-app.js'

const NOW_MS = Date.UTC(2026, 2, 14, 20, 0, 30)
const SHARED_DATA = new URL('../../../../shared/data/', import.meta.url)

type Described = {
  titleId: string
  name: string
  title?: string | null
  publisher?: string | null
  releaseDate?: string | null
}

/** The whole API on a real engine; `changed` notifies it that tables were filled. */
async function openApi(t: Teardown) {
  const model = await openStoredTables()
  const { changes, stored } = new TestTables()
  const tables = model.clickhouse.readers
  const versions = new DataVersions({ changes: stored })
  const catalog = catalogCache({ tables, versionOf: (dependency) => versions.versionOf(dependency) })
  const { app } = await testApp(t, {
    endpoints,
    tables,
    dataVersions: versions,
    catalog,
    now: () => NOW_MS
  })
  let version = 0
  const changed = async (...projections: string[]) => {
    version += 1
    for (const projection of projections) {
      changes.push({ version, projection, fromMs: 0, toMs: Date.UTC(2106, 0, 1) })
    }
    await versions.refresh()
  }
  const get = async (url: string, headers: Record<string, string> = {}) => await app.inject({ url, headers })
  return { model, changed, get }
}

async function storeDescribed(model: StoredTables, titles: readonly Described[], version = 1): Promise<void> {
  const rows = titles.flatMap(({ titleId, name, title, publisher, releaseDate }) => [
    [titleId, 'name', name, nameKey(name), String(version)],
    ...Object.entries({ title, publisher, release_date: releaseDate }).flatMap(([field, value]) =>
      value === undefined || value === null ? [] : [[titleId, field, value, '', String(version)]]
    )
  ])
  await model.insert('title', ['title_id', 'field', 'value', 'name_key', 'version'], rows)
}

test('every endpoint is described', async (t) => {
  t.equal(new Set(endpoints.map(({ operationId }) => operationId)).size, endpoints.length)
  t.equal(new Set(endpoints.map(({ path }) => path)).size, endpoints.length)
  for (const { path, summary, response } of endpoints) {
    t.ok(summary.length > 0 && response.meta()?.description, path)
  }
})

test('every parameter is refused by name with the reason', async (t) => {
  const { model, changed, get } = await openApi(t)
  await storeDescribed(model, [{ titleId: '4d530001', name: 'Halo' }])
  await changed('title')
  const bad = [
    '',
    '-1',
    '0',
    '1.5',
    '1e1',
    '0x1',
    '01',
    ' 1',
    '1'.repeat(10_000),
    '%00',
    '%F0%9F%91%BE',
    'NaN',
    '99999999999999999999'
  ]
  const parameters: Record<string, string[]> = {
    '/api/network-stats/registered-users': ['days'],
    '/api/network-stats/online-24h': ['days', 'from', 'to', 'resolution'],
    '/api/network-stats/lobbies-24h': ['days', 'from', 'to', 'resolution'],
    '/api/network-stats/activity-summary': ['period'],
    '/api/network-stats/daily-online': ['days', 'from', 'to'],
    '/api/network-stats/top-games': ['days', 'from', 'to', 'limit'],
    '/api/title/4d530001/online-users/history': ['hours', 'from', 'to', 'resolution']
  }
  for (const [path, names] of Object.entries(parameters)) {
    t.equal((await get(path)).statusCode, 200, path)
    t.equal((await get(`${path}?unknown=1&unknown=2`)).statusCode, 200, `${path} ignores what it does not know`)
    t.equal((await get(path.replace('/network-stats/', '/insignia-stats/'))).statusCode, 200, `${path} has its alias`)
    const wrong: string[] = []
    for (const name of names) {
      for (const query of [...bad.map((value) => `${name}=${value}`), `${name}=7&${name}=7`]) {
        const answer = await get(`${path}?${query}`)
        const { error, ...more } = answer.json<Record<string, string>>()
        const isSaid = error?.includes(name) === true && error.length < 400 && Object.keys(more).length === 0
        // A URL that is too long is refused as such, before its parameters are read.
        if (!(answer.statusCode === 400 && isSaid) && !(answer.statusCode === 414 && query.length > 9000))
          wrong.push(`${query.slice(0, 60)}: ${answer.statusCode} ${error}`)
      }
    }
    t.same(wrong, [], path)
  }
  for (const id of ['%00', 'x'.repeat(3000)]) {
    const answer = await get(`/api/title/${id}/online-users/history`)
    t.match([answer.statusCode, answer.json().error], [400, /titleId/], id.slice(0, 20))
  }
})

test('every route takes a title by id or by name; an unknown name is answered with the nearest ones', async (t) => {
  const { model, changed, get } = await openApi(t)
  const names = ['Halo', 'Halo 2', 'Halo 3', 'Ride / & #', 'Sega GT']
  await storeDescribed(
    model,
    names.map((name, n) => ({ titleId: `4d53000${n}`, name }))
  )
  await changed('title')
  const paths = endpoints
    .filter(
      ({ input, method, path }) =>
        method === undefined && /titleIds?$/m.test(Object.keys(input.shape).join('\n')) && !path.includes('titleIds')
    )
    .map(({ path, input }) => {
      const name = 'titleIds' in input.shape ? 'titleIds' : 'titleId'
      const more = 'time' in input.shape ? 'time=1.000&' : 'names' in input.shape ? 'names=a&' : ''
      return path.includes(':titleId') ? path.replace(':hours', '1') : `${path}?${more}${name}=:titleId`
    })
  t.ok(paths.length >= 12)
  for (const path of paths) {
    const of = async (title: string) => await get(path.replace(':titleId', encodeURIComponent(title)))
    const byId = await of('4D530003')
    t.equal(byId.statusCode, 200, path)
    t.equal((await of(' ride  / & #')).body, byId.body, path)
    t.match(await of('4d53ffff'), { statusCode: 404, headers: { 'x-error-code': 'title_unknown' } })
    const unknown = await of('halo two')
    t.match(unknown, { statusCode: 404, headers: { 'x-error-code': 'game_unknown' } }, path)
    t.equal(unknown.json().error, 'No game "halo two" is known; the nearest: "Halo", "Halo 2", "Halo 3".')
  }
  t.match((await get('/api/game/hal?x')).json().error, /; the nearest: "Halo", /)
  t.equal((await get('/api/game/qqq')).json().error, 'No game "qqq" is known.')
  const calendar = await get('/api/calendar?titleIds=Halo%202,4d530001,Sega%20GT&format=csv')
  t.equal(calendar.statusCode, 200)
  const old = await get(`/api/title/${encodeURIComponent('Ride / & #')}/lobbies`)
  t.equal(old.headers.link, '</api/title/Ride%20%2F%20%26%20%23/matches>; rel="successor-version"')
})

test('paths of other services of this kind are 404', async (t) => {
  const { get } = await openApi(t)
  for (const url of ['/api/events', '/api/me', '/api/me/friends', '/api/insignia-stats/none', '/api/insignia-stats']) {
    const { statusCode, headers } = await get(url)
    t.match([statusCode, headers['content-type']], [404, /json/], url)
  }
})

test('a series has its width in a header, also with HEAD, from the cache and on 304', async (t) => {
  const { model, changed, get } = await openApi(t)
  const minuteNow = Math.floor(NOW_MS / MINUTE_MS) * MINUTE_MS
  await model.storeNetwork([{ key: 'online', ms: minuteNow - 5 * MINUTE_MS, value: 11 }])
  await changed('network-count', 'network-count-hour')
  const url = '/api/network-stats/online-24h'
  const first = await get(url)
  t.same(first.json(), [{ recorded_at: '2026-03-14 19:55:00', online_count: 11 }])
  t.equal(first.headers['x-resolution-seconds'], '0')
  t.equal((await get(`${url}?days=7`)).headers['x-resolution-seconds'], '900')
  const etag = String(first.headers.etag)
  const other = await get(url.replace('network-stats', 'insignia-stats'))
  t.same([other.statusCode, other.json(), other.headers.etag], [200, first.json(), etag])
  t.notOk('deprecation' in other.headers, 'the path that emulators request is not deprecated')
  const again = await get(url, { 'if-none-match': etag })
  t.same([again.statusCode, again.headers['x-resolution-seconds']], [304, '0'])
  await model.storeNetwork([{ key: 'online', ms: minuteNow - 5 * MINUTE_MS, value: 12 }])
  await changed('network-count')
  const corrected = await get(url, { 'if-none-match': etag })
  t.equal(corrected.statusCode, 200, 'a correction is seen at once')
})

test('a game is found by id and by name in any spelling, and its names are listed', async (t) => {
  const { model, changed, get } = await openApi(t)
  t.same((await get('/api/games')).json(), [])
  const names = [
    'Tom & Jerry: War',
    'F#ck / Off',
    "Who's + There?",
    '100 %',
    'Ärger 🎮',
    'a.b..c',
    '..',
    'Same',
    'Same',
    '[x]'
  ]
  const titles = names.map((name, i) => ({ titleId: `4d5300${10 + i}`, name }))
  await storeDescribed(model, titles)
  await model.insert(
    'title_latest',
    ['title_id', 'ts', 'online', 'version'],
    [
      ['4d530018', time(NOW_MS), 1, '1'],
      ['000000aa', time(NOW_MS), 1, '1']
    ]
  )
  await changed('title', 'title-latest')
  const listed = (await get('/api/games')).json<string[]>()
  t.same(listed, [...names.filter((_, i) => i !== 7), 'Same [4d530017]'].sort(compareNames))
  for (const name of listed) {
    // Clients resolve a path segment of dots; such a game is requested by id.
    if (name === '..') continue
    const answer = await get(`/api/game/${encodeURIComponent(name.toUpperCase())}`)
    t.equal(answer.statusCode, 200, name)
    t.equal(answer.json().name, name.replace(' [4d530017]', ''), name)
  }
  t.same((await get('/api/game/4D530010')).json(), {
    titleId: '4d530010',
    name: names[0],
    title: '',
    image: '',
    publisher: '',
    releaseDate: ''
  })
  t.equal((await get('/api/game/same')).json().titleId, '4d530018', 'the one that was counted has the bare name')
  t.equal((await get('/api/game/000000aa')).statusCode, 404, 'a title that is only counted is not described')
  t.same((await get('/api/title/000000aa/online-users/history')).json(), [], 'but it has a history')
  t.match((await get('/api/game/No%00pe')).json().error, /game/)
  for (const unknown of ['Nobody', '4d53ffff', '%F0%9F%91%BE', 'a%2Fb%2F']) {
    const answer = await get(`/api/game/${unknown}`)
    t.match([answer.statusCode, answer.json().error], [404, /^No game ".*" is known.*\.$/], unknown)
  }
  await storeDescribed(model, [{ titleId: '4d530010', name: 'Renamed', publisher: 'Somebody' }], 2)
  await changed('title')
  t.match((await get('/api/game/renamed')).json(), { titleId: '4d530010', name: 'Renamed', publisher: 'Somebody' })
  t.equal(
    (await get(`/api/game/${encodeURIComponent('Tom & Jerry: War')}`)).statusCode,
    404,
    'the old name is nobody’s'
  )
})

test('a game has its listed name in every answer', async (t) => {
  const { model, changed, get } = await openApi(t)
  const [first, second] = ['4d530001', '4d530002']
  await storeDescribed(model, [
    { titleId: first, name: 'Same' },
    { titleId: second, name: 'Same' }
  ])
  const counted = async (titleId: string, ms: number, version: string) => {
    await model.insert('title_latest', ['title_id', 'ts', 'online', 'version'], [[titleId, time(ms), 1, version]])
    await changed('title-latest')
  }
  await changed('title')
  await counted(first, NOW_MS - 1, '1')
  const url = `/api/game/${second}/leaderboard-summary`
  const before = await get(url)
  t.equal(before.json().gameName, `Same [${second}]`)
  t.equal((await get(`/api/title/${second}/matches`)).json().gameName, `Same [${second}]`)
  t.equal((await get(`/api/game/${second}`)).json().name, 'Same', 'its plain name')
  await counted(second, NOW_MS, '2')
  const after = await get(url, { 'if-none-match': String(before.headers.etag) })
  t.equal(after.statusCode, 200, 'another title has the bare name now')
  t.equal(after.json().gameName, 'Same')
  await counted(first, NOW_MS - 1, '3')
  t.equal((await get(url, { 'if-none-match': String(after.headers.etag) })).statusCode, 304, 'a count renames nobody')
})

test('every title of real catalogues is found by its listed name', async (t) => {
  const file = new URL('titles.jsonl.gz', SHARED_DATA)
  if (!existsSync(file)) {
    t.comment('SKIPPED: ../shared/data is absent, so no real catalogue was read; the test above has made-up names')
    t.pass()
    return
  }
  const { model, changed, get } = await openApi(t)
  const titles = gunzipSync(await readFile(file))
    .toString('utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Described)
  await storeDescribed(
    model,
    titles.map((title) => ({ ...title, titleId: title.titleId.toLowerCase() }))
  )
  await changed('title')
  const listed = (await get('/api/games')).json<string[]>()
  t.equal(listed.length, titles.length)
  t.equal(new Set(listed).size, titles.length, 'no two are listed under one name')
  const found = new Set<string>()
  for (const name of listed) found.add((await get(`/api/game/${encodeURIComponent(name)}`)).json().titleId)
  t.equal(found.size, titles.length)
})

test('a list has every format, by parameter or Accept, each with its own ETag', async (t) => {
  const { model, changed, get } = await openApi(t)
  const fromMs = Date.UTC(2026, 2, 14)
  await model.storeTitles([
    { key: '4d530001', ms: fromMs + 1, value: 7 },
    { key: '4d530001', ms: fromMs + 2 * MINUTE_MS, value: 9 },
    { key: '4d530002', ms: fromMs, value: 5 }
  ])
  await storeDescribed(model, [{ titleId: '4d530001', name: 'alpha' }])
  await changed('title-count', 'title', 'title-latest')
  const path = '/api/title/4D530001/online-users/history?from=2026-03-14T00:00:00Z&to=2026-03-15T00:00:00Z'

  const raw = await get(`${path}&format=csv`)
  t.equal(raw.body, '"recorded_at","online_count"\n"2026-03-14T00:00:00.001Z",7\n"2026-03-14T00:02:00.000Z",9\n')
  t.equal(raw.headers['content-type'], 'text/csv; charset=utf-8; header=present')
  t.equal(
    raw.headers['content-disposition'],
    'attachment; filename="title-online-history_4d530001_2026-03-14_2026-03-15.csv"'
  )
  t.match(raw.headers, { vary: 'Accept-Encoding, Accept', 'x-resolution-seconds': '0' })
  const hours = await get(`${path}&resolution=3600`, { accept: 'application/x-ndjson' })
  t.same(JSON.parse(hours.body), {
    recorded_at: '2026-03-14T00:00:00.000Z',
    online_count: 9,
    min: 7,
    average: 8,
    samples: 2
  })
  const parquet = (await get(`${path}&format=parquet`)).rawPayload
  t.same([parquet.subarray(0, 4).toString(), parquet.subarray(-4).toString()], ['PAR1', 'PAR1'])
  t.equal((await get(path, { accept: 'application/vnd.apache.arrow.stream' })).rawPayload.readUInt32LE(0), 0xffffffff)

  const json = await get(path)
  t.match(json, { headers: { vary: 'Accept-Encoding, Accept', 'content-type': /json/ } })
  const tag = String(raw.headers.etag)
  t.not(json.headers.etag, tag)
  const tagged = { 'if-none-match': tag }
  t.match(await get(`${path}&format=csv`, tagged), { statusCode: 304, headers: { etag: tag } })
  t.equal((await get(path, { ...tagged, accept: 'text/csv' })).statusCode, 304)
  t.equal((await get(path, tagged)).statusCode, 200, 'the tag of CSV does not name the JSON')
  t.equal((await get(`${path}&format=ndjson`, tagged)).statusCode, 200)
  await changed('title-count')
  t.equal((await get(`${path}&format=csv`, tagged)).statusCode, 200)

  const unknown = await get(`${path}&format=xml`)
  t.match(unknown, { statusCode: 400, body: /format must be one of json, csv, ndjson, parquet, arrow; got \\"xml\\"/ })
  for (const accept of ['text/html,application/xhtml+xml,*/*;q=0.8', '*/*', 'application/xml', 'text/csv;q=0, */*']) {
    t.match((await get(path, { accept })).headers['content-type'], /json/, accept)
  }
  t.match((await get(`${path}&format=json`, { accept: 'text/csv' })).headers['content-type'], /json/)
  t.match(
    (await get('/api/game/alpha?format=csv')).headers['x-unknown-parameters'],
    'format',
    'an object is not a list'
  )
})

test('in CSV plain numbers are bare, and removing one apostrophe from a text is exact', async (t) => {
  const { model, changed, get } = await openApi(t)
  const cells = {
    '-7': '-7',
    '+1.5': '+1.5',
    '12': '12',
    '-.5': '-.5',
    '5.': '5.',
    "'x": `"''x"`,
    '-7x': `"'-7x"`,
    '1-2': '"1-2"',
    '1,2': '"1,2"',
    '+49 171': `"'+49 171"`,
    '=1+1': `"'=1+1"`,
    '＝1': `"'＝1"`,
    '＠x': `"'＠x"`,
    '-': `"'-"`,
    '"q"\\n\\': '"""q""\\n\\"',
    'a\nb\tc': '"a\nb\tc"',
    '-1\n': `"'-1\n"`,
    '': '""',
    ok: '"ok"'
  }
  for (const [n, [publisher, cell]] of Object.entries(cells).entries()) {
    await storeDescribed(model, [{ titleId: '41560017', name: 'x', publisher }], n + 1)
    await changed('title')
    const { body } = await get('/api/games?fields=all&format=csv')
    t.equal(body, `"titleId","name","publisher"\n41560017,"x",${cell}\n`, JSON.stringify(publisher))
  }
})

test('rows of answers become files; in CSV a text that a spreadsheet would execute stays a text', async (t) => {
  const { model, changed, get } = await openApi(t)
  await storeDescribed(model, [{ titleId: '4d530001', name: '=cmd|x' }])
  await model.storeTitles([{ key: '4d530001', ms: NOW_MS - MINUTE_MS, value: 7 }])
  await model.insert('title_latest', ['title_id', 'ts', 'online', 'version'], [['4d530001', time(NOW_MS), 7, 1]])
  await changed('title', 'title-count', 'title-latest', 'title-count-hour', 'title-count-day')
  const top = await get('/api/network-stats/top-games?format=csv')
  t.equal(
    top.body,
    `"titleId","name","peak","peakAt","average","samples","activeHours"\n"4d530001","'=cmd|x",7,"2026-03-14T19:59:30.000Z",7,1,1\n`
  )
  t.equal(JSON.parse((await get('/api/network-stats/top-games?format=ndjson')).body).name, '=cmd|x')
  const none = await get('/api/title/4d530001/matches/history?format=csv')
  t.equal(none.body, '"hostName","firstSeen","lastSeen","durationMinutes","peakPlayers","maxPlayers","isOpen"\n')
  for (const format of ['csv', 'ndjson', 'parquet', 'arrow'])
    t.equal((await get(`/api/network-stats/registered-users?format=${format}`)).statusCode, 200, `${format} of nothing`)
  t.match((await get('/api/title/4d530009/matches/history?format=csv')).headers['content-type'], /json/, 'a refusal')
  t.equal((await get('/api/games?format=csv')).body, `"name"\n"'=cmd|x"\n`)
  const games = '"titleId","name","publisher"\n"4d530001","\'=cmd|x",""\n'
  t.equal((await get('/api/games?fields=all&format=csv')).body, games)
  t.match(JSON.parse((await get('/api/online-users?format=ndjson')).body), { titleId: '4d530001', online: 7 })
  const withTables = endpoints.filter(({ table }) => table !== undefined)
  for (const { path, operationId, table, response } of withTables) {
    const components = new Components()
    const schema = components.schema(response, 'output', operationId)
    const example = JSON.parse(JSON.stringify(exampleOf(schema, components)))
    const written = async (table: Table, body: unknown) => {
      // Such that a table has all its columns.
      const resolved = { widthSeconds: 3600, fields: 'all' }
      const { sql, parameters } = answeredTable(table, { resolved, body }, 'JSONEachRow')
      return await text(await model.clickhouse.readers.stream(sql, parameters, { format: 'JSONEachRow' }))
    }
    t.equal(await written({ ...(table as Table), rows: () => [] }, []), '', `${path}, empty`)
    const rows = (await written(table as Table, example)).trimEnd().split('\n')
    t.equal(rows.length, table?.rows(example).length, path)
    const shown = JSON.parse(rows[0] ?? '{}')
    t.same(Object.keys(shown), Object.keys(table?.row.shape ?? {}), path)
    const [first = {}] = table?.rows(example) ?? []
    const isPlain = (value: unknown) => value === null || typeof value === 'number' || /^[^-]+$/.test(String(value))
    for (const [name, value] of Object.entries(first).filter(
      ([, value]) => typeof value !== 'object' && isPlain(value)
    ))
      t.equal(shown[name], value, `${path} ${name}`)
  }
})
