import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { type RefusalCode, refusals } from '@gamenet/schemas'
import { type Test, test } from 'tap'
import { API_LIMITS } from '../src/app.js'
import { clientAddresses } from '../src/request/client-address.js'
import { exchange, game, logOfLines, testApp } from './support/test-app.js'

const EXPOSED =
  'ETag, Retry-After, Link, Deprecation, X-Request-Id, X-Data-Version, X-Resolution-Seconds, X-Error-Code, ' +
  'X-Unknown-Parameters, Content-Range, Accept-Ranges, Content-Disposition, Sunset'

/** The rules that hold for every answer which is neither 2xx nor 304. */
function isCleanError(
  t: Test,
  { status, body, headers }: { status: number; body: string; headers: Record<string, unknown> },
  note: string
) {
  t.ok(status >= 400, note)
  t.equal(headers['content-type'], 'application/json; charset=utf-8', note)
  const parsed = JSON.parse(body)
  t.same(Object.keys(parsed), ['error'], note)
  t.match(parsed.error, /^\S.*\.$/, note)
  t.notMatch(parsed.error, /\p{Cc}/u, note)
  t.equal(headers['access-control-allow-origin'], '*', note)
  t.equal(headers['access-control-expose-headers'], EXPOSED, note)
  t.equal(headers['x-content-type-options'], 'nosniff', note)
  t.match(headers['x-request-id'], /^[\w-]{8}\.[0-9a-z]+$/, note)
  const code = String(headers['x-error-code'])
  t.equal(refusals[code as RefusalCode]?.status, status, `${note} ${code}`)
  t.equal(headers.link, `</docs/errors#${code}>; rel="help"`, note)
}

const CHUNKED_1_0 = '1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked'

/** A raw answer, taken apart. */
function apart(raw: string) {
  const [head = '', ...rest] = raw.split('\r\n\r\n')
  const [line = '', ...lines] = head.split('\r\n')
  const headers = Object.fromEntries(
    lines.map((each) => [each.slice(0, each.indexOf(':')).toLowerCase(), each.slice(each.indexOf(':') + 1).trim()])
  )
  return { status: Number(line.split(' ')[1]), headers, body: rest.join('\r\n\r\n') }
}

/** An API with a route that reads a body, as write routes will. */
function withBodies() {
  return {
    addRoutes: (app: import('fastify').FastifyInstance) => {
      app.post('/api/echo', async (request) => request.body)
      app.get('/api/defect', async () => {
        throw new Error('the secret cause')
      })
      app.get('/api/string', async () => {
        throw 'not even an error'
      })
    }
  }
}

const json = { 'content-type': 'application/json' }

function signal() {
  let give: () => void = () => undefined
  const given = new Promise<void>((resolve) => {
    give = resolve
  })
  return { give: () => give(), given }
}

