import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { until } from '@gamenet/engines/testing'
import { storeOver } from '@gamenet/projector'
import { test } from 'tap'
import { z } from 'zod'
import { projectorOn } from '../proof/bench/projector-on.js'
import { serviceOperations } from '../src/run/service-operations.js'
import { AUTHORIZED, plainWrites, ROOT, spawnGamenet, startGamenet, untilLoaded } from './service/gamenet.js'
import { openTestEngines } from './service/open-engines.js'

/** Scrapes nothing. */
const QUIET = { UPSTREAM_URL: 'http://127.0.0.1:9', SCRAPE_NETWORK_SECONDS: '0', SCRAPE_GAMES_SECONDS: '0' }

test('a service that is stopped in the middle of its work ends with 0', async (t) => {
  const directory = t.testdir()
  const service = await startGamenet({ DATA_DIR: `${directory}/data` })
  t.teardown(() => service.kill())
  await untilLoaded(service.operatorUrl, 2_000)
  t.equal(await service.stop(), 0)
  const isWarned = /^.*runs as root.*\n/m
  t.equal(isWarned.test(service.stderr()), process.getuid?.() === 0)
  const ofNode = /^.*gets no security fixes since.*\n/m
  t.equal(service.stderr().replace(isWarned, '').replace(ofNode, ''), '', 'and logs no trouble')
})

test('`npm start` starts a service again that has ended itself, and ends with it', async (t) => {
  const directory = t.testdir()
  const [supervisor, program] = ['supervise.cjs', 'gamenet.cjs'].map((file) =>
    fileURLToPath(new URL(`deploy/${file}`, ROOT))
  )
  const script = `require(${JSON.stringify(supervisor)}).supervise([${JSON.stringify(program)}, 'start', '--json'], 0)`
  const ports = { PORT: '0', OPERATOR_PORT: '0' }
  const env = {
    PATH: process.env.PATH ?? '',
    ...QUIET,
    ...ports,
    ...(await plainWrites(t)),
    DATA_DIR: `${directory}/data`
  }
  const supervising = spawn(process.execPath, ['-e', script], { env })
  t.teardown(() => supervising.kill('SIGKILL'))
  const errors = text(supervising.stderr)
  const starts = createInterface({ input: supervising.stdout })[Symbol.asyncIterator]()
  const service = async () => {
    const { value } = await starts.next()
    const { operatorUrl } = z.object({ operatorUrl: z.string() }).parse(JSON.parse(value))
    t.equal((await fetch(`${operatorUrl}/healthz`)).status, 200)
    return z.object({ pid: z.int() }).parse(JSON.parse(await readFile(`${directory}/data/service.json`, 'utf8'))).pid
  }
  const hanging = await service()
  process.kill(hanging, 'SIGALRM')
  const again = await service()
  t.not(again, hanging)
  const closed = once(supervising, 'close')
  supervising.kill('SIGTERM')
  t.same(await closed, [0, null])
  t.throws(() => process.kill(again, 0), 'the service has ended before')
  t.match(await errors, /^The service was ended by SIGALRM\.\nIt is started again\.$/m)
})

test('Ctrl-C ends a command that has not loaded yet with a sentence, by the signal', async (t) => {
  const directory = t.testdir({ 'interrupt.cjs': `setImmediate(() => process.kill(process.pid, 'SIGINT'))` })
  const environment = { NODE_OPTIONS: `--require=${JSON.stringify(`${directory}/interrupt.cjs`)}` }
  const importing = spawnGamenet(environment, ['import', 'title-count', '/nowhere.csv'])
  const said = text(importing.stderr ?? Readable.from([]))
  t.same(await once(importing, 'close'), [null, 'SIGINT'], 'which shells report as 130')
  t.equal(await said, 'Interrupted. The same command can be run again.\n')
})

test('a SIGKILL of the service or of its supervisor ends both', async (t) => {
  const supervisor = fileURLToPath(new URL('deploy/supervise.cjs', ROOT))
  const { href } = new URL('../src/terminal/signalled.js', import.meta.url)
  const service = `import(${JSON.stringify(href)}).then(async ({ signalled }) => {
    setInterval(() => {}, 1000)
    const stopped = signalled()
    console.log(process.pid)
    await stopped
  })`
  const script = `require(${JSON.stringify(supervisor)}).supervise(['-e', ${JSON.stringify(service)}], 0)`
  for (const victim of ['service', 'supervisor']) {
    const supervising = spawn(process.execPath, ['-e', script])
    t.teardown(() => supervising.kill('SIGKILL'))
    const output = createInterface({ input: supervising.stdout })
    const [line] = await once(output, 'line')
    const pid = victim === 'service' ? Number(line) : supervising.pid
    process.kill(pid ?? 0, 'SIGKILL')
    await once(output, 'close')
    t.pass(`the output has closed with its last process after the SIGKILL of the ${victim}`)
  }
})

test('a stop interrupts the completion of import undos, which is not a failure', async (t) => {
  const { tables, log } = await openTestEngines(t)
  const projector = projectorOn(tables, { engine: 'lmdb', path: t.testdirName, epoch: 1 })
  const engines = { log, store: storeOver(tables.control) }
  const operations = serviceOperations({ engines, projector, state: {} } as unknown as Parameters<
    typeof serviceOperations
  >[0])
  const finished = operations.finish.importUndos()
  await operations.stop()
  t.equal(await finished, 0)
})

test('neither an import nor open connections delay a stop', async (t) => {
  const directory = t.testdir()
  const service = await startGamenet({ ...QUIET, ...(await plainWrites(t)), DATA_DIR: `${directory}/data` })
  t.teardown(() => service.kill())
  const request = { topic: 'title-count', file: 'endless.csv', columns: {}, set: {}, strict: false }
  let isStopped = false
  const endless = new ReadableStream({
    // A closed connection is written to continuously: it ends with the service, and yields to others meanwhile.
    pull: async (controller) => {
      await setImmediate()
      if (isStopped) return controller.close()
      controller.enqueue(new TextEncoder().encode('titleId,observedAt,online\n'.repeat(1000)))
    }
  })
  const importing = fetch(`${service.operatorUrl}/import?request=${encodeURIComponent(JSON.stringify(request))}`, {
    method: 'POST',
    headers: { ...AUTHORIZED, 'content-type': 'application/octet-stream' },
    body: endless,
    duplex: 'half'
  })
    .then((answer) => answer.text())
    .catch(() => 'cut off')
  await untilUploading(`${directory}/data/uploads`)
  const sockets = await heldConnections(new URL(service.apiUrl ?? ''))
  // Answered after them: the service knows both.
  t.equal((await fetch(`${service.apiUrl}/healthz`)).status, 200)
  t.equal(await service.stop(), 0, service.stderr())
  isStopped = true
  for (const socket of sockets) socket.destroy()
  // A connection that is closed while the client still writes is reset, and the reset can overtake the answer.
  t.match(await importing, /The service is stopping|interrupted|^cut off$/)
})

/** Browsers open connections in advance; others begin a request and never end it. */
async function heldConnections({ hostname, port }: URL): Promise<Socket[]> {
  const openings = ['', 'GET /api/online-users HTTP/1.1\r\nHost: a\r\n'].map(async (said) => {
    const socket = connect(Number(port), hostname)
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    socket.write(said)
    return socket
  })
  return await Promise.all(openings)
}

async function untilUploading(uploads: string): Promise<void> {
  await until(async () => (await readdir(uploads).catch(() => [])).length > 0)
}
