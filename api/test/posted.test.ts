import { gzipSync } from 'node:zlib'
import { test } from 'tap'
import { z } from 'zod'
import type { Endpoint } from '../src/answers/endpoint.js'
import { bodyInteger, bodyObjects, bodyText } from '../src/request/body.js'
import { NOW_MS, openBoardApi, storeTitles } from './board-api.js'
import { testApp } from './support/test-app.js'

type Question = { players: { name: string; rank: number }[]; titleId?: string | undefined }

/** A query in a body, answered from the tables. */
const posted: Endpoint<Question & { place: string }, Question & { place: string }> = {
  operationId: 'askPosted',
  path: '/api/posted/:place',
  method: 'POST',
  tags: ['Test'],
  summary: 'A question in a body',
  input: z.object({
    place: z.string(),
    players: bodyObjects(
      'players',
      { min: 1, max: 2 },
      { name: bodyText({ max: 5 }), rank: bodyInteger({ min: 1, max: 9 }) }
    ),
    titleId: bodyText({ max: 8 }).optional()
  }),
  bodyExample: { players: [{ name: 'ann', rank: 1 }] },
  resolve: (input) => input,
  reads: () => [{ projection: 'title' }],
  answer: async (resolved, { tables }) => ({ body: { resolved, rows: await tables.rows('SELECT posted', {}) } }),
  response: z.object({ resolved: z.unknown(), rows: z.unknown() }).meta({ description: 'What was asked.' })
}

const good = { players: [{ name: 'ann', rank: 1 }] }

test('a posted query is answered from the cache while nothing has changed, without an ETag', async (t) => {
  const { app, tables, versions } = await testApp(t, { endpoints: [posted] })
  const ask = (payload: object, headers: Record<string, string> = {}) =>
    app.inject({ method: 'POST', url: '/api/posted/here', payload, headers })
  const first = await ask(good)
  t.equal(first.statusCode, 200)
  t.same(first.json(), { resolved: { place: 'here', ...good }, rows: [] })
  t.equal(first.headers.etag, undefined)
  t.equal(first.headers['cache-control'], 'no-store')
  t.match(first.headers['x-data-version'], /^\d+$/)
  t.equal((await ask({ ...good, unknown: 1 }, { 'if-none-match': '*' })).statusCode, 200, 'there is no 304')
  t.equal(tables.asked, 1, 'unknown fields make no other question')
  await ask({ players: [{ name: 'ann', rank: 2 }] })
  t.equal(tables.asked, 2, 'another body at the same path is another question')
  tables.changes.push({ version: 1, projection: 'title', fromMs: NOW_MS, toMs: NOW_MS + 1 })
  await versions.refresh()
  await ask(good)
  t.equal(tables.asked, 3)
})

test('every field of a body is refused by its path with the reason; nothing is coerced', async (t) => {
  const { app } = await testApp(t, { endpoints: [posted] })
  const player = { name: 'ann', rank: 1 }
  const cases: [payload: unknown, sentence: RegExp][] = [
    [{}, /^players must be an array of 1 to 2 players; it is missing\.$/],
    [{ players: 3 }, /^players must be .*; got 3\.$/],
    [{ players: [] }, /^players must be .*; got an array of 0\.$/],
    [{ players: [player, player, player] }, /got an array of 3/],
    [{ players: { 0: player } }, /^players must be .*; got an object/],
    [{ players: [player, null] }, /^players\.1 must be an object; got null/],
    [{ players: [{ name: 'ann' }] }, /^players\.0\.rank must be an integer from 1 to 9; it is missing/],
    ...['3', 0, 10, 1.5, true, null, [1]].map((rank): [unknown, RegExp] => [
      { players: [{ name: 'ann', rank }] },
      /^players\.0\.rank must be an integer from 1 to 9; got/
    ]),
    ...['', 'a\0', 'annann', 3, '\ud800'].map((name): [unknown, RegExp] => [
      { players: [{ name, rank: 1 }] },
      /^players\.0\.name must be 1 to 5 characters/
    ]),
    [{ ...good, titleId: '' }, /^titleId must be 1 to 8 characters/],
    [{ ...good, titleId: null }, /^titleId must be 1 to 8 characters.*; got null/],
    [[good], /^the body must be a JSON object; got an array of 1/],
    ['text', /^the body must be a JSON object; got the text "text"/],
    [null, /^the body must be a JSON object; got null/]
  ]
  for (const [payload, sentence] of cases) {
    const answer = await app.inject({
      method: 'POST',
      url: '/api/posted/x',
      headers: { 'content-type': 'application/json' },
      payload: JSON.stringify(payload)
    })
    t.equal(answer.statusCode, 400, JSON.stringify(payload))
    t.match(answer.json().error, sentence)
    t.same(Object.keys(answer.json()), ['error'])
  }
})