test('every way to fail is one sentence, with the status that fits', async (t) => {
  const { app } = await testApp(t, withBodies())
  for (const [method, url, status, sentence, more] of [
    ['GET', '/nope', 404, 'There is nothing at "/nope"; /docs lists what there is.'],
    ['GET', '/nothing', 404, 'There is nothing at "/nothing"; /docs lists what there is.'],
    ['GET', '/API/counts', 404, /^There is nothing at/],
    ['GET', '//api/counts', 404, /^There is nothing at/],
    ['GET', '/api//counts', 404, /^There is nothing at/],
    ['GET', '/api/game/', 404, /^There is nothing at/],
    ['GET', '/nope?days=0', 404, /^There is nothing at "\/nope"/],
    ['GET', '/api/counts?days=x', 400, 'days must be an integer from 1 to 30; got "x".'],
    ['GET', '/api/counts?days=1&days=1', 400, 'days must be an integer from 1 to 30; it is given 2 times.'],
    ['GET', '/api/counts?days', 400, 'days must be an integer from 1 to 30; it is empty.'],
    ['GET', '/api/counts?days=%zz', 400, 'The query is not valid percent-encoded UTF-8.'],
    ['GET', '/api/game/%zz', 400, 'The path is not valid percent-encoded UTF-8.'],
    ['GET', '/api/game/%ff', 400, 'The path is not valid percent-encoded UTF-8.'],
    ['GET', '/%ff', 400, 'The path is not valid percent-encoded UTF-8.'],
    ['GET', '/api/game/%00', 400, /^game must be 1 to 500 characters without control characters; got "\\u\{0\}"\.$/],
    ['GET', `/api/game/${'x'.repeat(10_000)}`, 400, /the first 40 of 10000 characters/],
    ['GET', `/api/counts?days=${'1'.repeat(10_000)}`, 400, /the first 40 of 10000 characters/],
    ['GET', `/api/game/${'x'.repeat(17_000)}`, 414, 'The path or query is longer than 16384 characters.'],
    ['GET', `/api/counts?x=${'1'.repeat(17_000)}`, 414, 'The path or query is longer than 16384 characters.'],
    ['GET', `/nope?${'1'.repeat(17_000)}`, 414, 'The path or query is longer than 16384 characters.'],
    ['POST', '/api/counts', 405, 'POST is not answered here; allowed: GET, HEAD, OPTIONS.'],
    ['DELETE', '/docs', 405, 'DELETE is not answered here; allowed: GET, HEAD, OPTIONS.'],
    ['PUT', '/api/game/x', 405, /^PUT is not answered here/, { payload: 'x'.repeat(100_000) }],
    ['GET', '/api/echo', 405, 'GET is not answered here; allowed: OPTIONS, POST.'],
    ['HEAD', '/api/echo', 405, ''],
    ['POST', '/nope', 404, /^There is nothing at/],
    ['POST', '/api/echo', 400, 'The body is not valid JSON.', { headers: json, payload: '{"a":' }],
    ['POST', '/api/echo', 400, 'The body is not valid JSON.', { headers: json, payload: '' }],
    [
      'POST',
      '/api/echo',
      400,
      'The body is not valid UTF-8.',
      { headers: json, payload: Buffer.from([0x22, 0xff, 0x22]) }
    ],
    [
      'POST',
      '/api/echo',
      413,
      'The body is larger than 65536 bytes.',
      { headers: json, payload: `"${'x'.repeat(70_000)}"` }
    ],
    [
      'POST',
      '/api/echo',
      415,
      'The body must be application/json, not compressed; got "text/plain".',
      { headers: { 'content-type': 'text/plain' }, payload: 'x' }
    ],
    ['POST', '/api/echo', 415, /got "nonsense"/, { headers: { 'content-type': 'nonsense' }, payload: 'x' }],
    ['GET', '/api/defect', 500, /^The service failed; its log has the cause under request /],
    ['GET', '/api/string', 500, /^The service failed; its log has the cause under request /]
  ] as const) {
    const note = `${method} ${url.slice(0, 60)}`
    const { statusCode, headers, body } = await app.inject({ method, url, ...more })
    t.equal(statusCode, status, note)
    if (method === 'HEAD') t.equal(body, '')
    else {
      isCleanError(t, { status: statusCode, headers, body }, note)
      t.match(JSON.parse(body).error, sentence, note)
    }
    t.notMatch(body, /secret|Error:|at \w+ \(/)
    if (status === 405) t.equal(typeof headers.allow, 'string', note)
    if (status === 500) t.match(body, String(headers['x-request-id']))
  }
})

test('problem details come to clients whose Accept prefers them', async (t) => {
  const { app } = await testApp(t)
  const problem = {
    type: '/docs/errors#path_unknown',
    title: 'Path unknown',
    status: 404,
    detail: 'There is nothing at "/nope"; /docs lists what there is.',
    code: 'path_unknown'
  }
  for (const [accept, isPreferred] of [
    ['application/problem+json', true],
    ['Application/Problem+JSON, */*', true],
    ['application/problem+json;q=0.5, application/json;q=0.4', true],
    ['application/json, application/problem+json', false],
    ['application/problem+json;q=0.5, application/*', false],
    ['application/problem+json;q=0', false],
    ['application/problem+json;q=nonsense', false],
    ['*/*', false]
  ] as const) {
    const { headers, body } = await app.inject({ url: '/nope', headers: { accept } })
    t.equal(headers['content-type'], `application/${isPreferred ? 'problem+json' : 'json'}; charset=utf-8`)
    t.same(JSON.parse(body), isPreferred ? problem : { error: problem.detail }, accept)
  }
  const sent = 'Host: x\r\nAccept: application/problem+json\r\n\r\n'
  for (const [line, code] of [
    ['CONNECT example.org:443 HTTP/1.1', 'method_not_allowed'],
    ['GET / HTTP/1.1\r\nExpect: miracles', 'expectation_failed']
  ]) {
    t.match(JSON.parse(apart(await exchange(app, `${line}\r\n${sent}`)).body), { code })
  }
})

test('unknown parameters are ignored, and the answer names them', async (t) => {
  const { app } = await testApp(t)
  const ask = async (url: string, headers = {}) => await app.inject({ url, headers })
  const known = await ask('/api/counts?days=2')
  t.equal(known.headers['x-unknown-parameters'], undefined)
  const { etag = '' } = known.headers
  for (const each of [{}, {}, { 'if-none-match': etag }]) {
    const { statusCode, headers, body } = await ask('/api/counts?days=2&day=3&a%C3%A9%0D%0A=&day=4&=5', each)
    t.equal(statusCode, 'if-none-match' in each ? 304 : 200)
    t.equal(headers['x-unknown-parameters'], 'day, a%C3%A9%0D%0A')
    t.equal(headers.etag, etag)
    if (statusCode === 200) t.equal(body, known.body)
  }
  t.equal((await ask('/api/counts?days=x&day=3')).headers['x-unknown-parameters'], 'day', 'with a refusal, too')
  t.equal(
    (await ask('/api/game/x?game=y')).headers['x-unknown-parameters'],
    'game',
    'game is not a parameter of the query'
  )
  const many = Array.from({ length: 20 }, (_, n) => `${'😀'.repeat(50)}${n}`).join('&')
  t.equal(String((await ask(`/api/counts?${many.slice(0, 1300)}`)).headers['x-unknown-parameters']).length, 4818)
})

test('every method but those of the path is 405 there, even ones that Fastify does not know', async (t) => {
  const { app } = await testApp(t)
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND', 'SEARCH', 'LINK', 'M-SEARCH']) {
    const { statusCode, headers, body } = await app.inject({ method: method as 'POST', url: '/api/counts?days=0' })
    t.equal(statusCode, 405, method)
    t.equal(headers.allow, 'GET, HEAD, OPTIONS')
    isCleanError(t, { status: statusCode, headers, body }, method)
  }
})

