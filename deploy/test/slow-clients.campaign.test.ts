import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { instantOf } from '@gamenet/schemas'
import { test } from 'tap'
import { startQuietService } from './boards-service.js'
import { gamenetJson, startGamenet } from './service/gamenet.js'

const SECONDS = Number(process.env.CAMPAIGN_SECONDS ?? 600)
const CONNECTIONS = 1000
/** Fewer than the attack opens in the time after which the service closes slow ones, on a machine with other load too. */
const HELD_MIN = CONNECTIONS / 10
const EXPORTS = 50
/** 16 MB as CSV: more than the buffers of a connection. */
const EXPORTED_ROWS = 500_000
const SINCE_MS = Date.UTC(2024, 0, 1)
const SLOW_SECONDS = 30
/** Of all exports together: they are one temporary file. */
const EXPORT_BYTES_MAX = 256 * 1024 * 1024

/** Debian's package `slowhttptest`: connections that send their headers, or their body, or read the answer, as slowly as is allowed. */
const ATTACKS = [
  { name: 'headers', path: '/api/games', args: ['-H', '-i', '2', '-x', '24'] },
  {
    name: 'body',
    // Another path, or another type of content, is refused before the body.
    path: '/api/datasearch/roster',
    args: ['-B', '-f', 'application/json', '-i', '2', '-s', '8192', '-x', '10']
  },
  { name: 'reading', path: '/api/games', args: ['-X', '-w', '10', '-y', '20', '-n', '5', '-z', '32', '-k', '3'] }
]

test('valid requests are answered while the slowest possible clients hold connections', async (t) => {
  if (spawnSync('slowhttptest', ['-h']).error !== undefined) {
    t.fail('NO SLOWHTTPTEST: slow clients cannot be tried; apt-get install slowhttptest')
    return
  }
  const service = await startGamenet({ DATA_DIR: t.testdir() })
  t.teardown(() => service.kill())
  for (const { name, path, args } of ATTACKS) {
    const seconds = Math.ceil(SECONDS / ATTACKS.length)
    const how = [
      '-c',
      String(CONNECTIONS),
      '-r',
      '200',
      '-l',
      String(seconds),
      '-p',
      '3',
      '-u',
      `${service.apiUrl}${path}`
    ]
    const attack = spawn('slowhttptest', [...args, ...how], { stdio: 'ignore' })
    t.teardown(() => attack.kill('SIGKILL'))
    const ended = once(attack, 'exit')
    let slowest = 0
    let answers = 0
    let held = 0
    while (attack.exitCode === null && attack.signalCode === null) {
      const before = await connectionsTo(service.apiUrl)
      const begun = performance.now()
      const { status } = await fetch(`${service.apiUrl}/api/games`, { headers: { connection: 'close' } })
      slowest = Math.max(slowest, performance.now() - begun)
      answers += 1
      held = Math.max(held, Math.min(before, await connectionsTo(service.apiUrl)))
      if (status !== 200) t.fail(`${name}: a good request got ${status}`)
      await pause(50)
    }
    await ended
    t.ok(held >= HELD_MIN, `${name}: a good answer while slow clients held ${held} connections`)
    t.comment(
      `slow ${name}: ${answers} good answers, next to ${held} connections at most, slowest ${slowest.toFixed(0)} ms`
    )
  }
  t.ok(service.isAlive(), 'the service lives')
})

test('exports that clients read at a byte a second', async (t) => {
  const { running, environment, directory } = await startQuietService(t)
  const rows = Array.from(
    { length: EXPORTED_ROWS },
    (_, n) => `4d530064,${instantOf(SINCE_MS + n * 60_000)},${n % 997}`
  )
  const file = join(directory, 'counts.csv')
  await writeFile(file, ['titleId,observedAt,online', ...rows].join('\n'))
  await gamenetJson(environment, ['import', 'title-count', file])
  const path =
    '/api/title/4d530064/online-users/history?from=2024-01-01T00:00:00Z&to=2026-01-01T00:00:00Z&resolution=raw&format=csv'
  t.equal((await (await fetch(running.apiUrl + path)).text()).split('\n').length, EXPORTED_ROWS + 2)
  const before = process.memoryUsage.rss()
  let most = 0
  const { hostname, port } = new URL(running.apiUrl)
  const sockets = await Promise.all(
    Array.from({ length: EXPORTS }, async () => {
      const socket = connect(Number(port), hostname)
      socket.on('error', () => undefined)
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
      await once(socket, 'readable')
      return { socket, head: String(socket.read(12)) }
    })
  )
  t.same(new Set(sockets.map(({ head }) => head.slice(9))), new Set(['200']), 'all exports are served at once')
  let slowest = 0
  for (let second = 0; second < SLOW_SECONDS; second += 1) {
    for (const { socket } of sockets) socket.read(1)
    const begun = performance.now()
    t.equal((await fetch(`${running.apiUrl}/api/games`, { headers: { connection: 'close' } })).status, 200)
    slowest = Math.max(slowest, performance.now() - begun)
    most = Math.max(most, process.memoryUsage.rss())
    await pause(1000)
  }
  t.ok(most - before <= EXPORT_BYTES_MAX, `memory grew by ${(most - before).toLocaleString()} bytes`)
  const other = path.replace('to=2026-01-01', 'to=2025-12-01')
  t.equal((await fetch(running.apiUrl + other)).status, 200, 'other files are made meanwhile')
  for (const { socket } of sockets) socket.destroy()
  t.comment(
    `${EXPORTS} exports served; slowest answer ${slowest.toFixed(0)} ms; ${(most - before).toLocaleString()} bytes more`
  )
})

/** Returns the number of established connections to a server on this machine. */
async function connectionsTo(url: string | null): Promise<number> {
  const port = Number(new URL(url ?? '').port)
  const established = `:${port.toString(16).toUpperCase().padStart(4, '0')} [0-9A-F]{8}:[0-9A-F]{4} 01 `
  return (await readFile('/proc/net/tcp', 'utf8')).match(new RegExp(established, 'g'))?.length ?? 0
}
