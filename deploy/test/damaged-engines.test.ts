import { cp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ClickHouseError, openPglite } from '@gamenet/engines'
import { openEmbeddedLog } from '@gamenet/engines/log'
import { until } from '@gamenet/engines/testing'
import { pino } from 'pino'
import { test } from 'tap'
import { claimDataDirectory } from '../src/data-directory/data-directory.js'
import { Status, status } from '../src/operate/status/operation.js'
import { serviceOperations } from '../src/run/service-operations.js'
import { readUncleanLog } from '../src/run/start-notices.js'
import { VerifyReport } from '../src/stores/damage-report.js'
import { engineFailure } from '../src/stores/engine-failures.js'
import { cutLog, filesOfParts, flipPartsOf, halve } from './service/damaged-files.js'
import { type Finished, gamenet, gamenetJson, openGamenet, spawnedGamenet } from './service/gamenet.js'

/* Engines whose files cannot be read: what a start, commands and `gamenet verify` say, and that the other engines are checked. */

/** LMDB's flag of such a page. */
const LEAF = 2
/** PostgreSQL's file of the table of applied migrations. */
const MIGRATIONS_TABLE = 'base/5/16384'
const RESTORE = 'stop the service and restore the newest backup: gamenet restore DIR'

test('damaged engines are named with the way out, and the others are checked', async (t) => {
  const folder = t.testdir({ 'counts.csv': 'observedAt,online\n2017-02-17T00:00:00Z,40\n' })
  const whole = join(folder, 'whole')
  const environment = (name: string) => ({
    ...{ DATA_DIR: join(folder, name), PORT: '0', OPERATOR_PORT: '0' },
    ...{ UPSTREAM_URL: 'http://127.0.0.1:9', SCRAPE_NETWORK_SECONDS: '0', SCRAPE_GAMES_SECONDS: '0' }
  })
  const service = await openGamenet(t, environment('whole'))
  await gamenetJson(environment('whole'), ['import', 'network-count', join(folder, 'counts.csv')])
  // A run without an upstream is an event, too.
  await gamenet(environment('whole'), ['scrape', 'network'])
  await gamenetJson(environment('whole'), ['status', '--wait', '60'])
  await service.stop()
  const damaged = async (name: string, file: string, damage: (path: string) => Promise<unknown>) => {
    await cp(whole, join(folder, name), { recursive: true })
    await damage(join(folder, name, file))
  }
  const refuses = (done: Finished, sentence: RegExp) => {
    t.equal(done.code, 1, sentence.source)
    t.match(done.stderr, sentence)
    t.notMatch(done.stderr, /does not know|\n\s+at /)
  }
  const started = (name: string) => gamenet(environment(name), ['start'])
  const verified = async (name: string, run: typeof spawnedGamenet = gamenet) => {
    const done = await run(environment(name), ['verify', '--json'])
    t.equal(done.code, 1)
    return VerifyReport.parse(JSON.parse(done.stdout)).findings
  }

  await t.test('the log', async (t) => {
    await damaged('log', 'log/data.mdb', cutLog)
    refuses(await started('log'), /data.mdb of the log.* is damaged: .*gamenet restore/)
    await flipPartsOf(join(folder, 'log'), 'event_network_count__0')
    await rm(join(folder, 'log', 'writes', 'PG_VERSION'))
    const findings = [
      { part: 'log', what: /data.mdb of the log.* is damaged: /, repair: RESTORE },
      { part: 'writes', what: /PG_VERSION is missing/, repair: RESTORE },
      { part: 'tables', what: /^part \S+ of event_network_count__0 is damaged/ }
    ]
    t.match(await verified('log'), findings)
    t.match(await verified('log'), findings, 'also when the table is marked')
    // A start and `verify` open the engines by one function.
    await damaged('empty-log', 'log/data.mdb', (path) => truncate(path))
    refuses(await started('empty-log'), /data.mdb is missing or empty.*gamenet restore/)
    await damaged('no-log', 'log', (path) => rm(path, { recursive: true }))
    await rm(join(folder, 'no-log', 'writes', MIGRATIONS_TABLE))
    t.match(await verified('no-log'), [
      { part: 'log', what: /data.mdb is missing or empty$/, repair: RESTORE },
      { what: /^public.schema_migration of the write side cannot be read: could not open file/, repair: RESTORE }
    ])
  })

  await t.test('the keys of the log, after a process that did not end well', async (t) => {
    const owner = (isSuspect: boolean) =>
      JSON.stringify({ pid: 2 ** 30, startedAt: '1', purpose: 'run', operatorUrl: null, isSuspect })
    const claimed = async (path: string) => {
      const directory = await claimDataDirectory(path, { program: '0', engines: {} })
      await directory.release()
      return directory
    }
    const zeroLeaves = async (path: string) => {
      const bytes = await readFile(path)
      for (let at = 8192; at < bytes.length; at += 4096)
        if (bytes.readUInt16LE(at + 18) === LEAF && !bytes.includes('epochs', at)) bytes.fill(0, at, at + 4096)
      await writeFile(path, bytes)
    }
    await damaged('keys', 'log/data.mdb', zeroLeaves)
    await writeFile(join(folder, 'keys', 'service.json'), owner(true))
    for (const _ of ['first', 'second'])
      refuses(await started('keys'), /data.mdb of the log is damaged: .*gamenet restore/)
    await damaged('killed', 'service.json', (path) => writeFile(path, owner(false)))
    const { unclean } = await claimed(join(folder, 'killed'))
    t.equal(unclean, 'killed')
    const background = async (name: string) => {
      const damageMet = new Set<string>()
      const log = openEmbeddedLog({ path: join(folder, name, 'log') })
      let trusted = () => {}
      const isTrusted = new Promise<void>((resolve) => {
        trusted = resolve
      })
      const directory = { unclean: 'killed', trustLog: async () => trusted() } as never
      const said = new Promise<string>((resolve) => {
        const logger = { error: (_: unknown, sentence = '') => resolve(sentence), warn: () => undefined }
        readUncleanLog({ engines: { directory, log: { ...log, files: log } }, damageMet, logger })
      })
      const sentence = await Promise.race([said, isTrusted])
      await log.close()
      return { sentence, met: [...damageMet] }
    }
    t.same(await background('killed'), { sentence: undefined, met: [] })
    t.match(await background('keys'), {
      sentence: /^The file .* is damaged/,
      met: [/is damaged: .* \(gamenet verify\)$/]
    })
  })

  await t.test('the write side', async () => {
    await damaged('cluster', 'writes/PG_VERSION', (path) => rm(path))
    refuses(await started('cluster'), /its file or folder PG_VERSION is missing.*gamenet restore/)
    await damaged('no-table', join('writes', MIGRATIONS_TABLE), (path) => rm(path))
    refuses(await started('no-table'), /could not open file "base\/5\/16384".*gamenet restore/)
    // The second page of its index.
    await damaged('cut', 'writes/base/5/16388', (path) => truncate(path, 8192))
    refuses(
      await started('cut'),
      /^The write side is damaged: could not read .* file "base\/5\/16388".*gamenet restore/
    )
  })

  await t.test('indexes of the write side that only its background work reads', async (t) => {
    await cp(whole, join(folder, 'indexes'), { recursive: true })
    const directory = join(folder, 'indexes', 'writes')
    const writes = await openPglite({ dir: directory })
    const files = await writes.query<{ file: string }>(
      `SELECT pg_relation_filepath(n.name::regclass) AS file
       FROM unnest(ARRAY['outbox_pkey', 'erasure_salt_pkey']) AS n (name)`
    )
    await writes.query(`INSERT INTO outbox (topic, people, event) VALUES ('profile', '{}', '{}')`)
    await writes.close()
    for (const { file } of files)
      await writeFile(join(directory, file), (await readFile(join(directory, file))).fill(1))
    const service = await openGamenet(t, environment('indexes'))
    const says = await untilDegraded(
      environment('indexes'),
      /^the outbox cannot be relayed since \d{4}-.*Z: invalid page/
    )
    t.match([...says].sort(), [
      /^erasures could not be compared at the start: invalid page .* \(gamenet verify\)$/,
      /^the outbox cannot be relayed since .* \(gamenet verify\)$/
    ])
    await service.stop()
  })

  await t.test('the tables', async (t) => {
    const [format = ''] = (await readdir(join(whole, 'tables', 'store'), { recursive: true }))
      .filter((name) => name.endsWith('format_version.txt'))
      .sort()
    await damaged('tables', join('tables', 'store', format), (path) => writeFile(path, '\u0007'))
    await cutLog(join(folder, 'tables', 'log', 'data.mdb'))
    await rm(join(folder, 'tables', 'writes', 'base', '5', '1255'))
    // The engine itself writes to the standard error of its process.
    t.match(await verified('tables', spawnedGamenet), [
      { part: 'log', what: /data.mdb/ },
      { part: 'tables', what: /ClickHouse cannot open/, repair: /move the folder `tables`/ },
      { part: 'writes', what: /could not open file "base\/5\/1255"/, repair: RESTORE }
    ])
  })

  await t.test('damage that is met after the start', async (t) => {
    await cp(whole, join(folder, 'later'), { recursive: true })
    for (const file of await filesOfParts(join(folder, 'later'), 'network_count_hour__0'))
      await writeFile(file, (await readFile(file)).fill(1))
    const service = await openGamenet(t, environment('later'))
    const coverage = `${service.apiUrl}/api/coverage?from=2017-02-01T00:00:00Z&to=2017-03-01T00:00:00Z`
    const statusNow = async () => Status.parse(await gamenetJson(environment('later'), ['status']))
    const repaired = async (table: string) => {
      await until(async () => (await statusNow()).damage.some((each) => each.table === table), 100)
      await until(async () => (await statusNow()).damage.length === 0, 300)
      // Answers read the new generation a moment later.
      await until(async () => (await fetch(coverage)).status !== 503, 100)
      t.equal((await fetch(coverage)).status, 200, `${table} is rebuilt`)
    }
    t.equal((await fetch(coverage)).status, 503)
    await repaired('network_count_hour')
    for (const file of await filesOfParts(join(folder, 'later'), 'event_network_count__0'))
      await writeFile(file, (await readFile(file)).fill(1))
    const refused = await gamenet(environment('later'), ['rebuild', 'start', 'network-count'])
    refuses(refused, /^Files of the table event_network_count__0 are damaged. Repair: the running service rebuilds/)
    await repaired('event_network_count')
    await flipPartsOf(join(folder, 'later'), 'scrape__0')
    await repaired('scrape')
    await service.stop()
  })

  await t.test('format.json', async () => {
    await damaged('format', 'format.json', halve)
    refuses(await started('format'), /format.json cannot be read/)
  })
})