test('a body that is too large, of another type or not JSON is refused as such, and other methods with Allow', async (t) => {
  const { app } = await testApp(t, { endpoints: [posted] })
  const send = async (payload: string, type = 'application/json', method: 'POST' | 'GET' | 'PUT' | 'HEAD' = 'POST') => {
    const { statusCode, headers, body } = await app.inject({
      method,
      url: '/api/posted/x',
      headers: type === '' ? {} : { 'content-type': type },
      payload
    })
    return { statusCode, headers, error: body === '' ? undefined : JSON.parse(body).error }
  }
  t.equal((await send(JSON.stringify(good), 'application/json; charset=utf-8')).statusCode, 200)
  t.match(await send('{"players":'), { statusCode: 400, error: 'The body is not valid JSON.' })
  t.match(await send(''), { statusCode: 400, error: 'The body is not valid JSON.' })
  t.match(await send('', ''), { statusCode: 400, error: /^the body must be a JSON object; it is missing/ })
  t.match(await send('{"__proto__": {}}'), { statusCode: 400, error: /^players must be .*; it is missing/ })
  t.match(await send('{}', 'text/plain'), {
    statusCode: 415,
    error: /application\/json, not compressed; got "text\/plain"/
  })
  t.match(await send('players=1', 'application/x-www-form-urlencoded'), { statusCode: 415 })
  const compressed = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
  const unread = await app.inject({
    method: 'POST',
    url: '/api/posted/x',
    headers: compressed,
    payload: gzipSync(JSON.stringify(good))
  })
  t.match(unread.statusCode, 415)
  t.match(unread.json(), { error: /not compressed; got Content-Encoding: "gzip"/ })
  const large = await send(JSON.stringify({ ...good, more: 'x'.repeat(70_000) }))
  t.match(large, { statusCode: 413, error: 'The body is larger than 65536 bytes.' })
  for (const method of ['GET', 'PUT', 'HEAD'] as const) {
    const refused = await send('', '', method)
    t.equal(refused.statusCode, 405, method)
    t.equal(refused.headers.allow, 'OPTIONS, POST')
  }
})

test('a body may have unknown fields and a byte order mark, but must be UTF-8', async (t) => {
  const { app } = await testApp(t, { endpoints: [posted] })
  const send = async (payload: string | Buffer) => {
    const headers = { 'content-type': 'application/json' }
    const { statusCode, body } = await app.inject({ method: 'POST', url: '/api/posted/x', headers, payload })
    return [statusCode, JSON.parse(body)] as const
  }
  const answered = await send(JSON.stringify(good))
  t.equal(answered[0], 200)
  t.same(await send('{"__proto__": {"players": []}, "players": [{"name": "ann", "rank": 1}]}'), answered)
  t.same(await send('{"players": [{"name": "ann", "rank": 1, "constructor": {"prototype": {}}}]}'), answered)
  t.same(await send(`\ufeff${JSON.stringify(good)}`), answered)
  const bytes = Buffer.from('{"players": [{"name": "?", "rank": 1}]}')
  bytes[bytes.indexOf('?')] = 0xff
  t.same(await send(bytes), [400, { error: 'The body is not valid UTF-8.' }])
})

test('a page of another origin may post JSON', async (t) => {
  const { app } = await testApp(t, { endpoints: [posted] })
  const { statusCode, headers } = await app.inject({
    method: 'OPTIONS',
    url: '/api/posted/x',
    headers: { origin: 'https://example.org', 'access-control-request-method': 'POST' }
  })
  t.equal(statusCode, 204)
  t.equal(headers['access-control-allow-origin'], '*')
  t.match(headers['access-control-allow-methods'], /\bPOST\b/)
  t.match(headers['access-control-allow-headers'], /\bContent-Type\b/)
})

test('OpenAPI has the fields of the body in its schema, those of the path as parameters', async (t) => {
  const { app } = await testApp(t, { endpoints: [posted] })
  const { paths, components } = (await app.inject('/openapi.json')).json()
  const { post, get } = paths['/api/posted/{place}']
  t.equal(get, undefined)
  t.match(post.parameters, [{ name: 'place', in: 'path', required: true }])
  t.equal(post.parameters.length, 1)
  const named = ({ $ref }: { $ref: string }) => components.schemas[$ref.split('/').at(-1) ?? '']
  const { schema: reference, example } = post.requestBody.content['application/json']
  const schema = named(reference)
  t.same(example, good)
  t.same(Object.keys(schema.properties), ['players', 'titleId'])
  t.same(schema.required, ['players'])
  t.match(schema.properties.players, { type: 'array', minItems: 1, maxItems: 2 })
  t.same(named(schema.properties.players.items).required, ['name', 'rank'])
  t.notOk('304' in post.responses)
  t.ok('413' in post.responses && '415' in post.responses)
})

