import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { access, cp, open, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Test, test } from 'tap'
import { z } from 'zod'
import { VERSION } from '../src/version.js'
import { ask } from './service/ask.js'
import {
  type Environment,
  gamenet,
  gamenetJson,
  openGamenet,
  plainWrites,
  ROOT,
  spawnGamenet
} from './service/gamenet.js'
import { startUpstream } from './service/upstream.js'

const halo = {
  titleId: '4d530064',
  name: 'Halo 2',
  subtitle: 'Halo 2',
  online: 41,
  lobbies: { players: 16, sessions: 3 }
}
const ride = { titleId: '55530036', name: '187 Ride / #1', subtitle: '', online: 5, lobbies: null }
const DAY = 'from=2017-02-17T00:00:00Z&to=2017-02-18T00:00:00Z'
const COUNTS = 'observedAt,online\n2017-02-17 06:00:00,9234\n2017-02-17 07:00:00,\n2017-02-17 08:00:00,0\n'
const COUNTED = [
  { recorded_at: '2017-02-17 06:00:00', online_count: 9234 },
  { recorded_at: '2017-02-17 08:00:00', online_count: 0 }
]

const QUIET = { UPSTREAM_URL: 'http://127.0.0.1:9', SCRAPE_NETWORK_SECONDS: '0', SCRAPE_GAMES_SECONDS: '0' }

test('an import of a stopped service leaves its standard input to what comes after it, as in a shell loop', async (t) => {
  const directory = t.testdir({ 'counts.csv': COUNTS, list: 'one\ntwo\n'.repeat(1000), elsewhere: {} })
  const environment = { DATA_DIR: join(directory, 'data') }
  await gamenet(environment, ['migrate'])
  await rename(join(environment.DATA_DIR, 'writes'), join(directory, 'elsewhere', 'writes'))
  await symlink(join(directory, 'elsewhere', 'writes'), join(environment.DATA_DIR, 'writes'))
  const list = await open(join(directory, 'list'))
  t.teardown(() => list.close())
  const child = spawnGamenet(environment, ['import', 'network-count', join(directory, 'counts.csv')], list.fd)
  child.stderr?.pipe(process.stderr)
  const [code] = await once(child, 'close')
  t.equal(code, 0)
  t.equal((await list.readFile('utf8')).length, 8000, 'nothing is read')
})

test('a log that is older than the tables is refused, and a higher LOG_EPOCH begins another one', async (t) => {
  const directory = t.testdir({ 'counts.csv': COUNTS, 'later.csv': 'observedAt,online\n2017-02-17 09:00:00,7\n' })
  const environment = { DATA_DIR: join(directory, 'data'), ...QUIET, ...(await plainWrites(t)) }
  const log = join(environment.DATA_DIR, 'log')
  const load = async (name: string, more: Environment = {}) =>
    await gamenet({ ...environment, ...more }, ['import', 'network-count', join(directory, name)])
  await gamenet(environment, ['migrate'])
  await cp(log, join(directory, 'older'), { recursive: true })
  t.equal((await load('counts.csv')).code, 0)
  await rm(log, { recursive: true })
  await cp(join(directory, 'older'), log, { recursive: true })
  const refused = await load('later.csv')
  t.match(refused, { code: 1, stderr: /The log is older than the tables: .* LOG_EPOCH=2, / })
  const left = await load('later.csv', { LOG_EPOCH: '2' })
  t.match(left, {
    code: 1,
    stderr: /The log is older than the tables: .*move the folder log away and set LOG_EPOCH=2, /
  })
  await rm(log, { recursive: true })
  const raised = await load('later.csv', { LOG_EPOCH: '2' })
  t.equal(raised.code, 0, raised.stderr)
  const { stdout } = await gamenet(environment, ['status'])
  t.match(stdout, /^network-count +1\/0 +\? /m)
  t.match(stdout, /^HEAD \?: .* no longer has this epoch/m)
  const service = await openGamenet(t, { ...environment, LOG_EPOCH: '2' })
  const { body } = await ask(`${service.apiUrl}/api/network-stats/online-24h?${DAY}`)
  t.match(body, { length: 3 }, JSON.stringify(body))
})

