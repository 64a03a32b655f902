import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pino } from 'pino'
import { Gauge, Registry } from 'prom-client'
import { test } from 'tap'
import { buildMetricsApp } from '../src/operator/operator-app.js'
import { uncaughtErrors } from '../src/run/uncaught-errors.js'

const EMFILE = Object.assign(new Error('EMFILE: too many open files, uv_resident_set_memory'), {
  code: 'EMFILE',
  errno: -24,
  syscall: 'uv_resident_set_memory'
})

function logged() {
  const lines: { level: number; msg: string }[] = []
  const stream = new Writable({
    write: (chunk, _, done) => {
      lines.push(JSON.parse(String(chunk)))
      done()
    }
  })
  return { lines, logger: pino(stream) }
}

test('an error of the machine costs a part of the process, which status names; a defect ends the process', async (t) => {
  const { lines, logger } = logged()
  const damageMet = new Set<string>()
  const registry = new Registry()
  const ended: string[] = []
  const onUncaught = uncaughtErrors({ logger, registry, damageMet }, (sentence) => ended.push(sentence))
  for (let n = 0; n < 100; n += 1)
    onUncaught(n % 2 === 0 ? EMFILE : Object.assign(new Error(`EIO: ${n}`), { syscall: 'read' }))
  t.same(ended, [])
  t.equal(damageMet.size, 10, 'status stays short')
  t.match([...damageMet][0], /^a part of the process has failed at .*: EMFILE: too many open files/)
  t.equal(lines.length, 100)
  t.match(await registry.metrics(), /^gamenet_uncaught_errors_total 100$/m)
  onUncaught(new TypeError('x is undefined'))
  t.match(ended, [/x is undefined/])
  onUncaught('a text')
  t.equal(ended.length, 2)
  t.equal(lines.at(-1)?.level, 60)
})

test('a process that ends itself does so by a signal, after which its supervisor starts it again', async (t) => {
  const script = `import(${JSON.stringify(new URL('../src/stores/end-at-once.js', import.meta.url).href)})
    .then(({ endAtOnce }) => endAtOnce('The reason.'))`
  const child = spawn(process.execPath, ['-e', script])
  const errors = text(child.stderr)
  t.same(await once(child, 'exit'), [null, 'SIGALRM'])
  t.match(await errors, /^The reason\. The process ends; nothing acknowledged is lost\./)
})

test('idle connections to the port of metrics keep no probe out', async (t) => {
  const { logger } = logged()
  const registry = new Registry()
  const app = buildMetricsApp({ registry, logger, host: '127.0.0.1', ready: async () => ({ ok: true }) })
  t.teardown(() => app.close())
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  for (let opened = 0; opened < 150; opened += 1) {
    const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => undefined)
    t.teardown(() => socket.destroy())
    await once(socket, 'connect')
  }
  t.equal((await fetch(`${url}/healthz`)).status, 200)
})

test('a metric that cannot be measured does not hide the others', async (t) => {
  const { lines, logger } = logged()
  const registry = new Registry()
  new Gauge({ name: 'sound', help: 'x', registers: [registry] }).set(1)
  const collect = (): never => {
    throw EMFILE
  }
  new Gauge({ name: 'unmeasured', help: 'x', registers: [registry], collect })
  new Gauge({ name: 'sound_too', help: 'x', registers: [registry] }).set(2)
  const expected = registry.getSingleMetricAsString('sound')
  const app = buildMetricsApp({ registry, logger, host: '127.0.0.1', ready: async () => ({ ok: true }) })
  t.teardown(() => app.close())
  const { statusCode, body } = await app.inject({ url: '/metrics', headers: { host: 'localhost' } })
  t.equal(statusCode, 200)
  t.equal(body, `${await expected}\n\n${await registry.getSingleMetricAsString('sound_too')}\n`)
  t.match(lines, [{ metric: 'unmeasured', err: { code: 'EMFILE' } }])
})
