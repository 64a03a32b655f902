import { appendFile, mkdtemp, rm, stat, statfs, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { openChdb, openPglite } from '@gamenet/engines'
import { smallDisk, until } from '@gamenet/engines/testing'
import { errorCode } from '@gamenet/schemas'
import { test } from 'tap'
import { z } from 'zod'
import { makeDisk, whyNoDisk } from '../proof/torture/power/disk.js'
import { FailureError } from '../src/config.js'
import { type Disk, openDisk } from '../src/data-directory/disk.js'
import { readSpace } from '../src/data-directory/disk-space.js'
import { unwritableDisk } from '../src/data-directory/unwritable-disk.js'
import { Status } from '../src/operate/status/operation.js'
import { ask } from './service/ask.js'
import { gamenet, gamenetJson, openGamenet, type Running, startGamenet } from './service/gamenet.js'
import { Caller, openPeopleService, signIn, startAuth } from './service/people-service.js'

const MB = 1_000_000

test('on a low disk merges and large writes wait; with free space both continue', async (t) => {
  const path = join(t.testdir(), 'tables')
  const clickhouse = await openChdb({ path })
  t.teardown(() => clickhouse.close())
  let freeBytes = 200 * MB
  const logged: string[] = []
  const disk = await openDisk({
    directory: path,
    directories: { log: undefined, tables: path, writes: undefined },
    usedOf: { log: undefined, tables: clickhouse.control, writes: undefined },
    guard: {
      freeMinBytes: 100 * MB,
      stopMerges: () => clickhouse.control.execute('SYSTEM STOP MERGES'),
      startMerges: () => clickhouse.control.execute('SYSTEM START MERGES'),
      warn: (sentence) => logged.push(sentence),
      readSpace: async (paths) => [{ path, paths, freeBytes, sizeBytes: 1000 * MB }],
      lookMs: 5
    }
  })
  t.teardown(() => disk.close())
  await clickhouse.control.execute('CREATE TABLE busy (a UInt32) ENGINE = MergeTree ORDER BY a')
  const parts = async () => {
    const [row] = await clickhouse.control.rows(
      `SELECT count() AS parts FROM system.parts AS p WHERE p.table = 'busy' AND p.active`
    )
    return Number(row?.parts)
  }
  const insert = (n: number) => clickhouse.loader.insert('busy', ['a'], new TextEncoder().encode(`[${n}]\n`))

  await disk.requireSpace(99 * MB, 'A rebuild')
  await t.rejects(disk.requireSpace(101 * MB, 'A rebuild'), {
    constructor: FailureError,
    message:
      /^A rebuild is refused and takes 101 MB: the disk of .* has 200 MB free, and 100 MB stay free .* Free some space/
  })
  t.equal(disk.isLow(), false, 'a refusal is not a low disk')
  freeBytes = 99 * MB
  await t.rejects(disk.requireSpace(0, 'The import of x'), {
    message: /^The import of x is refused: .* has 99 MB free/
  })
  await until(() => disk.isLow())
  // A running merge is aborted; a manual merge shows whether merges are stopped already.
  await until(() => refusesMerging(clickhouse))
  for (let n = 0; n < 40; n += 1) await insert(n)
  t.equal(await parts(), 40)
  freeBytes = 120 * MB
  await t.rejects(disk.requireSpace(0, 'x'), { message: /is refused/ }, 'space for a moment does not suffice')
  let isThereSpace = false
  const waiting = disk.whenSpace(new AbortController().signal).then(() => {
    isThereSpace = true
  })
  t.equal(isThereSpace, false)
  freeBytes = 126 * MB
  await waiting
  await disk.requireSpace(0, 'x')
  await until(async () => (await parts()) < 40)
  t.match(logged, [
    /^Low disk: the disk of .* 99 MB free; 100 MB must stay free/,
    /^Disk space is sufficient again: .* 126 MB free/
  ])
  t.equal(logged.length, 2, 'once each')
})

async function refusesMerging(clickhouse: Awaited<ReturnType<typeof openChdb>>): Promise<boolean> {
  await clickhouse.control.execute('CREATE TABLE IF NOT EXISTS tried (a UInt8) ENGINE = MergeTree ORDER BY a')
  for (const n of [1, 2]) await clickhouse.loader.insert('tried', ['a'], new TextEncoder().encode(`[${n}]\n`))
  return await clickhouse.control.execute('OPTIMIZE TABLE tried FINAL').then(
    () => false,
    () => true
  )
}

test('the reserve of a disk follows its rules: none, or a twentieth of a small disk', async (t) => {
  const open = async (freeMinBytes: number | undefined, freeBytes: number, sizeBytes: number): Promise<Disk> => {
    const disk = await openDisk({
      directory: '/x',
      directories: { log: '/x/log', tables: undefined, writes: undefined },
      usedOf: { log: undefined, tables: NO_TABLES, writes: undefined },
      guard: {
        freeMinBytes,
        stopMerges: async () => {},
        startMerges: async () => {},
        warn: () => {},
        readSpace: async (paths) => [{ path: '/x', paths, freeBytes, sizeBytes }]
      }
    })
    t.teardown(() => disk.close())
    return disk
  }
  for (const [given, free, size, isLow, isFull] of [
    [0, 0, 1000 * MB, false, true],
    [0, 18 * MB, 1000 * MB, false, true],
    [0, 19 * MB, 1000 * MB, false, false],
    [undefined, 51 * MB, 1000 * MB, false, false],
    [undefined, 49 * MB, 1000 * MB, true, false],
    [undefined, 1025 * 1024 ** 2, 1e12, false, false],
    [undefined, 1023 * 1024 ** 2, 1e12, true, false]
  ] as const) {
    const disk = await open(given, free, size)
    t.equal(disk.isLow(), isLow, `${given}, ${free} of ${size}`)
    t.equal(disk.isFull(), isFull)
    t.match((await disk.status()).disks, [{ isLow, isFull }])
    await (isLow ? t.rejects(disk.requireSpace(0, 'x'), { message: /is refused/ }) : disk.requireSpace(0, 'x'))
  }
  const off = await open(0, 0, 1)
  await off.requireSpace(1e15, 'x')
  t.same((await off.status()).used, { log: null, tables: null, writes: null })
})

test('a disk with hardly any inode left is full, and the text names its inodes', async (t) => {
  const small = await smallDisk(t, 10, 100)
  if (small === undefined) return t.comment('NO SMALL DISK: this user may not mount one.')
  const [disk] = await readSpace([small])
  t.match(disk, { freeBytes: 0, lastInodes: 99 })
  t.match(await unwritableDisk(small, new Error('ENOSPC')), {
    message: /is full: it has 99 inodes free, which new files need/
  })
})

test('a failure that a full disk caused ends with what to free', async (t) => {
  const path = t.testdir({})
  const free = /The disk of the data directory .* is full: .* Free space on it/
  const ofLog = Object.assign(new Error('nothing was written to the log at x'), { code: 'ENOSPC' })
  t.match(await unwritableDisk(path, ofLog), { message: free })
  const ofCommand = new FailureError(
    'The tables have not caught up with the log: Cannot reserve 1 MiB (NOT_ENOUGH_SPACE).'
  )
  const failure = await unwritableDisk(path, ofCommand)
  t.match(failure, { message: free })
  t.ok(failure?.message.startsWith(`${ofCommand.message} The disk`))
  t.equal(await unwritableDisk(path, new FailureError('Another reason.')), undefined)
  t.equal(await unwritableDisk(path, failure), failure, 'said once')
  t.equal(await unwritableDisk(path, Object.assign(new Error('ENOENT'), { path: '/proc/self/x' })), undefined)
  const elsewhere = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC', path: '/tmp/x' })
  t.match(await unwritableDisk(path, elsewhere), { message: /^The disk of \/tmp\/x is full: .* Free space on it\.$/ })
})

const NO_TABLES = { rows: async () => Promise.reject(new Error('away')) } as unknown as Parameters<
  typeof openDisk
>[0]['usedOf']['tables']

/** Far above what fits into the free pages and the present segment of the write-ahead log; reached only by a defect. */
const WRITES_UNTIL_FULL = 10_000
const QUIET = { UPSTREAM_URL: 'http://127.0.0.1:9', SCRAPE_NETWORK_SECONDS: '0', SCRAPE_GAMES_SECONDS: '0' }

test('a nearly full disk stops imports with a sentence; with free space they resume', async (t) => {
  const files = t.testdir({ 'one.csv': 'observedAt,online\n2020-01-01T00:00:00Z,1\n' })
  const small = await smallDisk(t, 400)
  if (small === undefined) {
    t.comment('NO SMALL DISK: this user may not mount one, so that a high DISK_FREE_MIN_BYTES has to do.')
  }
  const { bavail, bsize } = await statfs(files)
  const environment = {
    ...QUIET,
    DATA_DIR: join(small ?? files, 'data'),
    DISK_FREE_MIN_BYTES: String(small === undefined ? 2 * bavail * bsize : 60 * MB)
  }
  const service = await startGamenet(environment)
  t.teardown(() => service.kill())
  const rows = 300_000
  const counts = join(files, 'counts.csv.gz')
  const importing = () => gamenet(environment, ['import', 'title-count', counts])
  if (small !== undefined) {
    await writeFile(counts, gzipSync(countsOf(rows), { level: 1 }))
    const cutting = importing()
    // The second event of the import contains its resume position.
    const hasProgress = /^gamenet_loaded_events_total\{.*topic="import-run".*\} [2-9]/m
    await until(async () => hasProgress.test(await metrics(service)))
    // What was published before the import is cut is still loaded.
    await fill(small, 59 * MB)
    const cut = await cutting
    t.equal(cut.code, 1, 'the disk was full before the last row')
    t.match(cut.stderr, /was interrupted after [1-9]\d* rows: .* disk of .* free.* run the same import again to resume/)
  }

  const refused = await gamenet(environment, ['import', 'network-count', join(files, 'one.csv')])
  t.equal(refused.code, 1)
  t.match(
    refused.stderr,
    /^The import of one\.csv is refused: the disk of .* free .*DISK_FREE_MIN_BYTES\)\. Free some space/
  )
  t.match(await metrics(service), /^gamenet_disk_low\{path=".*"\} 1$/m)
  t.equal(service.stderr().match(/Low disk/g)?.length, 1, 'said once')
  const { disk } = Status.parse(await gamenetJson(environment, ['status']))
  t.match(disk.disks, [{ parts: ['log', 'tables', 'writes'], isLow: true }])
  for (const part of ['log', 'tables', 'writes'] as const) t.ok((disk.used[part] ?? 0) > 0, part)
  const shown = (await gamenet(environment, ['status'])).stdout
  t.match(shown, /^Disk: log .*B, tables .*B, Postgres .*B$/m)
  t.match(shown, /free, LOW: below .* imports and merges of tables are stopped$/m)

  if (small === undefined) return
  await rm(join(small, 'ballast'))
  const done = await importing()
  t.equal(done.code, 0, done.stderr)
  t.match(done.stdout, /[1-9]\d* rows published before/)
  t.match(done.stdout, new RegExp(`${rows} rows read, ${rows} events published`))
  t.match(await metrics(service), /^gamenet_disk_low\{path=".*"\} 0$/m)
  t.match(service.stderr(), /sufficient again/)
})

