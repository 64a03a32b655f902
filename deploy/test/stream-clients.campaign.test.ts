import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { freePort } from '@gamenet/engines/testing'
import { instantOf } from '@gamenet/schemas'
import { type Test, test } from 'tap'
import { residentBytes } from '../proof/bench/process-figures.js'
import { importFile } from '../src/operate/import/operation.js'
import { gamenetJson, operationsAt, type Running, startGamenet } from './service/gamenet.js'

/* The short forms are api/test/stream.test.ts and sdk.test.ts, which has EventSource in Chromium. */

const SILENT = Number(process.env.STREAM_SILENT ?? 15_000)
const OPENED_AT_ONCE = 500
const SLOW_SECONDS = Number(process.env.STREAM_SLOW_SECONDS ?? 90)
const WAIT_MS_MAX = 120_000
const ANSWER_MS_MAX = 2000
const GROWTH_BYTES_MAX = 128 * 2 ** 20
const QUIET = Object.fromEntries(
  ['NETWORK', 'GAMES', 'MATCHES', 'BOARDS', 'PLAYERS'].map((page) => [`SCRAPE_${page}_SECONDS`, '0'])
)

const NODE = `
import { EventSource } from 'eventsource'
const source = new EventSource(process.argv[2])
source.addEventListener('count', ({ data }) => console.log(JSON.parse(data).data.online_count))
`
const PYTHON = `
import json, sys, time
import httpx
from httpx_sse import connect_sse
last = ""
while True:
    try:
        with httpx.Client(timeout=60) as client:
            headers = {"Last-Event-ID": last} if last else {}
            with connect_sse(client, "GET", sys.argv[1], headers=headers) as source:
                for event in source.iter_sse():
                    last = event.id
                    if event.event == "count":
                        print(json.loads(event.data)["data"]["online_count"], flush=True)
    except httpx.TransportError:
        pass
    time.sleep(0.5)
`

type World = {
  readonly url: string
  running: Running
  /** Stops it, does something and starts it. */
  restart(meanwhile?: () => Promise<unknown>): Promise<void>
  readonly environment: { readonly DATA_DIR: string }
}

/** A service on one port over its restarts. */
async function startOn(t: Test): Promise<World> {
  const environment = {
    ...QUIET,
    UPSTREAM_URL: 'http://127.0.0.1:9',
    DATA_DIR: join(t.testdir({}), 'data'),
    PORT: `${await freePort()}`,
    OPERATOR_PORT: `${await freePort()}`
  }
  const world: World = {
    url: `http://127.0.0.1:${environment.PORT}`,
    running: await startGamenet(environment),
    environment,
    async restart(meanwhile = async () => undefined) {
      await world.running.stop()
      await meanwhile()
      world.running = await startGamenet(environment)
    }
  }
  t.teardown(() => world.running.kill())
  return world
}

let minutes = 0

async function importCounts({ operatorUrl }: Running, from: number, count: number): Promise<void> {
  const lines = Array.from({ length: count }, (_, n) => {
    minutes += 1
    return `${instantOf(Date.UTC(2020, 0, 1) + minutes * 60_000)},${from + n}`
  })
  const request = { topic: 'network-count', file: `${minutes}.csv`, columns: {}, set: {}, strict: false }
  const content = (async function* () {
    yield Buffer.from(['observedAt,online', ...lines].join('\n'))
  })()
  await operationsAt(operatorUrl).run(importFile, { request, content })
}