test('names with any characters arrive in a path as they were encoded', async (t) => {
  const { app } = await testApp(t)
  for (const name of ['a/b', 'a%2Fb', "# & ' : +", 'é😀', '...', 'a?b', 'a;b', '%', '/', 'x'.repeat(500)]) {
    const { statusCode, body } = await app.inject(`/api/game/${encodeURIComponent(name)}`)
    t.equal(statusCode, 200, name)
    t.equal(JSON.parse(body).game, name)
  }
  t.equal((await app.inject('/api/game/a+b')).json().game, 'a+b', 'a plus is a plus in a path')
  t.equal((await app.inject('/api/game/x/')).json().game, 'x', 'a slash at the end is no other resource')
  t.equal((await app.inject('/api/game/x?game=y')).json().game, 'x', 'a path wins over a query')
})

test('OPTIONS tells browsers what a path allows, and 404 where there is none', async (t) => {
  const { app } = await testApp(t, withBodies())
  const { statusCode, headers, body } = await app.inject({
    method: 'OPTIONS',
    url: '/api/game/a%2Fb?x=1',
    headers: { origin: 'https://example.org', 'access-control-request-method': 'GET' }
  })
  t.equal(statusCode, 204)
  t.equal(body, '')
  t.equal(headers['access-control-allow-origin'], '*')
  t.equal(headers['access-control-allow-methods'], 'GET, HEAD, OPTIONS')
  t.equal(headers['access-control-allow-headers'], 'X-Session-Key, Content-Type, If-None-Match, Last-Event-ID')
  t.equal(headers['access-control-allow-credentials'], undefined)
  t.equal(headers.allow, 'GET, HEAD, OPTIONS')
  t.equal((await app.inject({ method: 'OPTIONS', url: '/api/echo' })).headers.allow, 'OPTIONS, POST')
  t.equal((await app.inject({ method: 'OPTIONS', url: '/nope' })).statusCode, 404)
})