test('erasures that a low disk interrupts are completed once there is space, without a restart', async (t) => {
  const small = await smallDisk(t, 400)
  if (small === undefined) return t.comment('NO SMALL DISK: this user may not mount one.')
  const sighting = (username: string) =>
    JSON.stringify({ username, state: 'online', observedAt: '2026-03-14T20:00:00Z' })
  const files = t.testdir({ 'users.ndjson': `${sighting('Ann')}\n${sighting('Ben')}\n` })
  const environment = { ...QUIET, DATA_DIR: join(small, 'data'), DISK_FREE_MIN_BYTES: String(20 * MB) }
  const pending = async () =>
    z
      .array(z.object({ doneAt: z.string().nullable() }))
      .parse(await gamenetJson(environment, ['erase', '--list']))
      .filter(({ doneAt }) => doneAt === null).length
  t.equal((await gamenet(environment, ['import', 'presence', join(files, 'users.ndjson')])).code, 0)
  await fill(small, 19 * MB)
  const interrupted = { code: 1, stderr: /is recorded and not complete.*Deleting the rows of a user is refused/s }
  t.match(await gamenet(environment, ['erase', 'ann']), interrupted, 'on a stopped service')
  const service = await openGamenet(t, environment)
  t.match(await gamenet(environment, ['erase', 'ben']), interrupted, 'on a running service')
  t.equal(await pending(), 2)
  t.match(Status.parse(await gamenetJson(environment, ['status'])).erasures, { pending: 2 })
  t.match((await gamenet(environment, ['status'])).stdout, /^Not complete: 2 erasures, the oldest for \d+ s: /m)
  await rm(join(small, 'ballast'))
  await until(async () => (await pending()) === 0, 250)
  t.match(Status.parse(await gamenetJson(environment, ['status'])).erasures, { pending: 0 })
  t.equal((await ask(`${service.apiUrl}/api/profile/ann`)).status, 404)
})

