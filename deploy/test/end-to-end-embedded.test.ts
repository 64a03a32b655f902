import { once } from 'node:events'
import { statSync } from 'node:fs'
import { readdir, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { until } from '@gamenet/engines/testing'
import { test } from 'tap'
import { caughtUp } from '../src/operate/status/caught-up.js'
import { Status } from '../src/operate/status/operation.js'
import { provesEndToEnd } from './service/end-to-end.js'
import {
  AUTHORIZED,
  gamenet,
  gamenetJson,
  openGamenet,
  operationsAt,
  spawnedGamenet,
  spawnGamenet,
  startGamenet
} from './service/gamenet.js'
import { startUpstream } from './service/upstream.js'

/** An import of this size takes 30 appends: it is still running when the log has the first one. */
const ROWS = 60_000

test('one process on embedded engines answers from pages and files, and restarts', async (t) => {
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
  const { operatorUrl } = service
  await provesEndToEnd(t, { upstream, apiUrl: service.apiUrl ?? '', operatorUrl, directory })
  const before = await (await fetch(`${service.apiUrl}/api/online-users`)).text()
  const second = await gamenet({ ...environment, PORT: '0', OPERATOR_PORT: '0' }, ['start'])
  t.equal(second.code, 1)
  t.match(second.stderr, /^The data directory .* is in use by process \d+; .*\n$/)

  const file = join(directory, 'counts.csv')
  await writeFile(file, minuteCounts(ROWS))
  await t.test('Ctrl-C in the middle of an import ends it, lists it, and says how to resume', async (t) => {
    // A million rows: the import takes ten seconds and more.
    const long = join(directory, 'long.csv.gz')
    await writeFile(
      long,
      gzipSync(`titleId,observedAt,online\n${'4d530064,2016-01-01T00:00:00Z,7\n'.repeat(1_000_000)}`)
    )
    const importing = spawnGamenet({ OPERATOR_URL: operatorUrl }, ['import', 'title-count', long])
    const errors = text(importing.stderr ?? Readable.from([]))
    await untilBegun(operatorUrl)
    importing.kill('SIGINT')
    t.equal((await once(importing, 'close'))[0], 130)
    t.match(await errors, /^The import of .*long\.csv\.gz was interrupted; the same command resumes it\..*\n$/m)
    // The list is read from the tables. The command ends without waiting for the service, which then ends the import.
    t.match(await operationsAt(operatorUrl).run(caughtUp, { seconds: 60 }), { caughtUp: true })
    const list = () => gamenet({ OPERATOR_URL: operatorUrl }, ['import', 'list'])
    let listed = await list()
    while (/being published/.test(listed.stdout)) listed = await list()
    t.match(listed, {
      code: 0,
      stdout: /interrupted:\s+title-count\s+of\s+long\.csv\.gz\n.*\nThe command .* resumes it\.\n$/s
    })
  })
  await t.test('status --watch repeats the status until Ctrl-C', async (t) => {
    const watching = spawnGamenet({ OPERATOR_URL: operatorUrl }, ['status', '--watch'])
    const closed = once(watching, 'close')
    let shown = ''
    for await (const chunk of watching.stdout ?? []) {
      shown += String(chunk)
      if (shown.split('\nGamenet Stats ').length > 2) watching.kill('SIGINT')
    }
    t.equal((await closed)[0], 0)
  })
  await t.test('every file and folder of its data directory belongs to its user alone', async (t) => {
    const found = await readdir(environment.DATA_DIR, { recursive: true, withFileTypes: true })
    t.ok(found.length > 1000, `${found.length} files and folders`)
    const open = found
      .filter((entry) => !entry.isSymbolicLink())
      .flatMap((entry) => {
        const path = join(entry.parentPath, entry.name)
        const mode = (statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077
        return mode === 0 ? [] : [`${path} ${mode.toString(8)}`]
      })
    t.same(open, [])
  })
  await t.test('killed in the middle of an import, it leaves one sentence', async (t) => {
    const interrupted = gamenet({ OPERATOR_URL: operatorUrl }, ['import', 'title-count', file])
    await untilBegun(operatorUrl)
    await service.kill()
    const { code, stderr } = await interrupted
    t.equal(code, 1)
    t.notMatch(stderr, /\n\s+at /, 'no stack')
  })
  await t.test('a port in use ends a start after its engines are open', async (t) => {
    const taken = createServer().listen(0, '127.0.0.1')
    t.teardown(() => taken.close())
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const done = await gamenet({ ...environment, PORT: String(port), OPERATOR_PORT: '0' }, ['start'])
    t.equal(done.code, 1)
    t.match(done.stderr, /is used by another program; set PORT to another port, or 0 for any free one\.\n$/)
    t.notMatch(done.stderr, /\n\s+at /, 'no stack')
  })
  await t.test('started again, it answers the same, and the same import completes', async (t) => {
    const { apiUrl } = await openGamenet(t, environment)
    t.equal(await (await fetch(`${apiUrl}/api/online-users`)).text(), before, 'a SIGKILL loses nothing')
    t.match(await gamenetJson(environment, ['import', 'title-count', file]), [
      { rowsRead: ROWS, rejected: 0, finished: true, alreadyDone: false }
    ])
    const top = await (
      await fetch(`${apiUrl}/api/network-stats/top-games?from=2025-01-01T00:00:00Z&to=2025-03-01T00:00:00Z`)
    ).json()
    t.match(
      top,
      Array.from({ length: 100 }, () => ({ peak: 99, average: 49.5 })),
      'every count once'
    )
  })
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

/** Waits until the log has a part of the import; a page was scraped before. */
async function untilBegun(operatorUrl: string): Promise<void> {
  const appended = async () => {
    const { topics } = Status.parse(await (await fetch(`${operatorUrl}/status`, { headers: AUTHORIZED })).json())
    return topics.find(({ topic }) => topic === 'title-count')?.head ?? 0
  }
  const before = await appended()
  await until(async () => (await appended()) > before)
}

test('an impossible start prints one sentence and sets the exit code', async (t) => {
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
    [{}, ['api'], 2, /CLICKHOUSE_URL/]
  ]
  for (const [environment, args, code, sentence] of cases) {
    // A role ends its process.
    const done = await (args[0] === 'start' ? gamenet : spawnedGamenet)(environment, args)
    t.equal(done.code, code, args.join(' '))
    t.match(done.stderr, sentence)
    t.notMatch(done.stderr, /\n\s+at /, 'no stack')
  }
})
