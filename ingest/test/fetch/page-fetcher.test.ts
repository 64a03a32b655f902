import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { signalEntries } from '@gamenet/engines/testing'
import { type Test, test } from 'tap'
import { createPageFetcher, type PageFetcherOptions } from '../../src/fetch/page-fetcher.js'
import { retryAfterMs } from '../../src/fetch/request-throttle.js'
import { type Answer, sendHtml, startPageServer } from '../page-server.js'

const PAGE = '<html><body>Pokémon</body></html>'

async function given(t: Test, answer: Answer, options: Partial<PageFetcherOptions> = {}) {
  const server = await startPageServer(t, answer)
  const fetcher = createPageFetcher({
    upstreamUrl: server.url,
    userAgent: 'gamenet-stats/test (+http://localhost)',
    requestsPerSecond: 1000,
    attemptTimeoutMs: 5000,
    retriesMax: 0,
    backoffMs: 1,
    ...options
  })
  t.teardown(() => fetcher.close())
  return { server, fetcher }
}

async function reasonOf(t: Test, answer: Answer, options: Partial<PageFetcherOptions> = {}): Promise<string> {
  const { fetcher } = await given(t, answer, options)
  const fetched = await fetcher.fetch('/')
  return fetched.ok ? 'a page' : fetched.reason
}

test('a page has its address, its validators and the instant of its headers', async (t) => {
  const { server, fetcher } = await given(t, (_, response) => sendHtml(response, PAGE, { etag: '"1"' }), {
    now: () => 1_700_000_000_123
  })
  t.same(await fetcher.fetch('/games'), {
    ok: true,
    changed: true,
    html: PAGE,
    address: `${server.url}/games`,
    validators: { etag: '"1"' },
    answeredAtMs: 1_700_000_000_123
  })
  t.equal(server.requests[0]?.headers['user-agent'], 'gamenet-stats/test (+http://localhost)')
})

test('compressed pages are unpacked, and a page that is too large then is refused', async (t) => {
  for (const [encoding, bytes] of [
    ['gzip', gzipSync(PAGE)],
    ['br', brotliCompressSync(PAGE)]
  ] as const) {
    const { fetcher } = await given(t, (_, response) => {
      response.writeHead(200, { 'content-type': 'text/html', 'content-encoding': encoding }).end(bytes)
    })
    t.match(await fetcher.fetch('/'), { ok: true, html: PAGE }, encoding)
  }
  const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024))
  t.ok(bomb.length < 100_000)
  const reason = await reasonOf(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'text/html', 'content-encoding': 'gzip' }).end(bomb)
  })
  t.match(reason, /larger than 8388608 bytes/)
  const cut = await reasonOf(t, (_, response) => {
    const half = gzipSync(PAGE.repeat(1000)).subarray(0, 60)
    response.writeHead(200, { 'content-type': 'text/html', 'content-encoding': 'gzip' }).end(half)
  })
  t.match(cut, /unexpected end of file/)
})

test('both forms of deflate are read, however the bytes are divided; a truncated one gives a reason', async (t) => {
  for (const [form, deflate] of Object.entries({ zlib: deflateSync, raw: deflateRawSync })) {
    for (const level of [0, 1, 9]) {
      const bytes = deflate(PAGE.repeat(100), { level })
      const headers = { 'content-type': 'text/html', 'content-encoding': 'deflate' }
      const { fetcher } = await given(t, (_, response) => {
        response.writeHead(200, headers).write(bytes.subarray(0, 1))
        setImmediate(() => response.end(bytes.subarray(1)))
      })
      t.match(await fetcher.fetch('/'), { ok: true, html: PAGE.repeat(100) }, `${form}, level ${level}`)
      const cut = await reasonOf(t, (_, r) => r.writeHead(200, headers).end(bytes.subarray(0, bytes.length / 2)))
      t.match(cut, /unexpected end of file/, form)
    }
  }
  const bomb = deflateRawSync(Buffer.alloc(64 * 1024 * 1024))
  const headers = { 'content-type': 'text/html', 'content-encoding': 'deflate' }
  t.match(await reasonOf(t, (_, response) => response.writeHead(200, headers).end(bomb)), /larger than 8388608 bytes/)
  t.match(
    await reasonOf(t, (_, response) => response.writeHead(200, headers).end('no deflate at all')),
    /invalid|incorrect/
  )
})

test('UTF-8 has many spellings, and US-ASCII is a part of it', async (t) => {
  for (const parameter of [
    "charset='utf-8'",
    'charset="utf-8"',
    'CHARSET=UTF-8',
    ' charset = utf8 ; ',
    'charset=utf-8;',
    'charset=',
    'charset=us-ascii',
    'charset=UTF_8',
    'boundary=x; charset="UTF8"'
  ]) {
    const { fetcher } = await given(t, (_, response) => {
      response.writeHead(200, { 'content-type': `text/html;${parameter}` }).end(PAGE)
    })
    t.match(await fetcher.fetch('/'), { ok: true }, parameter)
  }
  for (const name of ['iso-8859-1', 'windows-1252', 'utf-16', 'klingon']) {
    const answer: Answer = (_, response) =>
      response.writeHead(200, { 'content-type': `text/html; charset='${name}'` }).end(PAGE)
    t.match(await reasonOf(t, answer), new RegExp(`charset is ${name}, expected utf-8`))
  }
})