test('a write that a full disk cannot store is refused, and stored once there is space', async (t) => {
  const small = await smallDisk(t, 120)
  if (small === undefined) return t.comment('NO SMALL DISK: this user may not mount one.')
  const postgres = await openPglite({ dir: join(small, 'writes') })
  t.teardown(() => postgres.close())
  await postgres.script('CREATE TABLE filler (text text)')
  await fill(small, 200_000)
  const write = () => postgres.query('INSERT INTO filler SELECT md5(n::text) FROM generate_series(1, 10000) AS n')
  await t.rejects(write(), { code: 'disk_full', status: 503, message: /disk of the service is full/ })
  // Where the write-ahead log finds no space, PostgreSQL ends itself and is started again.
  await t.rejects(postgres.script('SELECT pg_switch_wal(); TRUNCATE filler'), { code: 'disk_full' })
  await rm(join(small, 'ballast'))
  await write()
  t.match(await postgres.query('SELECT count(*)::int AS rows FROM filler'), [{ rows: 10_000 }])
})

test('a rating or edit that a full disk cannot store is 503 with the reason, and stored once there is space', async (t) => {
  const small = await smallDisk(t, 400)
  if (small === undefined) return t.comment('NO SMALL DISK: this user may not mount one.')
  const auth = await startAuth(t)
  const service = await openPeopleService(t, join(small, 'data'), auth)
  const caller = new Caller(service, 1)
  t.teardown(() => caller.close())
  const users = await Promise.all(auth.people.slice(0, 20).map((person) => signIn(auth, person)))
  let writes = 0
  const edit = (user = users[0]) => {
    writes += 1
    return caller.ask('PATCH', `/api/profile/${user?.person.username}`, user, { bio: letters(writes) })
  }
  const rate = () => {
    writes += 1
    const rated = users[1 + (writes % (users.length - 1))]?.person.username
    return caller.ask('POST', `/api/profile/${rated}/reputation`, users[0], { stars: 5, comment: letters(writes) })
  }
  for (const user of users) t.equal((await edit(user)).status, 200)
  const environment = { DATA_DIR: join(small, 'data') }
  const stateOf = async () => [
    await (await fetch(`${service.apiUrl}/readyz`)).json(),
    (await gamenet(environment, ['status'])).stdout
  ]
  t.match(await stateOf(), [{ status: 'ready', degraded: undefined }, /./])
  await fill(small, 0)
  await until(async () => 'degraded' in Object((await stateOf())[0]))
  t.match(await stateOf(), [
    { degraded: ['a disk of DATA_DIR is full or read-only, and writes fail'] },
    /^Needs attention: .*the disk of .*data is full \(docs\/operators\/disk\.md\)(.*\n)*.* free, FULL: writes fail$/m
  ])
  for (const write of [rate, edit]) {
    let answer = await write()
    for (let n = 0; n < WRITES_UNTIL_FULL && answer.status === 200; n += 1) answer = await write()
    t.match(answer, { status: 503, body: { error: /disk of the service is full/ } })
  }
  const read = await caller.ask('GET', `/api/profile/${users[0]?.person.username}`)
  t.equal(read.status, 200, 'reads continue')
  await rm(join(small, 'ballast'))
  for (const write of [rate, edit]) await until(async () => (await write()).status === 200)
  await until(async () => !('degraded' in Object((await stateOf())[0])))
})

