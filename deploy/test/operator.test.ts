import { once } from 'node:events'
import { readFile, stat } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import type { Postgres } from '@gamenet/engines'
import { Registry } from 'prom-client'
import { test } from 'tap'
import { z } from 'zod'
import { backup } from '../src/operate/backup/operation.js'
import { replicasAway, Status } from '../src/operate/status/operation.js'
import { verdictOf } from '../src/operate/status/verdict.js'
import { operatorClient } from '../src/operator/operator-client.js'
import { readiness } from '../src/run/readiness.js'
import type { Role } from '../src/stores/component.js'
import { deployedProcesses } from './service/deployment-files.js'
import { gamenet, startGamenet } from './service/gamenet.js'
import { provesRefusalOfMalformed } from './service/malformed.js'

const Owner = z.object({ operatorToken: z.string() })

test('the operator port answers the command line, and refuses web pages and clients without the token', async (t) => {
  const directory = t.testdir({ 'secret.csv': 'observedAt,online\n2020-01-01T00:00:00Z,1\n' })
  const DATA_DIR = `${directory}/data`
  // As the container with embedded engines starts, but on loopback and free ports.
  const container = (await deployedProcesses()).find(({ command }) => command === 'start')
  const service = await startGamenet({
    ...container?.environment,
    HOST: '127.0.0.1',
    PORT: '0',
    METRICS_HOST: '127.0.0.1',
    DATA_DIR,
    OPERATOR_TOKEN: '',
    METRICS_PORT: '0',
    SHUTDOWN_DELAY_SECONDS: '300',
    DISK_FREE_MIN_BYTES: '0',
    UPSTREAM_URL: 'http://127.0.0.1:9',
    SCRAPE_NETWORK_SECONDS: '0',
    SCRAPE_GAMES_SECONDS: '0'
  })
  t.teardown(() => service.kill())
  const { port } = new URL(service.operatorUrl)
  t.equal((await stat(join(DATA_DIR, 'service.json'))).mode & 0o777, 0o600, 'its user alone reads the token')
  const { operatorToken } = Owner.parse(JSON.parse(await readFile(join(DATA_DIR, 'service.json'), 'utf8')))
  const authorization = `Bearer ${operatorToken}`
  const send = (method: string, path: string, headers: Record<string, string>, body = '') =>
    new Promise<{ status: number; text: string }>((resolve, reject) => {
      const sent = request(
        { host: '127.0.0.1', port, method, path, headers: { authorization, ...headers } },
        (answer) => {
          let text = ''
          answer.setEncoding('utf8').on('data', (chunk: string) => {
            text += chunk
          })
          answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }))
        }
      )
      sent.on('error', reject).end(body)
    })
  const sent = encodeURIComponent(
    JSON.stringify({ topic: 'network-count', file: 'x', columns: {}, set: {}, strict: false })
  )
  const octets = { 'content-type': 'application/octet-stream' }
  for (const [what, status, sentence, answer] of [
    [
      'a path as text',
      415,
      /./,
      await send('POST', `/import?request=${sent}`, { 'content-type': 'text/plain' }, `${directory}/secret.csv`)
    ],
    ['a page of another site', 403, /Origin/, await send('POST', '/scrape/all', { origin: 'https://evil.example' })],
    ['a page that took our address', 403, /evil\.example/, await send('GET', '/status', { host: 'evil.example:8081' })],
    ['no token', 401, /OPERATOR_TOKEN/, await send('POST', '/scrape/all', { authorization: '' })],
    ['a wrong token', 401, /a wrong one/, await send('GET', '/status', { authorization: 'Bearer of-another' })],
    ['no body', 400, /octet-stream/, await send('POST', `/import?request=${sent}`, {})],
    ['no request', 400, /request must be/, await send('POST', '/import', octets, 'x')],
    ['a request that is not JSON', 400, /request must be/, await send('POST', '/import?request=%7B', octets, 'x')],
    ['an unknown source', 400, /There is no source "weather"/, await send('POST', '/scrape/weather', {})],
    ['no username', 400, /octet-stream/, await send('POST', '/erasures', {})],
    [
      'a username of 5 kB',
      400,
      /is longer than the limit of 4096 bytes/,
      await send('POST', '/erasures', octets, 'a'.repeat(5000))
    ],
    [
      'a username of 5 kB and no length',
      400,
      /the username, is longer than the limit of 4096 bytes/,
      await send('POST', '/erasures', { ...octets, 'transfer-encoding': 'chunked' }, 'a'.repeat(5000))
    ],
    ['a word for a boolean', 400, /anyway as true or false/, await send('POST', '/erasures?anyway=yes', octets, 'ann')],
    ['an unknown parameter', 400, /takes no other parameters/, await send('GET', '/gaps?topic=scrape', {})],
    [
      'no choice of dead letters',
      400,
      /The body, .* is the JSON/,
      await send('POST', '/dead-letters/drop', octets, '[1]')
    ],
    ['a wait forever', 400, /seconds must be/, await send('GET', '/caught-up?seconds=1e9', {})],
    ['an unknown path', 404, /nothing at/, await send('GET', '/nothing', {})]
  ] as const) {
    t.equal(answer.status, status, what)
    t.match(JSON.parse(answer.text), { error: sentence })
  }
  const raw = async (head: string) => {
    const socket = connect(Number(port), '127.0.0.1').setEncoding('utf8')
    socket.end(`${head}\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
    const answer = (await socket.toArray()).join('')
    const [top = '', body = ''] = answer.split('\r\n\r\n')
    return { status: Number(top.slice(9, 12)), top, error: String(JSON.parse(body).error ?? JSON.parse(body).detail) }
  }
  for (const [head, status, sentence] of [
    ['FOO /healthz HTTP/1.1', 400, /: Invalid method encountered\./],
    ['PROPFIND /healthz HTTP/1.1', 405, /^PROPFIND is not answered here; allowed: GET, HEAD, OPTIONS\./],
    ['POST /status HTTP/1.1', 405, /allowed: GET, HEAD, OPTIONS\./],
    ['CONNECT example.org:443 HTTP/1.1', 405, /^CONNECT is not answered here/],
    ['GET http:///healthz HTTP/1.1', 400, /: the host in its target is empty\./],
    ['GET http:///healthz HTTP/1.1\r\nAccept: application/problem+json', 400, /: the host in its target is empty\./],
    ['GET /healthz HTTP/1.1\r\nExpect: miracles', 417, /100-continue/],
    ['GET /healthz HTTP/1.1\r\nHost: localhost', 400, /not exactly one host/]
  ] as const) {
    const answer = await raw(head)
    t.equal(answer.status, status, head)
    t.match(answer.error, sentence)
    t.match(answer.top, /^X-Request-Id: /im, head)
    t.notMatch(answer.top, /^Access-Control-Allow-Origin: /im, head)
    if (status === 405) t.match(answer.top, /^Allow: GET, HEAD, OPTIONS/im, head)
    t.match(answer.top, /^Link: <\/docs\/errors#/im, head)
  }
  const status = Status.parse(JSON.parse((await send('GET', '/status', {})).text))
  t.equal(
    status.topics.some(({ topic, head }) => topic === 'network-count' && head !== 0),
    false,
    'nothing was imported'
  )
  t.equal((await send('GET', '/healthz', { host: 'localhost:8081' })).status, 200)
  t.equal((await send('GET', '/healthz', { host: '[::1]:8081' })).status, 200)
  for (const url of [service.operatorUrl, service.metricsUrl ?? '']) {
    for (const path of ['/healthz', '/readyz', '/metrics', '/docs/errors'])
      t.equal((await fetch(url + path)).status, 200, url + path)
  }
  t.equal((await fetch(`${service.metricsUrl}/status`)).status, 404, 'the port of metrics has no operations')
  t.match(
    await gamenet({ DATA_DIR, OPERATOR_TOKEN: '' }, ['status']),
    { code: 0, stdout: /^Healthy\.\nGamenet Stats / },
    'a command finds the token'
  )
  const troubled: Status = {
    ...status,
    degraded: ['log (Kafka) cannot be reached'],
    deadLetters: { scrape: 1 },
    projections: [{ projection: 'title', state: 'failing', lagEvents: 1, lagSeconds: 301, reason: 'Code: 60' }]
  }
  t.equal(
    verdictOf(troubled),
    'Needs attention: log (Kafka) cannot be reached; an event is 5 min old and not readable yet (BEHIND names the topic or the projection); the projection title fails (the reason is below); dead letters of scrape (gamenet dead-letters list).'
  )
  const OPERATOR_URL = service.operatorUrl
  t.match(await gamenet({ OPERATOR_URL, OPERATOR_TOKEN: '' }, ['status']), {
    code: 1,
    stderr: /requires its token; got none/
  })
  // 50,000 of them: the campaign of malformed requests.
  await provesRefusalOfMalformed(t, service.apiUrl ?? '', { seed: 1, requests: 500 })
  service.process.kill('SIGTERM')
  let readiness = await fetch(`${service.metricsUrl}/readyz`)
  while (readiness.status === 200) readiness = await fetch(`${service.metricsUrl}/readyz`)
  t.match(await readiness.json(), { ok: false, reason: 'it is stopping' })
  t.equal((await fetch(`${service.apiUrl}/readyz`)).status, 503)
  t.equal(
    (await fetch(`${service.apiUrl}/api/games`)).status,
    200,
    'it answers until load balancers have learned of it'
  )
})

test('status names each replica with a fault', (t) => {
  const replica = (address: string, fault?: string) => ({ address, isPinned: fault === undefined, fault })
  const replicas = () => [replica('http://a:8123/'), replica('http://b:8123/', 'is 40 s behind the other replicas')]
  t.same(replicasAway({ replicas }), ['the replica http://b:8123/ is 40 s behind the other replicas'])
  t.same(replicasAway({}), [])
  t.end()
})

test('a process is ready while it can do its work, and names what is unavailable', async (t) => {
  const away = new Set<string>()
  const ask = (engine: string) => async () => {
    if (away.has(engine)) throw new Error('password=secret')
    return []
  }
  let known = true
  let low = false
  let full = false
  const registry = new Registry()
  const check = (role: Role) =>
    readiness({
      role,
      hasApi: role === 'api',
      engines: {
        names: { log: 'Kafka', tables: 'ClickHouse', writes: 'PostgreSQL' },
        clickhouse: { control: { rows: ask('tables') } },
        log: { extents: ask('log') },
        postgres: { check: ask('writes') } as unknown as Postgres,
        disk: { isLow: () => low, isFull: () => full }
      },
      dataVersions: {
        get hasBeenCurrent() {
          return known
        }
      },
      damage: { tables: { inUse: async () => [] } },
      registry: role === 'api' ? registry : new Registry()
    })
  const [api, ingest, projector] = [check('api'), check('ingest'), check('projector')]
  for (const each of [api, ingest, projector]) t.match(await each.ready(), { ok: true, degraded: [] })
  away.add('log').add('writes')
  const degraded = ['log (Kafka) cannot be reached', 'writes (PostgreSQL) cannot be reached']
  t.match(await api.ready(), { ok: true, degraded })
  t.match(await ingest.ready(), { ok: true, degraded })
  t.same(await projector.ready(), { ok: false, reason: 'log (Kafka) cannot be reached' })
  t.match(await registry.metrics(), /^gamenet_engine_up\{engine="log"\} 0$/m)
  t.match(await registry.metrics(), /^gamenet_engine_up\{engine="tables"\} 1$/m)
  away.clear()
  low = true
  t.match(await api.ready(), { ok: true, degraded: [/^a disk of DATA_DIR has less than DISK_FREE_MIN_BYTES free$/] })
  full = true
  t.match(await api.ready(), { ok: true, degraded: [/^a disk of DATA_DIR is full or read-only, and writes fail$/] })
  away.add('tables')
  t.match(
    await api.ready(),
    { ok: true, degraded: ['tables (ClickHouse) cannot be reached', /disk/] },
    'it has old answers'
  )
  known = false
  t.match(await api.ready(), { ok: false, reason: /not known yet/ }, 'it has none')
  t.match(await ingest.ready(), { ok: true })
})

test('a service that dies during an answer leaves a sentence, and after the report nothing', async (t) => {
  const report = { directory: '/b', createdAt: '2026-11-21T00:00:00Z', files: 2, bytes: 2, tookMs: 1 }
  // Sends its report with the first answer only, and breaks every connection.
  let answered = 0
  const server = createServer(async (_request, response) => {
    answered += 1
    const said = answered === 1 ? `${JSON.stringify({ report })}\n` : ''
    response.writeHead(200, { 'content-type': 'application/x-ndjson' })
    response.write(`${said}{"half of a`, () => response.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const operations = operatorClient({ operatorUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
  t.same(await operations.run(backup, { directory: '/b' }), report)
  await t.rejects(operations.run(backup, { directory: '/b' }), {
    message:
      'The service ended the backup without a report; its log has the reason, unless it was killed. Repeat it: operations are idempotent.'
  })
})
