import { once } from 'node:events'
import { connect } from 'node:net'
import type { Test } from 'tap'
import { z } from 'zod'

/*
 * Requests that no server may accept, each on a separate connection. If the end of one is ambiguous, a valid request is
 * smuggled in after it: a server that answers it too may have parsed the first one differently from the proxy in front
 * of it.
 */

const SMUGGLED = 'GET /healthz?smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n'
const AT_ONCE = 16
/** Reached only by a hang. */
const WAIT_MS = 30_000

/** Returns an integer in [0, below). */
type Chance = (below: number) => number

/** mulberry32 */
const chanceOf = (seed: number): Chance => {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

const oneOf = <Item>(chance: Chance, items: readonly Item[]): Item => items[chance(items.length)] as Item
const letters = (chance: Chance, count: number): string =>
  Array.from({ length: count }, () => String.fromCharCode(97 + chance(26))).join('')

const target = (chance: Chance): string =>
  oneOf(chance, ['/api/games', '/healthz', '/api/online-users', `/api/profile/${letters(chance, 6)}`])
const get = (chance: Chance, ...headers: string[]): string =>
  `GET ${target(chance)} HTTP/1.1\r\nHost: localhost\r\n${headers.map((header) => `${header}\r\n`).join('')}\r\n`
const post = (chance: Chance, headers: readonly string[], body: string): string =>
  `POST /api/profile/${letters(chance, 5)}/reputation HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${headers.map((header) => `${header}\r\n`).join('')}\r\n${body}`

/** Kinds of malformed requests by name; each is malformed with any random values. */
const KINDS: Readonly<Record<string, (chance: Chance) => string>> = {
  'length and chunks': (chance) => {
    const both = [
      `Content-Length: ${chance(50)}`,
      `Transfer-Encoding: ${oneOf(chance, ['chunked', 'Chunked', 'CHUNKED'])}`
    ]
    return post(chance, chance(2) === 0 ? both : both.reverse(), '0\r\n\r\n')
  },
  'two lengths': (chance) => {
    const length = chance(40)
    return post(chance, [`Content-Length: ${length}`, `Content-Length: ${length + 1 + chance(9)}`], '{}')
  },
  'odd length': (chance) =>
    post(
      chance,
      [`Content-Length: ${oneOf(chance, ['-1', '+2', '0x2', '2,3', '2 2', '1e1', 'two', '99999999999999999999999'])}`],
      '{}'
    ),
  'odd coding': (chance) =>
    post(
      chance,
      [
        `Transfer-Encoding: ${oneOf(chance, ['xchunked', 'chunked, identity', 'identity', 'chunked,gzip', '"chunked"', 'chu nked'])}`
      ],
      '0\r\n\r\n'
    ),
  'blank before the colon': (chance) =>
    post(
      chance,
      [oneOf(chance, ['Transfer-Encoding : chunked', 'Content-Length : 5', 'Content-Length\t: 5'])],
      '0\r\n\r\n'
    ),
  'bad chunk size': (chance) =>
    post(
      chance,
      ['Transfer-Encoding: chunked'],
      `${oneOf(chance, ['g', '-1', '0x2', 'ffffffffffffffffff', ' 2', '2 ', '', '+2'])}\r\n{}\r\n0\r\n\r\n`
    ),
  'chunk without its end': (chance) =>
    post(chance, ['Transfer-Encoding: chunked'], `${(2).toString(16)}\r\n{}${letters(chance, 3)}\r\n0\r\n\r\n`),
  'folded header': (chance) =>
    get(chance, `X-${letters(chance, 5)}: a\r\n${oneOf(chance, [' ', '\t'])}Transfer-Encoding: chunked`),
  'character in a name': (chance) => get(chance, `X${oneOf(chance, ['(', '@', '\0', ' ', '\x7f', 'é', '{', '"'])}Y: 1`),
  'control in a value': (chance) =>
    get(chance, `X-${letters(chance, 3)}: a${oneOf(chance, ['\0', '\x01', '\x1b', '\x7f'])}b`),
  'bare return': (chance) => get(chance, `X-A: a\rX-B: b`),
  'no name': (chance) => get(chance, `: ${letters(chance, 4)}`),
  'no colon': (chance) => get(chance, letters(chance, 9)),
  'odd version': (chance) =>
    `GET ${target(chance)} ${oneOf(chance, ['HTTP/1.2', 'HTTP/11', 'HTTP/1', 'http/1.1', 'HTTPS/1.1', 'HTTP/x.1', 'ICE/1.0'])}\r\nHost: localhost\r\n\r\n`,
  'odd method': (chance) =>
    `${oneOf(chance, ['get', 'GE T', 'G\0ET', 'PRI', letters(chance, 6).toUpperCase()])} ${target(chance)} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
  'target with a blank or control': (chance) =>
    `GET ${oneOf(chance, ['api/games', '/a b', '/\0', '/api/\x01'])} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
  overlong: (chance) =>
    oneOf(chance, [
      () => get(chance, `X-A: ${'a'.repeat(40_000 + chance(40_000))}`),
      () => get(chance, ...Array.from({ length: 3000 }, (_, n) => `X-${n}: ${letters(chance, 8)}`)),
      () => post(chance, ['Content-Length: 70000'], 'x'.repeat(70_000))
    ])(),
  'no HTTP': (chance) =>
    oneOf(chance, [
      '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
      'SSH-2.0-OpenSSH_9.9\r\n',
      '\0\0\0\0',
      `${letters(chance, 30)}\r\n\r\n`,
      '{"a":1}\r\n\r\n'
    ])
}

/** Kinds with an undisputed end of the request: the connection may continue after them. */
const WELL_FRAMED: typeof KINDS = {
  'two hosts': (chance) =>
    `GET /${letters(chance, 6)} HTTP/1.1\r\nHost: localhost\r\nHost: ${letters(chance, 6)}\r\n\r\n`,
  'no host': (chance) => `GET /${letters(chance, 6)} HTTP/1.1\r\n\r\n`,
  'odd target': (chance) =>
    `GET ${oneOf(chance, ['/%zz', '/%', '/%c0%af', '/..%2f..%2fetc/passwd', '/../../etc/passwd', '/api//games'])} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
  'absolute form of a path that there is not': (chance) =>
    `GET http://${letters(chance, 8)}.example/${letters(chance, 5)} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
  'overlong target': (chance) => `GET /${'a'.repeat(17_000 + chance(60_000))} HTTP/1.1\r\nHost: localhost\r\n\r\n`
}

const ErrorBody = z.strictObject({ error: z.string().min(1) })

/**
 * Sends this number of requests; each must be refused or its connection closed, and valid requests must be answered as
 * before.
 */
export const provesRefusalOfMalformed = async (
  t: Test,
  apiUrl: string,
  { seed, requests }: { seed: number; requests: number }
) => {
  const kinds = Object.entries({ ...KINDS, ...WELL_FRAMED })
  const { hostname, port } = new URL(apiUrl)
  const wrong: { kind: string; sent: string; got: string }[] = []
  const statuses = new Map<string, number>()
  const good = async (): Promise<string> => {
    const answer = await fetch(`${apiUrl}/healthz`)
    return `${answer.status} ${await answer.text()}`
  }
  const first = await good()
  let next = 0
  const sender = async (): Promise<void> => {
    while (next < requests) {
      const n = next
      next += 1
      const [kind, make] = kinds[n % kinds.length] as (typeof kinds)[number]
      const sent = make(chanceOf(seed + n))
      const got = await answerTo(Number(port), hostname, kind in WELL_FRAMED ? sent : sent + SMUGGLED)
      const fault = faultOf(got)
      const status = got.slice(9, 12) || 'closed'
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (fault !== undefined) wrong.push({ kind, sent: sent.slice(0, 300), got: `${fault}: ${got.slice(0, 300)}` })
      if (n % 500 === 499 && (await good()) !== first)
        wrong.push({ kind, sent: 'a good request', got: 'another answer' })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, sender))
  t.same(wrong.slice(0, 10), [], `${requests} malformed requests from seed ${seed}`)
  t.equal(await good(), first, 'a good request is answered as before')
  t.comment(
    `${requests} malformed requests: ${[...statuses]
      .sort()
      .map(([status, count]) => `${status} ${count}`)
      .join(', ')}`
  )
}

/** Returns all bytes of the server until it closes the connection. */
const answerTo = async (port: number, host: string, bytes: string): Promise<string> => {
  const socket = connect({ port, host })
  const said: Buffer[] = []
  socket.on('data', (chunk) => said.push(chunk))
  // A server that closes while it is still written to resets the connection.
  socket.on('error', () => undefined)
  socket.setTimeout(WAIT_MS, () => {
    said.push(Buffer.from('(the connection stays open)'))
    socket.destroy()
  })
  socket.end(Buffer.from(bytes, 'latin1'))
  await once(socket, 'close')
  return Buffer.concat(said).toString('latin1')
}

/** Returns undefined for no answer, or for exactly one 4xx answer with the body of an error. */
const faultOf = (got: string): string | undefined => {
  if (got === '') return undefined
  const head = /^HTTP\/1\.1 (\d{3}) [^\r]*\r\n((?:[^\r]+\r\n)*)\r\n/.exec(got)
  if (head === null) return 'no answer of HTTP'
  if (!/^4/.test(head[1] ?? '')) return `status ${head[1]}`
  const length = Number(/^content-length: (\d+)\r$/im.exec(head[2] ?? '')?.[1])
  const body = got.slice(head[0].length)
  if (body.length !== length) return 'more or less than one answer'
  try {
    ErrorBody.parse(JSON.parse(Buffer.from(body, 'latin1').toString('utf8')))
    return undefined
  } catch {
    return 'no body of an error'
  }
}
