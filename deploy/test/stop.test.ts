import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { promisify } from 'node:util'
import { test } from 'tap'
import { Status } from '../src/operator/operations.js'
import { startGamenet } from './service/gamenet.js'

const run = promisify(execFile)
/** Scrapes nothing. */
const QUIET = { UPSTREAM_URL: 'http://127.0.0.1:9', SCRAPE_NETWORK_SECONDS: '0', SCRAPE_GAMES_SECONDS: '0' }

test('what the loader thread imports does not load chDB, whose connections would close with the thread', async (t) => {
  const log = new URL('../src/service/log.js', import.meta.url).href
  const loaded = `import(${JSON.stringify(log)}).then(() => console.log(process.report.getReport().sharedObjects.join('\\n')))`
  const { stdout } = await run(process.execPath, ['-e', loaded])
  t.match(stdout, /lmdb/, 'the log is loaded')
  t.notMatch(stdout, /chdb/)
})

test('a service that is stopped in the middle of its work ends with 0, every time', async (t) => {
  const directory = t.testdir()
  for (const events of [0, 2_000, 20_000]) {
    const service = await startGamenet({ DATA_DIR: `${directory}/data` })
    t.teardown(() => service.kill())
    await untilLoaded(service.operatorUrl, events)
    t.equal(await service.stop(), 0, `with ${events} events loaded`)
    t.equal(service.stderr(), '', 'and says nothing of trouble')
  }
})

test('a service that is stopped during an import and a wait ends with 0, and says to both what to do', async (t) => {
  const directory = t.testdir()
  const service = await startGamenet({ ...QUIET, DATA_DIR: `${directory}/data` })
  t.teardown(() => service.kill())
  const request = { topic: 'title-count', file: 'endless.csv', columns: {}, set: {}, strict: false }
  let isStopped = false
  const endless = new ReadableStream({
    // A connection that is closed is written to on and on: it ends with the service, and lets others have a turn meanwhile.
    pull: async (controller) => {
      await setImmediate()
      if (isStopped) return controller.close()
      controller.enqueue(new TextEncoder().encode('titleId,observedAt,online\n'.repeat(1000)))
    }
  })
  const importing = fetch(`${service.operatorUrl}/import?request=${encodeURIComponent(JSON.stringify(request))}`, {
    method: 'POST',
    headers: { 'content-type': 'application/octet-stream' },
    body: endless,
    duplex: 'half'
  })
    .then((answer) => answer.text())
    .catch(() => 'cut off')
  await untilUploading(`${directory}/data/uploads`)
  t.equal(await service.stop(), 0)
  isStopped = true
  t.match(await importing, /The service is stopping|cut off/)
})

test('clients that hold connections do not hold up a stop', async (t) => {
  const service = await startGamenet({ ...QUIET, DATA_DIR: t.testdir() })
  t.teardown(() => service.kill())
  const address = new URL(service.apiUrl ?? '')
  // Browsers open connections in advance; others begin a request and never end it.
  const sockets = await Promise.all(
    ['', 'GET /api/online-users HTTP/1.1\r\nHost: a\r\n'].map(async (said) => {
      const socket = connect(Number(address.port), address.hostname)
      socket.on('error', () => undefined)
      await once(socket, 'connect')
      socket.write(said)
      return socket
    })
  )
  // Answered behind them: the service knows of both.
  t.equal((await fetch(`${service.apiUrl}/healthz`)).status, 200)
  t.equal(await service.stop(), 0, service.stderr())
  for (const socket of sockets) socket.destroy()
})

async function untilUploading(uploads: string): Promise<void> {
  for (;;) {
    const files = await readdir(uploads).catch(() => [])
    if (files.length > 0) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

async function untilLoaded(operatorUrl: string, events: number): Promise<void> {
  for (;;) {
    const status = Status.parse(await (await fetch(`${operatorUrl}/status`)).json())
    const loaded = status.topics.reduce((sum, topic) => sum + topic.loaded, 0)
    if (loaded >= events) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