test('the EventSource of npm, httpx-sse and curl receive each event once, over a restart and a restore', async (t) => {
  const tools = join(process.env.CAMPAIGN_DIRECTORY ?? t.testdir({}), 'tools')
  await mkdir(tools, { recursive: true })
  await writeFile(join(tools, 'listen.mjs'), NODE)
  await writeFile(join(tools, 'listen.py'), PYTHON)
  const run = (command: string, ...args: string[]) =>
    promisify(execFile)('env', ['-u', 'NODE_OPTIONS', command, ...args], { cwd: tools })
  await run('npm', 'install', '--prefix', tools, '--no-audit', '--no-fund', '--ignore-scripts', 'eventsource@4')
  await run('python3', '-m', 'venv', join(tools, 'venv'))
  await run(join(tools, 'venv/bin/pip'), 'install', '--quiet', 'httpx-sse==0.4.3', 'httpx')
  const world = await startOn(t)
  await importCounts(world.running, 0, 700)
  const path = `${world.url}/api/stream?kinds=count&after=start`
  const start = (command: string, ...args: string[]) => lines(t, spawn('env', ['-u', 'NODE_OPTIONS', command, ...args]))
  const node = start(process.execPath, join(tools, 'listen.mjs'), path)
  const python = start(join(tools, 'venv/bin/python'), '-u', join(tools, 'listen.py'), path)
  const curl = start('curl', '-sN', path)
  const counts = (text: string[]) =>
    text.flatMap((line) => (/"online_count":(\d+)/.exec(line) ?? /^(\d+)$/.exec(line))?.[1] ?? []).map(Number)
  const all = async (clients: string[][], total: number, ...more: number[]) => {
    const expected = [...Array(total).keys(), ...more]
    const endsAtMs = Date.now() + WAIT_MS_MAX
    while (clients.some((client) => counts(client).length < expected.length) && Date.now() < endsAtMs) await pause(50)
    for (const client of clients) t.same(counts(client), expected)
  }
  await all([node, python, curl], 700)
  await importCounts(world.running, 700, 5)
  await all([node, python, curl], 705)
  await world.restart()
  await importCounts(world.running, 705, 5)
  await all([node, python], 710)
  const { DATA_DIR } = world.environment
  const backup = join(dirname(DATA_DIR), 'backup')
  await gamenetJson(world.environment, ['backup', backup])
  await importCounts(world.running, 710, 5)
  await all([node, python], 715)
  // The restored log has 710. Later events get the offsets of the lost ones, in a new epoch.
  await world.restart(async () => {
    await rm(DATA_DIR, { recursive: true })
    await gamenetJson(world.environment, ['restore', backup])
  })
  await importCounts(world.running, 900, 5)
  await all([node, python], 715, 900, 901, 902, 903, 904)
})

function lines(t: Test, child: ChildProcess): string[] {
  const all: string[] = []
  let rest = ''
  t.teardown(() => child.kill('SIGKILL'))
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    const parts = (rest + chunk).split('\n')
    rest = parts.pop() ?? ''
    all.push(...parts)
  })
  return all
}

test(`${SILENT} silent connections, a listener at a byte a second and a huge Last-Event-ID delay no other`, async (t) => {
  const { url, running } = await startOn(t)
  const port = Number(new URL(url).port)
  await importCounts(running, 0, 10)
  const silent: Socket[] = []
  t.teardown(() => {
    for (const socket of silent) socket.destroy()
  })
  for (let open = 0; open < SILENT; open += OPENED_AT_ONCE) {
    await Promise.all(
      Array.from({ length: OPENED_AT_ONCE }, async () => {
        const socket = connect(port, '127.0.0.1').on('error', () => undefined)
        silent.push(socket)
        await once(socket, 'connect')
      })
    )
  }
  t.ok((await answerMs(url)) < ANSWER_MS_MAX, 'with silent connections')
  const huge = connect(port, '127.0.0.1').on('error', () => undefined)
  huge.write(`GET /api/stream HTTP/1.1\r\nHost: x\r\nLast-Event-ID: ${'x'.repeat(2 ** 20)}\r\n\r\n`)
  const [head] = (await once(huge, 'data')) as [Buffer]
  t.match(String(head), /^HTTP\/1.1 (431|400) /)
  huge.destroy()
  for (const socket of silent.splice(0)) socket.destroy()

  const before = await residentBytes(running.process.pid ?? 0)
  const slow = connect(port, '127.0.0.1').on('error', () => undefined)
  t.teardown(() => slow.destroy())
  slow.pause().write('GET /api/stream?kinds=count&after=start HTTP/1.1\r\nHost: x\r\n\r\n')
  await importCounts(running, 10, 100_000)
  for (let second = 0; second < SLOW_SECONDS; second += 1) {
    slow.read(1)
    await pause(1000)
    if (second % 10 === 0) t.ok((await answerMs(url)) < ANSWER_MS_MAX, 'with a slow listener')
  }
  const grown = (await residentBytes(running.process.pid ?? 0)) - before
  t.ok(grown < GROWTH_BYTES_MAX, 'nothing is queued for it')
  const metrics = await (await fetch(`${running.operatorUrl}/metrics`)).text()
  t.match(metrics, /^gamenet_streams_ended_total\{ending="slow"\} 1$/m, 'it is disconnected')
  t.ok(running.isAlive(), 'the service lives')
  t.comment(`${SILENT} silent connections; ${Math.round(grown / 2 ** 20)} MiB more with a slow listener`)
})

async function answerMs(url: string): Promise<number> {
  const begun = performance.now()
  const { status } = await fetch(`${url}/api/stream?wait=0&kinds=count&after=start`, {
    headers: { connection: 'close' }
  })
  if (status !== 200) throw new Error(`a good request got ${status}`)
  return performance.now() - begun
}