test('every answer has its own request id, and the headers that let any page read it', async (t) => {
  const { app } = await testApp(t)
  const ids = new Set<unknown>()
  const urls = ['/api/counts', '/api/counts', '/healthz', '/readyz', '/docs', '/openapi.json', '/nope', '/docs/errors']
  for (const url of urls) {
    const { headers } = await app.inject({ url, headers: { 'x-request-id': 'mine' } })
    t.equal(headers['access-control-allow-origin'], '*', url)
    t.equal(headers['access-control-expose-headers'], EXPOSED, url)
    t.equal(headers['x-content-type-options'], 'nosniff', url)
    ids.add(headers['x-request-id'])
  }
  t.equal(ids.size, urls.length)
  t.notOk(ids.has('mine'))
})

test('the log has the cause of a 5xx under its request id, with the id that the caller sent', async (t) => {
  const { logger, lines } = logOfLines()
  const { app } = await testApp(t, { ...withBodies(), logger, clients: clientAddresses(['127.0.0.0/8', '10.0.0.1']) })
  // The last address that no trusted proxy has; what stands before it is the client's own word.
  const forwarded = { 'x-forwarded-for': '192.0.2.9, 192.0.2.1, 10.0.0.1' }
  const { headers } = await app.inject({
    url: '/api/defect?x=1',
    headers: { 'x-request-id': 'mine\u0001', ...forwarded }
  })
  const entry = lines.map((line) => JSON.parse(line)).find(({ reqId }) => reqId === headers['x-request-id'])
  t.equal(entry?.err.message, 'the secret cause')
  t.equal(entry?.clientRequestId, '"mine\\u{1}"')
  t.equal(entry?.url, '"/api/defect?x=1"')
  t.equal(entry?.client, '192.0.2.1')
  const { app: untrusting } = await testApp(t, { ...withBodies(), logger })
  await untrusting.inject({ url: '/api/defect', headers: forwarded })
  t.equal(JSON.parse(lines.at(-1) ?? '').client, '127.0.0.1')
})

test('an idle connection stays open for longer than its answer says, and is closed at last', async (t) => {
  const { app } = await testApp(t, { limits: { connectionTimeoutMs: 100 } })
  const { status, headers } = apart(await exchange(app, 'GET /api/counts HTTP/1.1\r\nHost: x\r\n\r\n'))
  t.equal(status, 200)
  t.equal(headers.connection, 'keep-alive')
  const seconds = Number(/^timeout=(\d+)$/.exec(headers['keep-alive'] ?? '')?.[1])
  t.ok(seconds > 60 && 1000 * seconds < API_LIMITS.connectionTimeoutMs, `${headers['keep-alive']}`)
})

