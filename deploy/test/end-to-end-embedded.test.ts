import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'tap'
import { Status } from '../src/operator/operations.js'
import { provesTheWholeWay } from './service/end-to-end.js'
import { gamenet, gamenetJson, startGamenet } from './service/gamenet.js'
import { startUpstream } from './service/upstream.js'

/** So many that an import of them is cut off on its way. */
const ROWS = 1_000_000

test('one process on embedded engines brings pages and files to answers', async (t) => {
  const directory = t.testdir()
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const environment = {
    DATA_DIR: `${directory}/data`,
    UPSTREAM_URL: upstream.url,
    SCRAPE_NETWORK_SECONDS: '0',
    SCRAPE_GAMES_SECONDS: '0'
  }
  const service = await startGamenet(environment)
  t.teardown(() => service.kill())
  const apiUrl = service.apiUrl ?? ''
  await provesTheWholeWay(t, { upstream, apiUrl, operatorUrl: service.operatorUrl, directory })
  const before = await (await fetch(`${apiUrl}/api/online-users`)).text()

  t.equal(await service.stop(), 0, 'SIGTERM ends it with 0')
  t.match(
    await gamenetJson(environment, ['status', '--wait']),
    { settled: { settled: true } },
    'a stopped service answers status'
  )
  const again = await startGamenet(environment)
  t.teardown(() => again.kill())
  t.equal(await (await fetch(`${again.apiUrl}/api/online-users`)).text(), before, 'a restart changes no answer')

  const second = await gamenet({ ...environment, PORT: '0', OPERATOR_PORT: '0' }, ['start'])
  t.equal(second.code, 1)
  t.match(second.stderr, /^The data directory .* is in use by process \d+; .*\n$/)
  await again.kill()
  const afterKill = await startGamenet(environment)
  t.teardown(() => afterKill.kill())
  t.equal(await (await fetch(`${afterKill.apiUrl}/api/online-users`)).text(), before, 'a SIGKILL loses nothing')
})

test('a service killed in the middle of an import comes back, and the same import again completes it', async (t) => {
  const directory = t.testdir()
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const environment = {
    DATA_DIR: `${directory}/data`,
    UPSTREAM_URL: upstream.url,
    SCRAPE_NETWORK_SECONDS: '0',
    SCRAPE_GAMES_SECONDS: '0'
  }
  const file = join(directory, 'counts.csv')
  await writeFile(file, minuteCounts(ROWS))
  const service = await startGamenet(environment)
  t.teardown(() => service.kill())
  const cutOff = gamenet({ OPERATOR_URL: service.operatorUrl }, ['import', 'title-count', file])
  await untilLoaded(service.operatorUrl, 50_000)
  await service.kill()
  const { code, stderr } = await cutOff
  t.equal(code, 1)
  t.notMatch(stderr, /\n\s+at /, 'no stack')

  const again = await startGamenet(environment)
  t.teardown(() => again.kill())
  t.match(await gamenetJson(environment, ['import', 'title-count', file]), [
    { rowsRead: ROWS, rejected: 0, finished: true }
  ])
  const top = await (
    await fetch(`${again.apiUrl}/api/network-stats/top-games?from=2025-01-01T00:00:00Z&to=2025-03-01T00:00:00Z`)
  ).json()
  t.match(
    top,
    Array.from({ length: 100 }, () => ({ peak: 99, average: 49.5 })),
    'every count once'
  )
})

/** Counts of 100 titles by the minute: minute m of title i has (m + i) % 100 players. */
function minuteCounts(rows: number): string {
  const lines = ['titleId,observedAt,online']
  for (let row = 0; row < rows; row += 1) {
    const minute = Math.floor(row / 100)
    lines.push(
      `${(0x4d530000 + (row % 100)).toString(16)},${1_735_689_600 + minute * 60},${(minute + (row % 100)) % 100}`
    )
  }
  return lines.join('\n')
}

async function untilLoaded(operatorUrl: string, events: number): Promise<void> {
  for (;;) {
    const status = Status.parse(await (await fetch(`${operatorUrl}/status`)).json())
    if (status.topics.some(({ topic, loaded }) => topic === 'title-count' && loaded >= events)) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

test('a wrong start is one sentence and an exit code', async (t) => {
  const directory = t.testdir({ file: 'not a folder' })
  const cases: [Record<string, string>, string[], number, RegExp][] = [
    [{ PORT: 'eighty' }, ['start'], 2, /PORT is "eighty"/],
    [
      { SCRAPE_NETWORK_SECONDS: '-1', UPSTREAM_URL: 'ftp://x' },
      ['start'],
      2,
      /UPSTREAM_URL is .*SCRAPE_NETWORK_SECONDS is "-1"/
    ],
    [{ DATA_DIR: `${directory}/file` }, ['start'], 1, /cannot be written/],
    [{ DATA_DIR: '/proc/none/data' }, ['start'], 1, /cannot be written/],
    [
      { DATA_DIR: `${directory}/x`, CLICKHOUSE_URL: 'http://127.0.0.1:9' },
      ['start'],
      1,
      /cannot be reached.*CLICKHOUSE_URL/
    ],
    [{}, ['begin'], 2, /has no command "begin"; there are start/],
    [{ DATA_DIR: `${directory}/none` }, ['status'], 1, /There is no service and no data/],
    [{}, ['import', 'title-count', `${directory}/none.csv`], 2, /There is no file/],
    [{}, ['api'], 2, /CLICKHOUSE_URL/]
  ]
  const taken = createServer().listen(0, '127.0.0.1')
  t.teardown(() => taken.close())
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  const upstream = { UPSTREAM_URL: 'http://127.0.0.1:9', DATA_DIR: `${directory}/data`, OPERATOR_PORT: '0' }
  cases.push([
    { ...upstream, PORT: String(port) },
    ['start'],
    1,
    /is taken by another program; set PORT to another port/
  ])
  for (const [environment, args, code, sentence] of cases) {
    const done = await gamenet(environment, args)
    t.equal(done.code, code, args.join(' '))
    t.match(done.stderr, sentence)
    t.notMatch(done.stderr, /\n\s+at /, 'no stack')
  }
})