test('every parameter of a search is refused by name with the reason', async (t) => {
  const { model, changed, get, app } = await openBoardApi(t)
  await storeTitles(model, { '4d530001': 'Race' })
  await changed('title')
  const odd = ['', '%00', 'a%00b', '%ED%A0%80', '%F0%9F%91%BE', 'x'.repeat(10_000)]
  const numbers = [...odd, '-1', '1.5', '1e1', '0x1', '01', ' 1', '+1', 'NaN', '99999999999999999999']
  const names = [
    '',
    ',',
    'a,',
    'a,,b',
    'a, ,b',
    'a%00',
    Array.from({ length: 21 }, (_, n) => `n${n}`).join(','),
    'x'.repeat(501)
  ]
  const times = [
    ...odd,
    '1',
    '1:2',
    '1:60.000',
    '1:02.34',
    '1:02,345',
    '1:2.345',
    '-1:02.345',
    '1:02.3456',
    '1e3.000',
    '123456:00.000',
    '6000000.000',
    '12345678.000',
    '1:02:03.000',
    ' 1.000'
  ]
  const cases: Record<string, Record<string, string[]>> = {
    '/api/datasearch/time?time=1:02.345': {
      tolerance: [...numbers, '60001'],
      limit: [...numbers, '0', '501'],
      titleId: ['', '%00', 'x'.repeat(501)]
    },
    '/api/datasearch/time?': { time: times },
    '/api/datasearch/players?': { names },
    '/api/datasearch/players?names=a': { titleId: ['', 'a%00b', '%ED%A0%80'] },
    '/api/datasearch/suggest?': { q: ['', '%00', 'x'.repeat(501), '%ED%A0%80'] },
    '/api/datasearch/suggest?q=a': { limit: [...numbers, '0', '51'] },
    '/api/player/ann?': { limit: [...numbers, '0', '1001'], offset: [...numbers, '10001'] },
    '/api/player/ann/history?': { limit: [...numbers, '0', '501'], offset: [...numbers, '10001'] }
  }
  const wrong: string[] = []
  for (const [path, parameters] of Object.entries(cases)) {
    for (const [name, values] of Object.entries(parameters)) {
      for (const query of [...values.map((value) => `${name}=${value}`), `${name}=7&${name}=7`]) {
        const { statusCode, body } = await get(`${path}&${query}`)
        const { error, ...more } = JSON.parse(body)
        // A body that is not UTF-8 is refused before its fields are read.
        const isSaid = error.startsWith(`${name} must be`) || (query.includes('%ED') && /UTF-8/.test(error))
        const isGood = statusCode === 400 && isSaid && error.length < 400 && Object.keys(more).length === 0
        if (!isGood) wrong.push(`${path}&${query.slice(0, 60)}: ${statusCode} ${error}`)
      }
    }
  }
  t.same(wrong, [])
  t.match((await get('/api/datasearch/time')).json().error, /^time must be a time such as .*; it is missing/)
  t.match((await get('/api/datasearch/players')).json().error, /^names must be 1 to 20 names/)
  t.match((await get('/api/datasearch/suggest')).json().error, /^q must be .*; it is missing/)
  for (const name of ['%00', 'x'.repeat(501)]) {
    for (const path of ['/api/datasearch/player/NAME', '/api/player/NAME', '/api/player/NAME/history']) {
      const answer = await get(path.replace('NAME', name))
      t.match([answer.statusCode, answer.json().error], [400, /^playerName must be/], path)
    }
  }
  for (const path of ['/api/datasearch/time?time=1.000&', '/api/datasearch/players?names=a&']) {
    const answer = await get(`${path}titleId=4D53FFFF`)
    t.match([answer.statusCode, answer.json().error], [404, /4d53ffff/], path)
    t.equal((await get(`${path}titleId=4D530001&unknown=1&unknown=2`)).statusCode, 200, path)
  }
  const roster = await app.inject({
    method: 'POST',
    url: '/api/datasearch/roster',
    payload: { players: [{ playerName: 'a', rank: 1 }], titleId: '4d53ffff' }
  })
  t.match([roster.statusCode, roster.json().error], [404, /4d53ffff/])
  for (const rank of [0, -1, 2_147_483_648]) {
    const refused = await app.inject({
      method: 'POST',
      url: '/api/datasearch/roster',
      payload: { players: [{ playerName: 'a', rank }] }
    })
    const sentence = /^players\.0\.rank must be an integer from 1 to 2147483647; got/
    t.match([refused.statusCode, refused.json().error], [400, sentence], String(rank))
  }
  t.same(
    (await get(`/api/datasearch/players?names=${'a,A,'.repeat(40)}a`)).json(),
    { results: [], count: 0 },
    'repeats count once'
  )
})