test('operations on a stopped service show in its answers after the start', async (t) => {
  const directory = t.testdir({
    file: 'not a folder',
    'counts.csv': COUNTS,
    'more.csv': `${COUNTS}yesterday,5\n`,
    'other.csv': 'When,Peak\n2017-02-17 06:00:00,9234\n',
    'cut.csv.gz': 'no gzip',
    'hidden.csv': 'observedAt,online,\u009b2J\n\u009b31myester\u202eday\u00ad,5,\n',
    empty: {},
    'no-text': { 'folder.sql': {} },
    questions: { 'a-good.sql': '\uFEFF-- Samples.\nSELECT count() AS samples FROM title_count', 'bad.sql': 'SELECT' }
  })
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  upstream.show({ registered: 21_345, online: 87, titles: [halo, ride] })
  const environment: Environment = {
    DATA_DIR: join(directory, 'data'),
    ...QUIET,
    UPSTREAM_URL: upstream.url,
    ...(await plainWrites(t))
  }
  const counts = join(directory, 'counts.csv')
  const refuses = async (t: Test, args: readonly string[], code: number, sentence: RegExp, more: Environment = {}) => {
    const done = await gamenet({ ...environment, ...more }, args)
    t.equal(done.code, code, `${args.join(' ')} ends with ${code}: ${done.stderr.trim()}`)
    t.match(done.stderr, sentence)
    t.notMatch(done.stderr, /\n\s+at /, 'no stack')
    t.equal(done.stdout, '')
  }
  const isFree = () =>
    access(join(directory, 'data', 'service.json')).then(
      () => false,
      () => true
    )

  await refuses(t, ['status'], 1, /There is no service and no data in/)
  const nothingErased = /^Nothing was erased; repeat the command once this is solved: /
  await refuses(t, ['erase', 'ann'], 1, nothingErased)
  await refuses(t, ['erase', 'ann'], 1, nothingErased, { DATA_DIR: join(directory, 'empty') })
  t.same(await readdir(join(directory, 'empty')), [], 'no data directory is created')

  await t.test('migrate creates the tables', async (t) => {
    const Applied = z.object({ applied: z.array(z.string()) })
    const { applied } = Applied.parse(await gamenetJson(environment, ['migrate']))
    t.ok(applied.length > 0, 'it names what it applied')
    t.ok(await isFree(), 'the folder is let go')
  })

  await t.test('an import is published and read', async (t) => {
    t.match(await gamenetJson(environment, ['import', 'network-count', counts]), [
      { published: 2, missing: 1, rejected: 0, finished: true }
    ])
    t.ok(await isFree(), 'the folder is let go')
  })

  await t.test('a scrape is published, a failed one is known', async (t) => {
    t.match(await gamenetJson(environment, ['scrape', 'all']), [{ outcome: 'succeeded' }, { outcome: 'succeeded' }])
    upstream.showText('<html><body>Back soon</body></html>')
    const failed = await gamenet(environment, ['scrape', 'network', '--json'])
    t.equal(failed.code, 1)
    t.match(JSON.parse(failed.stdout), [{ source: 'network', outcome: 'failed', published: 0, reason: /\S/ }])
    t.ok(await isFree(), 'the folder is let go')
  })

  await t.test('status waits until the tables have caught up, and says so', async (t) => {
    const status = await gamenetJson(environment, ['status', '--wait', '180'])
    t.match(status, {
      wait: { caughtUp: true, behind: [] },
      trouble: null,
      sources: [
        { source: 'network', lastRun: { outcome: 'failed', published: 0 } },
        { source: 'games', lastRun: { outcome: 'succeeded' } }
      ]
    })
    const { topics, deadLetters, projections } = z
      .object({
        topics: z.array(z.object({ head: z.int(), loaded: z.int() })),
        deadLetters: z.record(z.string(), z.int()),
        projections: z.array(z.object({ lagEvents: z.int() }))
      })
      .parse(status)
    t.ok(topics.length > 0 && projections.length > 0)
    t.ok(
      topics.every(({ head, loaded }) => head === loaded),
      'all topics are loaded'
    )
    t.same(deadLetters, {}, 'there are no dead letters')
    t.ok(
      projections.every(({ lagEvents }) => lagEvents === 0),
      'no projection lags'
    )
  })

  await t.test('the doctor opens a stopped service and names what is wrong', async (t) => {
    const wrong = await gamenet({ ...environment, QUESTIONS_DIR: join(directory, 'questions') }, ['doctor'])
    t.equal(wrong.code, 1, wrong.stderr)
    t.match(
      wrong.stdout,
      /^1 of 12 checks failed: saved questions\.\n(.*\n)*saved questions +WRONG +Questions cannot be served\.\n +bad\.sql:1/
    )
    t.match(await gamenet({ ...environment, QUESTIONS_DIR: join(directory, 'none') }, ['start']), {
      code: 1,
      stderr: /^QUESTIONS_DIR is ".*none": it cannot be read \(ENOENT\), expected a folder/
    })
    t.match(await gamenet({ ...environment, QUESTIONS_DIR: join(directory, 'questions') }, ['start']), {
      code: 1,
      stderr: /^Questions cannot be served\.\nbad\.sql:1/m
    })
    t.match(await gamenet({ ...environment, QUESTIONS_DIR: join(directory, 'no-text') }, ['start']), {
      code: 1,
      stderr: /^Questions cannot be served\.\nfolder\.sql:1: it cannot be read \(EISDIR\)/m
    })
    t.match(await gamenet({ ...environment, PORT: 'x' }, ['doctor']), {
      code: 1,
      stdout: /configuration +WRONG +.*PORT/s
    })
    t.match(await gamenet(environment, ['status']), { stdout: /^No service runs on/ })
  })

  await t.test('the service starts with all of it', async (t) => {
    const service = await openGamenet(t, environment)
    t.match(await gamenet(environment, ['doctor']), {
      code: 0,
      stdout: /^Nothing is wrong\.\n.*^links +ok +PUBLIC_URL is not set/ms
    })
    const piped = await gamenet(
      environment,
      ['import', 'title-count', '-', '--json'],
      Buffer.from('titleId,observedAt,online\n4d530064,2017-02-17T06:00:00Z,7\n')
    )
    t.equal(piped.code, 0, piped.stderr)
    t.match(JSON.parse(piped.stdout), [{ published: 1 }])
    const get = async (path: string) => (await ask(`${service.apiUrl}${path}`)).body
    t.same(await get(`/api/network-stats/online-24h?${DAY}`), COUNTED)
    t.match(await get('/api/network-stats/online-24h'), [{ online_count: 87 }], 'the failed scrape is not a sample')
    t.match(await get('/api/online-users'), { 'Halo 2': { online: 41, activeLobbies: 3 }, [ride.name]: { online: 5 } })
    t.match(await get(`/api/game/${encodeURIComponent(ride.name)}`), { titleId: ride.titleId })
    t.same(await get(`/api/title/4D530064/online-users/history?${DAY}`), [
      { recorded_at: '2017-02-17 06:00:00', online_count: 7 }
    ])
    t.same(await gamenetJson(environment, ['migrate']), { applied: [] }, 'a running service has the newest schema')
    t.match(
      await gamenetJson(environment, ['import', 'network-count', counts]),
      [{ published: 0, alreadyDone: true }],
      'what was imported while it was stopped is known'
    )
    const strict = await gamenet(environment, [
      'import',
      'network-count',
      join(directory, 'more.csv'),
      '--strict',
      '--rejects',
      join(directory, 'rejects.csv'),
      '--json'
    ])
    t.equal(strict.code, 1)
    t.match(JSON.parse(strict.stdout), [{ published: 0, finished: false, rejected: 1, faults: [{ line: 5 }] }])
    t.match(
      await readFile(join(directory, 'rejects.csv'), 'utf8'),
      /^file,line,reason\n".*more.csv",5,"observedAt is ""yesterday"": [^\n]*\n$/
    )
    const reported = await gamenet(environment, ['import', 'network-count', join(directory, 'more.csv'), '--strict'])
    t.match(reported.stdout, /1 row rejected.*nothing was published/s)
    t.notMatch(reported.stdout, /events published/)
    const hidden = await gamenet(environment, ['import', 'network-count', join(directory, 'hidden.csv')])
    t.match(hidden.stdout, /\\u009b31myester\\u202eday\\u00ad.*without a field: \\u009b2J/s)
    t.notMatch(hidden.stdout, /[\u009b\u202e\u00ad]/, 'no raw character of the file')
    const wide = join(dirname(counts), 'wide.csv')
    const columns = Array.from({ length: 25 }, (_, n) => `c${n}`)
    await writeFile(wide, `observedAt,online,${columns.join(',')}\n2016-01-01T00:00:00Z,7,${'1,'.repeat(24)}1\n`)
    const named = await gamenet(environment, ['import', 'network-count', wide])
    t.match(named.stdout, /columns without a field: c0, .*c19 and 5 others\n/, 'twenty are named')
    await t.test('an impossible command sets the exit code and prints one sentence', async (t) => {
      const cases: [readonly string[], number, RegExp, Environment?][] = [
        [['import', 'network-count', join(directory, 'other.csv')], 2, /observedAt/],
        [['status', '--wait', 'soon'], 2, /--wait takes whole seconds/],
        [['scrape', 'weather'], 2, /weather/],
        [['scrape'], 2, /needs <source>/],
        [['import', 'weather', counts], 2, /weather/],
        [['import', 'network-count'], 2, /needs <file>/],
        [['import', 'network-count', join(directory, 'none.csv')], 2, /There is no file/],
        [['import', 'network-count', directory], 2, /is not a regular file; .* standard input/],
        [['import', 'network-count', '/dev/null'], 2, /"\/dev\/null" is not a regular file/],
        [
          ['import', 'network-count', counts, '--rejects', join(directory, 'none', 'r.csv')],
          2,
          /--rejects .* \(ENOENT\)/
        ],
        [['import', 'network-count', counts, '--rejects', counts], 2, /--rejects .* is a file of the import/],
        [['import', 'network-count', counts, '--columns', 'online'], 2, /--columns takes field=value/],
        [['import', 'network-count', counts, '--columns', 'players=online'], 2, /no field "players"/],
        [['import', 'network-count', counts, '--set', 'observedAt=yesterday'], 2, /observedAt is "yesterday"/],
        [['import', 'network-count', join(directory, 'cut.csv.gz')], 2, /\S/],
        [['migrate', '--fast'], 2, /has no option --fast/],
        [['migrate'], 1, /cannot be written/, { DATA_DIR: join(directory, 'file') }],
        [['migrate'], 2, /LOG_LEVEL/, { LOG_LEVEL: 'loud' }],
        [['status'], 1, /\S/, { OPERATOR_URL: 'http://127.0.0.1:9' }],
        [['erase', 'ann'], 1, /^Nothing was erased; .* cannot be reached/, { OPERATOR_URL: 'http://127.0.0.1:9' }]
      ]
      for (const each of cases) await refuses(t, ...each)
    })
    await service.stop()
    t.ok(await isFree(), 'the folder is let go')
  })
})

test('the command is installed, loads no engine to print, and each of its commands has help', async (t) => {
  const loaded = t.testdir({})
  // The commands of users; other tests run commands without npx.
  const { stdout } = await promisify(execFile)('npx', ['--no-install', 'gamenet', '--version'], {
    cwd: fileURLToPath(ROOT),
    env: { PATH: process.env.PATH, HOME: process.env.HOME, NODE_V8_COVERAGE: loaded }
  })
  t.equal(stdout, `${VERSION}\n`)
  const runs = await Promise.all((await readdir(loaded)).map((file) => readFile(join(loaded, file), 'utf8')))
  const program = runs.find((text) => text.includes('/deploy/dist/src/main.js')) ?? ''
  const packages = [...program.matchAll(/\/node_modules\/([^"]+?)\//g)].map(([, name]) => name)
  t.same([...new Set(packages)].sort(), ['commander', 'zod'])
  for (const args of [['--help'], ['import', '--help'], ['status', '--help']]) {
    const help = await gamenet({}, args)
    t.equal(help.code, 0, args.join(' '))
    t.match(help.stdout, /Usage: gamenet/)
  }
})