test('an unchanged page is reported as unchanged only after a conditional request', async (t) => {
  const { fetcher } = await given(t, (request, response) => {
    if (request.headers['if-none-match'] === '"1"') response.writeHead(304).end()
    else sendHtml(response, PAGE, { etag: '"1"' })
  })
  t.match(await fetcher.fetch('/'), { ok: true, changed: true })
  t.match(await fetcher.fetch('/', { validators: { etag: '"1"' } }), { ok: true, changed: false })
  t.match(await reasonOf(t, (_, response) => response.writeHead(304).end()), /status 304/)
})

test('an answer without a page gives a reason', async (t) => {
  const html = { 'content-type': 'text/html' }
  const faults: [RegExp, Answer][] = [
    [
      /content type is "application\/json"/,
      (_, r) => r.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    ],
    [/content type is missing/, (_, r) => r.writeHead(200).end(PAGE)],
    [
      /charset is iso-8859-1/,
      (_, r) => r.writeHead(200, { 'content-type': 'text/html; charset=iso-8859-1' }).end(PAGE)
    ],
    [/not valid UTF-8/, (_, r) => r.writeHead(200, html).end(Buffer.from([0x3c, 0xff, 0xfe]))],
    [/content encoding is zstd/, (_, r) => r.writeHead(200, { ...html, 'content-encoding': 'zstd' }).end('x')],
    [/status 500/, (_, r) => r.writeHead(500).end('broken')],
    [/status 404/, (_, r) => r.writeHead(404).end()],
    [
      /another origin, http:\/\/elsewhere.example/,
      (_, r) => r.writeHead(302, { location: 'http://elsewhere.example/' }).end()
    ],
    [/without a valid Location/, (_, r) => r.writeHead(302).end()],
    [/more than 3 redirects/, (_, r) => r.writeHead(302, { location: '/again' }).end()],
    [/closed|terminated|reset/i, (_, r) => r.socket?.destroy()],
    [
      /closed|terminated|aborted|content-length/i,
      (_, r) => {
        r.writeHead(200, { ...html, 'content-length': '1000' }).write(PAGE)
        setImmediate(() => r.socket?.end())
      }
    ]
  ]
  for (const [expected, answer] of faults) t.match(await reasonOf(t, answer), expected)
})

test('an address without a listener gives a reason', async (t) => {
  const fetcher = createPageFetcher({
    upstreamUrl: 'http://127.0.0.1:1',
    userAgent: 'test',
    requestsPerSecond: 1000,
    retriesMax: 0
  })
  t.teardown(() => fetcher.close())
  const fetched = await fetcher.fetch('/')
  t.match(fetched, { ok: false, reason: /ECONNREFUSED/ })
})

test('missing headers, a stalled body and an endless one are aborted', async (t) => {
  const limits = { attemptTimeoutMs: 200, bytesMax: 100_000 }
  t.match(await reasonOf(t, () => {}, limits), /no complete page within 200 ms/)
  const still: Answer = (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).write('<html>')
  t.match(await reasonOf(t, still, limits), /no complete page within 200 ms/)
  const endless: Answer = (_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' })
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(10_000)));
      if (!response.destroyed) response.once('drain', more)
    }
    more()
  }
  t.match(await reasonOf(t, endless, { ...limits, attemptTimeoutMs: 5000 }), /larger than 100000 bytes/)
})

test('redirects within the origin are followed, and the page has its last address', async (t) => {
  const { server, fetcher } = await given(t, (request, response) => {
    if (request.url === '/') response.writeHead(301, { location: '/home' }).end()
    else sendHtml(response, PAGE)
  })
  t.match(await fetcher.fetch('/'), { ok: true, address: `${server.url}/home` })
})

test('temporary failures are retried, permanent ones are not', async (t) => {
  for (const [status, attempts] of [
    [500, 3],
    [503, 3],
    [404, 1],
    [403, 1]
  ] as const) {
    const { server, fetcher } = await given(t, (_, response) => response.writeHead(status).end(), { retriesMax: 2 })
    t.match(await fetcher.fetch('/'), { ok: false })
    t.equal(server.requests.length, attempts, `status ${status}`)
  }
  let failures = 2
  const { fetcher } = await given(
    t,
    (_, response) => {
      failures -= 1
      if (failures === 1) response.socket?.destroy()
      else if (failures === 0) response.writeHead(503, { 'retry-after': '0' }).end()
      else sendHtml(response, PAGE)
    },
    { retriesMax: 2 }
  )
  t.match(await fetcher.fetch('/'), { ok: true, html: PAGE })
})