/** Returns what `gamenet status` says besides "Healthy", once one of the sentences matches. */
async function untilDegraded(
  environment: Readonly<Record<string, string>>,
  sentence: RegExp
): Promise<readonly string[]> {
  let says: readonly string[] = []
  await until(async () => {
    says = Status.parse(await gamenetJson(environment, ['status'])).degraded
    return says.some((each) => sentence.test(each))
  }, 300)
  return says
}

const DAMAGE = new ClickHouseError("Code: 40. DB::Exception: Checksum doesn't match: (in table default.title__0).", {
  code: 40
})

test('damage that an operation meets in a service is in its log, with what the engine said', async (t) => {
  for (const isRunning of [true, false]) {
    const lines: unknown[] = []
    const logger = pino({}, { write: (line) => lines.push(JSON.parse(line)) })
    const engines = { directory: undefined, ownsTables: true }
    const damageMet = new Set<string>()
    const { operations } = serviceOperations({
      engines,
      isRunning,
      hasLog: true,
      logger,
      state: { damageMet }
    } as never)
    const damaged = { ...status, run: () => Promise.reject(DAMAGE) }
    await t.rejects(operations.run(damaged, {}), { message: /^Files of the table title__0 are damaged. Repair: / })
    const line = { operation: 'status', err: { message: /Checksum/ }, msg: /^Files of the table title__0 are damaged/ }
    t.match(lines, isRunning ? [line] : [], 'a command prints it')
    t.equal(lines.length, isRunning ? 1 : 0)
    t.same([...damageMet], [], 'the table is in the list of damage')
    const wrapped = new Error('No sample could be measured', { cause: DAMAGE })
    await t.rejects(operations.run({ ...status, run: () => Promise.reject(wrapped) }, {}), {
      message: /^Files of the table title__0/
    })
  }
})