test('a start on a full disk names the disk and what to free; with free space it starts', async (t) => {
  const small = await smallDisk(t, 200)
  if (small === undefined) return t.comment('NO SMALL DISK: this user may not mount one.')
  const environment = { ...QUIET, DATA_DIR: join(small, 'data') }
  const sentence =
    /^The disk of the data directory .*data is full: it has [\d.]+ (bytes|kB) free, 210 MB in all, and a write needs more\. Free space on it \(backups/
  const refused = async () => {
    const { code, stdout, stderr } = await gamenet(environment, ['start'])
    t.same([code, stdout], [1, ''])
    t.match(stderr.trim(), sentence)
    t.notMatch(stderr.trim(), /\n/, 'one sentence')
  }
  await fill(small, 100_000)
  await refused()
  await rm(join(small, 'ballast'))
  await (await openGamenet(t, environment)).stop()
  // As a copy leaves it that makes holes of zeros.
  const lock = join(environment.DATA_DIR, 'log', 'lock.mdb')
  const { size } = await stat(lock)
  await truncate(lock)
  await truncate(lock, size)
  await fill(small, 0)
  await refused()
})

test('on a disk that became read-only, commands say so and what to do', async (t) => {
  const obstacle = whyNoDisk()
  if (obstacle !== undefined) return t.comment(`NO DISK THAT FAILS: ${obstacle}`)
  const files = t.testdir({ 'one.csv': 'observedAt,online\n2020-01-01T00:00:00Z,1\n' })
  const directory = await mkdtemp(join(tmpdir(), 'gamenet-failing-disk-'))
  const disk = makeDisk(directory, { mebibytes: 400 })
  disk.mount()
  const environment = { ...QUIET, DATA_DIR: join(disk.path, 'data') }
  const service = await startGamenet(environment)
  const postgres = await openPglite({ dir: join(disk.path, 'writes') })
  await postgres.script('CREATE TABLE filler (text text)')
  t.teardown(async () => {
    await service.kill()
    await postgres.close().catch(() => undefined)
    disk.unmount()
    await rm(directory, { recursive: true })
  })
  disk.fail()
  const insert = 'INSERT INTO filler SELECT md5(n::text) FROM generate_series(1, 10000) AS n'
  await t.rejects(postgres.query(insert), { code: 'disk_full', status: 503 })
  await t.rejects(postgres.query(insert), { code: 'disk_full' }, 'also when PostgreSQL has ended itself')
  await until(async () => /needs attention: .*read-only/i.test((await gamenet(environment, ['status'])).stdout))
  const ready = await (await fetch(`${service.apiUrl}/readyz`)).json()
  t.match(ready, { degraded: ['a disk of DATA_DIR is full or read-only, and writes fail'] })
  t.match(await metrics(service), /^gamenet_disk_low\{path=".*"\} 1$/m)
  const sentence = /file system of .*data.* is mounted read-only, .* Stop the service, repair the file system/s
  const commands = [['import', 'network-count', join(files, 'one.csv')], ['backup', join(files, 'copy')], ['doctor']]
  for (const command of commands) {
    const { code, stdout, stderr } = await gamenet(environment, command)
    t.match({ code, said: `${stdout}${stderr}`.replace(/\s+/g, ' ') }, { code: 1, said: sentence }, command.join(' '))
  }
  await service.stop()
  t.match((await gamenet(environment, ['start'])).stderr, sentence)
})

/** Returns 500 letters of three bytes, which do not compress. */
function letters(seed: number): string {
  const letterAt = (n: number) => String.fromCharCode(0x4e00 + ((seed * 509 + n * 7919) % 20_000))
  return Array.from({ length: 500 }, (_, n) => letterAt(n)).join('')
}

/** Rows that do not compress to nothing, in time order. */
function countsOf(rows: number): string {
  const lines = Array.from({ length: rows }, (_, n) => {
    const titleId = (0x4d53_0000 + ((n * 7919) % 997)).toString(16)
    return `${titleId},${new Date(Date.UTC(2020, 0, 1) + Math.floor(n / 997) * 60_000).toISOString()},${(n * 7_368_787) % 99_991}`
  })
  return `titleId,observedAt,online\n${lines.join('\n')}\n`
}

/** Fills the disk until this number of bytes is free. The service writes meanwhile, so less may be free than was read. */
async function fill(path: string, freeBytes: number): Promise<void> {
  const file = join(path, 'ballast')
  await writeFile(file, '')
  for (;;) {
    const { bavail, bsize } = await statfs(path)
    const over = bavail * bsize - freeBytes
    if (over <= 0) return
    await appendFile(file, Buffer.alloc(Math.min(over, 16 * MB))).catch((error: unknown) => {
      if (errorCode(error) !== 'ENOSPC') throw error
    })
  }
}

async function metrics(service: Running): Promise<string> {
  return await (await fetch(`${service.operatorUrl}/metrics`)).text()
}