test('bytes that are not a request get the same kind of answer, and the connection is closed', async (t) => {
  const headerBytes = 32 * 1024
  const { app } = await testApp(t, { ...withBodies(), limits: { headerBytes } })
  const { app: impatient } = await testApp(t, {
    ...withBodies(),
    limits: { requestTimeoutMs: 300, headersTimeoutMs: 200, lateCheckMs: 50, headerBytes }
  })
  for (const [sent, status, sentence] of [
    ['nonsense\r\n\r\n', 400, /^The request is not valid HTTP\/1\.1: \S.*\.$/],
    ['GET /api/counts HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n', 400, /^The request is not valid HTTP\/1\.1: \S.*\.$/],
    ['GET /api/co\u0000unts HTTP/1.1\r\nHost: x\r\n\r\n', 400, /^The request is not valid HTTP\/1\.1: \S.*\.$/],
    ['GET /api/counts HTTP/9.9\r\nHost: x\r\n\r\n', 400, /^The request is not valid HTTP\/1\.1: \S.*\.$/],
    [
      'POST /api/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
      400,
      /^The request is not valid HTTP\/1\.1: \S.*\.$/
    ],
    [
      'POST /api/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n',
      400,
      /^The request is not valid HTTP\/1\.1: \S.*\.$/
    ],
    [
      `GET /api/counts HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`,
      431,
      'The request headers are too large.'
    ],
    [
      `GET /api/game/${'x'.repeat(40_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
      414,
      'The path or query is longer than 16384 characters.'
    ],
    [
      'GET /api/counts HTTP/1.1\r\nConnection: close\r\n\r\n',
      400,
      'The request names no host; HTTP/1.1 asks for exactly one Host header.'
    ],
    [
      'GET /api/counts HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\n\r\n',
      417,
      'The only supported expectation is 100-continue.'
    ],
    [
      'CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n',
      405,
      'CONNECT is not answered here; allowed: GET, HEAD, OPTIONS.'
    ],
    ['GET /api/counts HTTP/1.1\r\nHost: x\r\n', 408, 'The request did not arrive in time.'],
    [
      'POST /api/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"a"',
      408,
      'The request did not arrive in time.'
    ],
    ['GET * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 400, /^The request is not valid HTTP\/1\.1: \S.*\.$/],
    [
      'GET /api/game/x HTTP/2.0\r\nHost: x\r\nConnection: close\r\n\r\n',
      400,
      /^The request is not valid HTTP\/1\.1: \S.*\.$/
    ],
    [
      'GET /api/game/x HTTP/0.9\r\nHost: x\r\nConnection: close\r\n\r\n',
      400,
      /^The request is not valid HTTP\/1\.1: \S.*\.$/
    ],
    ['GET /api/game/x HTTP/1.1\r\nHost: x\r\nhost: y\r\nConnection: close\r\n\r\n', 400, /not exactly one host/],
    ['OPTIONS * HTTP/1.1\r\nConnection: close\r\n\r\n', 400, /names no host/],
    ...['', 'a b', 'x/y', 'u@x', 'x:port', 'x:1:2', 'x:65536', '[::1', '[:::1]', '%zz', 'x?'].map(
      (host) =>
        [`GET /api/game/x HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`, 400, /not exactly one host/] as const
    ),
    [`GET /api/game/x HTTP/1.1\r\nHost: x\r\n${'a:\r\n'.repeat(2100)}Host: y\r\n\r\n`, 400, /not exactly one host/],
    ...(
      ['1.1\r\nTransfer-Encoding: gzip, chunked', '1.1\r\nTransfer-Encoding: foo, chunked', CHUNKED_1_0] as const
    ).map(
      (head) =>
        [
          `POST /api/echo HTTP/${head}\r\nHost: x\r\nContent-Type: application/json\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
          400,
          /^The request is not valid HTTP\/1\.1: \S.*\.$/
        ] as const
    ),
    ['GET http://x/nope HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 404, /^There is nothing at/],
    [
      'GET http:///healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
      400,
      /: the host in its target is empty\.$/
    ],
    [
      'GET http://u@x/healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
      400,
      /: the host in its target is not valid\.$/
    ],
    ...['GET http://evil.example', 'GET HTTPS://x:8080', 'GET http://x.evil.example', 'GET http://[::1]'].map(
      (target) =>
        [
          `${target}/healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
          400,
          /: the host in its target is not that of its header Host\.$/
        ] as const
    ),
    ['GET /healthz#x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 400, /: its target has a fragment \(#\)/],
    [
      'GET ftp://x/healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
      400,
      /: its target is neither a path nor an http URI\.$/
    ],
    ['FOO / HTTP/1.1\r\nHost: x\r\n\r\n', 400, /^The request is not valid HTTP\/1\.1: Invalid method encountered\.$/]
  ] as const) {
    const answer = apart(await exchange(status === 408 ? impatient : app, sent))
    t.equal(answer.status, status, sent.slice(0, 60))
    isCleanError(t, answer, sent.slice(0, 60))
    t.match(JSON.parse(answer.body).error, sentence)
    t.equal(answer.headers.connection, 'close', sent.slice(0, 60))
  }
  const good = apart(await exchange(app, 'GET /api/game/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'))
  t.equal(good.status, 200, 'later good input is unharmed')
  for (const host of ['x:8080', 'x:', '127.0.0.1:1', '[::1]:8080', 'under_score.example', 'caf%C3%A9']) {
    const sent = `GET /api/game/x HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`
    t.equal(apart(await exchange(app, sent)).status, 200, host)
  }
  for (const [target, host] of [
    ['http://x', 'x'],
    ['HTTP://X.example:80', 'x.EXAMPLE'],
    ['https://x', 'x:443'],
    ['http://[::1]:8080', '[::1]:8080']
  ]) {
    const sent = `GET ${target}/api/game/x HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`
    t.equal(apart(await exchange(app, sent)).status, 200, `${target} to ${host}`)
  }
  const old = await exchange(app, 'GET /api/game/x HTTP/1.0\r\n\r\n')
  t.equal(apart(old).status, 200, 'HTTP/1.0 has no Host')
  const options = apart(await exchange(app, 'OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'))
  t.match(options, { status: 204, headers: { allow: /GET/ } })
  // A server may ignore what it does not know of: the whole, and no claim to know ranges.
  const ranged = 'GET /api/game/x HTTP/1.1\r\nHost: x\r\nRange: bytes=99999-\r\nConnection: close\r\n\r\n'
  const whole = apart(await exchange(app, ranged))
  t.match(whole, { status: 200, body: good.body })
  t.equal(whole.headers['content-range'], undefined)
})

test('ready answers keep a connection open and can be pipelined', async (t) => {
  const { app } = await testApp(t)
  await app.inject('/api/game/x')
  const one = 'GET /api/game/x HTTP/1.1\r\nHost: x\r\n\r\n'
  const raw = await exchange(app, `${one}${one}${one}GET /api/game/y HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  t.equal(raw.match(/HTTP\/1.1 200 OK/g)?.length, 4)
  t.equal(raw.match(/\{"game":"x"\}/g)?.length, 3)
  t.match(raw, /\{"game":"y"\}$/)
})

test('a ready answer is the same before the router and behind it', async (t) => {
  let routed = 0
  const { app, tables } = await testApp(t, {
    addRoutes: (app) => {
      app.addHook('onRequest', async () => {
        routed += 1
      })
    }
  })
  tables.answer = async () => Array.from({ length: 500 }, (_, online) => ({ online }))
  const url = '/api/counts?days=2'
  const { etag } = (await app.inject(url)).headers
  await app.inject({ url, headers: { 'accept-encoding': 'gzip' } })
  for (const [method, headers] of [
    ['GET', {}],
    ['HEAD', {}],
    ['GET', { 'accept-encoding': 'gzip' }],
    ['GET', { 'if-none-match': String(etag) }]
  ] as const) {
    const behind = await app.inject({ method, url, headers })
    routed = 0
    const sent = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    const head = `${method} ${url} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n`
    const before = apart(await exchange(app, `${head}${sent.join('')}\r\n`))
    t.equal(routed, 0)
    t.equal(before.status, behind.statusCode)
    t.equal(before.body, behind.rawPayload.toString('latin1'))
    const { connection: _, date: _a, 'x-request-id': id, ...same } = before.headers
    const { connection: _b, date: _c, 'x-request-id': _d, ...other } = behind.headers
    t.same(same, other)
    t.match(id, /./)
  }
  for (const [line, host, status] of [
    ['GET /api/counts?days=2', 'x/y', 400],
    ['POST /api/counts?days=2', 'x', 405]
  ] as const) {
    const refused = await exchange(app, `${line} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    t.equal(apart(refused).status, status)
  }
})

test('closing waits for what is in flight, and answers it', async (t) => {
  const [requested, closing, released] = [signal(), signal(), signal()]
  const slow = {
    ...game,
    answer: async ({ game }: { game: string }) => {
      if (game === 'x') {
        requested.give()
        await released.given
      }
      return { body: { game } }
    }
  }
  const { app } = await testApp(t, {
    endpoints: [slow],
    addRoutes: (app) => app.addHook('preClose', async () => closing.give())
  })
  await app.inject('/api/game/ready')
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const socket = connect(port, '127.0.0.1')
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  socket.write('GET /api/game/x HTTP/1.1\r\nHost: x\r\n\r\n')
  await requested.given
  const closed = app.close()
  await closing.given
  app.server.on('request', () => released.give())
  socket.write('GET /api/game/ready HTTP/1.1\r\nHost: x\r\n\r\n')
  await once(socket, 'close')
  const [, late = '', ready = ''] = String(Buffer.concat(chunks)).split('HTTP/1.1 200 OK')
  t.match(late, /\{"game":"x"\}/)
  t.match(ready, /Connection: close/)
  t.match(ready, /\{"game":"ready"\}/)
  await closed
})

test('/healthz and /readyz report the process and the data', async (t) => {
  let isReady = false
  let degraded: string[] = []
  const { app } = await testApp(t, {
    ready: async () => (isReady ? { ok: true, degraded } : { ok: false, reason: 'the tables are being created' })
  })
  t.same((await app.inject('/healthz')).json(), { status: 'ok' })
  const before = await app.inject('/readyz')
  t.equal(before.statusCode, 503)
  t.equal(before.headers['retry-after'], '1')
  t.same(before.json(), { error: 'The service is not ready: the tables are being created.' })
  isReady = true
  t.same((await app.inject('/readyz')).json(), { status: 'ready' })
  degraded = ['log (Kafka) cannot be reached']
  t.same((await app.inject('/readyz')).json(), { status: 'ready', degraded })
  t.equal((await app.inject({ method: 'HEAD', url: '/readyz' })).statusCode, 200)
})

test('requests are measured by route, never by URL', async (t) => {
  const { app, registry } = await testApp(t)
  for (const url of [
    '/api/game/x',
    '/api/game/x',
    '/api/game/y',
    '/nope/1',
    '/nope/2',
    '/healthz',
    '/api/counts?days=x'
  ]) {
    await app.inject(url)
  }
  await app.inject({ method: 'POST', url: '/api/game/x' })
  const text = await registry.getSingleMetricAsString('gamenet_http_request_duration_seconds')
  const counted = Object.fromEntries(
    [...text.matchAll(/_count\{route="([^"]*)",method="(\w+)",status="(\d+)"\} (\d+)/g)].map(
      ([, route, method, status, count]) => [`${method} ${route} ${status}`, Number(count)]
    )
  )
  t.same(counted, {
    'GET /api/game/:game 200': 3,
    'GET (no route) 404': 2,
    'GET /healthz 200': 1,
    'GET /api/counts 400': 1,
    'POST (no route) 405': 1
  })
  const games = text.split('\n').filter((line) => line.includes('route="/api/game/:game",method="GET"'))
  t.equal(games.length, 18)
  t.match(games.at(-3), /_bucket\{le="\+Inf",route=.* 3$/)
  t.match(games.at(-2), /_sum\{route="[^"]*",method="GET",status="200"\} 0\.\d+$/)
  const queries = await registry.getSingleMetricAsString('gamenet_query_duration_seconds')
  t.match(queries, 'gamenet_query_duration_seconds_count{operation="getGame"} 2')
})