test('an operation without space names the disk and what to free', async (t) => {
  const full = new ClickHouseError('Code: 243. DB::Exception: Cannot reserve 1.00 MiB. (NOT_ENOUGH_SPACE) 0. ? @ 0x1', {
    code: 243
  })
  for (const [ownsTables, sentence] of [
    [true, /^The disk of the data directory \S+ is full: it has .* free, .* in all, .*\. Free space on it \(backups/],
    [false, /^The tables cannot be .* the disk of the ClickHouse server is full\. Free space on it/]
  ] as const)
    for (const error of [full, new Error(`No sample could be measured. ${full.message}`, { cause: full })]) {
      const engines = { directory: { path: t.testdir({}) }, ownsTables }
      const { operations } = serviceOperations({ engines, hasLog: true, state: { damageMet: new Set() } } as never)
      const failing = { ...status, run: () => Promise.reject(error) }
      await t.rejects(operations.run(failing, {}), { name: 'Error', message: sentence })
    }
})

test('damage of a ClickHouse server is a sentence with the way out', async (t) => {
  t.match(engineFailure(DAMAGE, false), {
    part: 'tables',
    message:
      /^Files of the table title__0 on the ClickHouse server are damaged: Code: 40.*Checksum.*Repair: .*DETACH PART.*gamenet rebuild/
  })
  const syntax = new ClickHouseError('Code: 62. DB::Exception: Syntax error', { code: 62 })
  t.equal(engineFailure(syntax, false), syntax)
})