test('an upstream that asks for a long pause gets no request until it is over', async (t) => {
  let nowMs = 1_700_000_000_000
  let busy = true
  const { server, fetcher } = await given(
    t,
    (_, response) => {
      if (busy) response.writeHead(503, { 'retry-after': '120' }).end()
      else sendHtml(response, PAGE)
    },
    { retriesMax: 2, now: () => nowMs }
  )
  t.match(await fetcher.fetch('/'), { ok: false, reason: /status 503/ })
  busy = false
  nowMs += 119_000
  t.match(await fetcher.fetch('/'), { ok: false, reason: /another 1 s/ })
  t.equal(server.requests.length, 1)
  nowMs += 1_000
  t.match(await fetcher.fetch('/'), { ok: true })
})

test('requests run one at a time', async (t) => {
  const { server, fetcher } = await given(t, (_, response) => {
    setTimeout(() => sendHtml(response, PAGE), 10)
  })
  const pages = await Promise.all(Array.from({ length: 5 }, (_, at) => fetcher.fetch(`/${at}`)))
  t.ok(pages.every((page) => page.ok))
  t.same(
    server.requests.map(({ url }) => url),
    ['/0', '/1', '/2', '/3', '/4']
  )
  t.equal(server.atOnceMax(), 1)
})

test('requests begin no sooner one after the other than the rate permits', async (t) => {
  const begun: number[] = []
  const { fetcher } = await given(
    t,
    (_, response) => {
      begun.push(performance.now())
      sendHtml(response, PAGE)
    },
    { requestsPerSecond: 20 }
  )
  await Promise.all(Array.from({ length: 4 }, (_, at) => fetcher.fetch(`/${at}`)))
  // A slow machine only lengthens it. The first request may arrive late, so it does not count.
  const [, second = 0, , fourth = 0] = begun
  t.ok(fourth - second > 80, `two gaps of 50 ms took ${fourth - second} ms`)
})

test('closing and aborting end the running request and the waiting ones', async (t) => {
  const { server, fetcher } = await given(t, () => {}, { attemptTimeoutMs: 60_000 })
  const abort = new AbortController()
  const fetches = [fetcher.fetch('/'), fetcher.fetch('/games', { signal: abort.signal })]
  while (server.requests.length === 0) await new Promise(setImmediate)
  abort.abort()
  t.match(await fetches[1], { ok: false, reason: 'the service is stopping' })
  await fetcher.close()
  t.match(await fetches[0], { ok: false, reason: 'the service is stopping' })
  t.match(await fetcher.fetch('/'), { ok: false })
})

test('the home page is the upstream address itself, all other pages are below it', async (t) => {
  const { server } = await given(t, (_, response) => sendHtml(response, PAGE))
  const options = { userAgent: 'test', requestsPerSecond: 1000 }
  const below = createPageFetcher({ ...options, upstreamUrl: `${server.url}/net/index.html?x=1` })
  t.teardown(() => below.close())
  await below.fetch('/')
  const folder = createPageFetcher({ ...options, upstreamUrl: `${server.url}/net` })
  t.teardown(() => folder.close())
  await folder.fetch('/games')
  t.same(
    server.requests.map(({ url }) => url),
    ['/net/index.html?x=1', '/net/games']
  )
})

test('an invalid upstream address is refused at once', async (t) => {
  const options = { userAgent: 'test', requestsPerSecond: 1 }
  for (const upstreamUrl of ['', 'upstream.example', 'ftp://upstream.example', 'http://user:secret@upstream.example']) {
    t.throws(() => createPageFetcher({ ...options, upstreamUrl }), /The upstream address must/, upstreamUrl)
  }
  t.throws(() => createPageFetcher({ ...options, requestsPerSecond: 0, upstreamUrl: 'http://a' }), RangeError)
})

test('Retry-After is read as seconds or as a date, an hour at most', async (t) => {
  const now = Date.parse('2026-03-14T20:00:00Z')
  t.equal(retryAfterMs('5', now), 5000)
  t.equal(retryAfterMs('Sat, 14 Mar 2026 20:00:30 GMT', now), 30_000)
  t.equal(retryAfterMs('Sat, 14 Mar 2026 19:00:00 GMT', now), 0)
  t.equal(retryAfterMs('999999', now), 3_600_000)
  t.equal(retryAfterMs('soon', now), undefined)
  t.equal(retryAfterMs(undefined, now), undefined)
})

test('fetches, also failed ones, leave nothing at a signal that outlives them', async (t) => {
  const { fetcher } = await given(
    t,
    ({ url }, response) => (url === '/' ? sendHtml(response, PAGE) : response.writeHead(500).end()),
    { retriesMax: 1 }
  )
  const { signal } = new AbortController()
  const pages = await Promise.all(['/', '/away', '/', '/'].map((path) => fetcher.fetch(path, { signal })))
  t.same(
    pages.map(({ ok }) => ok),
    [true, false, true, true]
  )
  t.equal(signalEntries(signal), 0)
})
