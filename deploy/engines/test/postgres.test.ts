import { execFileSync, spawn, spawnSync } from 'node:child_process'
import fs, {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  truncateSync,
  writeFileSync
} from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { errorMessage, pause, poll } from '@gamenet/schemas'
import { type Test, test } from 'tap'
import { migratePostgres, openPglite, openPostgres, type Postgres, transactionAge } from '../src/index.js'
import { layEmptyCluster } from '../src/postgres/empty-cluster.js'
import { openFlushing } from '../src/postgres/flushing-files.js'
import { upkeep } from '../src/postgres/pglite-upkeep.js'
import type { PostgresOptions } from '../src/postgres/server.js'
import {
  freePort,
  OTHER_USER,
  type PostgresProcess,
  postgresPrograms,
  runAsOther,
  startPostgres,
  startWire
} from '../testing/index.js'

/** Only what hangs meets it. */
const WAIT_MS = 60_000

const postgresContract = (name: string, options: object, open: (t: Test) => Promise<Postgres>): void => {
  test(`${name}: values are bound, and rows are objects`, options, async (t) => {
    const postgres = await open(t)
    const text = `'; DROP TABLE x; -- 😀 \\`
    t.same(
      await postgres.query(`SELECT $1::text AS s, $2::bigint AS i, $3::int AS n, 1.50::numeric AS d, $4::jsonb AS j`, [
        text,
        (2n ** 63n - 1n).toString(),
        null,
        JSON.stringify({ a: [1] })
      ]),
      [{ s: text, i: '9223372036854775807', n: null, d: '1.50', j: { a: [1] } }]
    )
    t.same(await postgres.query(`SELECT '2020-02-29T00:00:00Z'::timestamptz AS at`), [
      { at: new Date('2020-02-29T00:00:00Z') }
    ])
    t.same(await postgres.query('SELECT 1 AS n WHERE false'), [])
  })

  test(`${name}: a transaction is stored completely or not at all`, options, async (t) => {
    const postgres = await open(t)
    await postgres.query('DROP TABLE IF EXISTS kept')
    await postgres.query('CREATE TABLE kept (n integer PRIMARY KEY)')
    const stored = await postgres.transaction(async (transaction) => {
      await transaction.query('INSERT INTO kept VALUES (1)')
      return await transaction.query('SELECT n FROM kept')
    })
    t.same(stored, [{ n: 1 }])
    const failing = postgres.transaction(async (transaction) => {
      await transaction.query('INSERT INTO kept VALUES (2)')
      await transaction.query('INSERT INTO kept VALUES (1)')
    })
    await t.rejects(failing, { code: '23505' })
    const thrown = postgres.transaction(async (transaction) => {
      await transaction.query('INSERT INTO kept VALUES (3)')
      throw new Error('changed my mind')
    })
    await t.rejects(thrown, { message: 'changed my mind' })
    t.same(await postgres.query('SELECT n FROM kept'), [{ n: 1 }])
  })

  test(
    `${name}: is brought to the newest schema once, by one of those who try at the same time`,
    options,
    async (t) => {
      const postgres = await open(t)
      const applied = await Promise.all([migratePostgres(postgres), migratePostgres(postgres)])
      t.same(applied.flat(), ['0001.do.first-schema'])
      t.same(await migratePostgres(postgres), [])
      t.same(await postgres.query('SELECT t.title_id FROM board_lease AS t'), [])
      const changed = t.testdir(Object.fromEntries(applied.flat().map((name) => [`${name}.sql`, 'SELECT 1;'])))
      await t.rejects(
        migratePostgres(postgres, pathToFileURL(`${changed}/`)),
        /MD5 checksum failed for migration \[1\]/
      )
      await postgres.query("INSERT INTO schema_migration (version, name) VALUES (9000, 'later')")
      await t.rejects(migratePostgres(postgres), /created by a newer program: it has migration 9000/)
      await postgres.query('DELETE FROM schema_migration WHERE version = 9000')
    }
  )

  test(`${name}: a migration that fails half way leaves nothing`, options, async (t) => {
    const postgres = await open(t)
    await migratePostgres(postgres)
    const known = await postgres.query('SELECT version FROM schema_migration ORDER BY version')
    const folder = t.testdir({ 'a [x] {y}': { '8001.do.half.sql': 'CREATE TABLE half (n integer); SELEC 1;' } })
    await t.rejects(migratePostgres(postgres, pathToFileURL(`${join(folder, 'a [x] {y}')}/`)), { code: '42601' })
    t.same(await postgres.query('SELECT version FROM schema_migration ORDER BY version'), known)
    await t.rejects(postgres.query('SELECT 1 FROM half'), { code: '42P01' })
  })

  test(`${name}: deleted rows can be removed from the files, and others stay`, options, async (t) => {
    const postgres = await open(t)
    await postgres.query('DROP TABLE IF EXISTS erased')
    await postgres.query('CREATE TABLE erased (word text PRIMARY KEY)')
    await postgres.query(`INSERT INTO erased VALUES ('zebrafish'), ('quagga')`)
    for (let sent = 0; sent < 50; sent += 1) await postgres.query(`SELECT pg_notify('erased', 'zebrafish')`)
    await postgres.query(`DELETE FROM erased WHERE word = 'zebrafish'`)
    await postgres.erase(['erased'])
    t.same(await postgres.query('SELECT word FROM erased'), [{ word: 'quagga' }])
    await t.rejects(postgres.erase(['a; b']), /is not a plain name/)
  })

  test(`${name}: a notification is received once its transaction has committed`, options, async (t) => {
    const postgres = await open(t)
    const received: string[] = []
    let hear = (): void => undefined
    const end = await listening(postgres, 'told', (payload) => {
      received.push(payload)
      hear()
    })
    const notify = (payload: string) => postgres.query(`SELECT pg_notify('told', $1)`, [payload])
    await notify('first "\'😀')
    await t.rejects(
      postgres.transaction(async (transaction) => {
        await transaction.query(`SELECT pg_notify('told', 'never')`)
        throw new Error('changed my mind')
      })
    )
    await postgres.query(`SELECT pg_notify('other', 'never')`)
    const sent = new Promise<void>((resolve) => {
      hear = () => received.length === 2 && resolve()
    })
    await postgres.transaction((transaction) => transaction.query(`SELECT pg_notify('told', 'second')`))
    await sent
    t.same(received, ['first "\'😀', 'second'])
    await end()
    await notify('after the end')
    t.equal(received.length, 2)
    t.throws(
      () =>
        postgres.listen(
          'a; DROP TABLE x',
          () => {},
          () => {}
        ),
      /is not a plain name/
    )
  })

  test(`${name}: an error has its SQLSTATE, and the next statement works`, options, async (t) => {
    const postgres = await open(t)
    await t.rejects(postgres.query('SELEC 1'), { code: '42601' })
    await t.rejects(postgres.query('SELECT 1 FROM no_such_table'), { code: '42P01' })
    await postgres.check()
    t.same(await postgres.query('SELECT 1 AS n'), [{ n: 1 }])
  })
}

/** Resolves when it listens. */
const listening = (postgres: Postgres, channel: string, onPayload: (payload: string) => void) =>
  new Promise<() => Promise<void>>((resolve) => {
    const end = postgres.listen(channel, onPayload, () => resolve(end))
  })

let embedded: Promise<Postgres> | undefined
test('PGlite opens', async (t) => {
  embedded = openPglite({ dir: join(t.testdir({}), '..', `postgres-${process.pid}`) })
  await (await embedded).check()
})
postgresContract('PGlite', {}, async () => {
  if (embedded === undefined) throw new Error('PGlite was not opened.')
  return await embedded
})
test('PGlite is vacuumed during writes, so that its tables stay as large as their contents', async (t) => {
  const postgres = await openPglite({
    dir: join(t.testdir({}), '..', `vacuumed-${process.pid}`),
    upkeep: { everyMs: 50 }
  })
  t.teardown(() => postgres.close())
  await postgres.script('CREATE TABLE churned (n integer, text text)')
  const vacuums = async () => {
    const [row] = await postgres.query<{ n: number; bytes: number }>(
      `SELECT s.vacuum_count::int AS n, pg_table_size(s.relid)::int AS bytes FROM pg_stat_user_tables AS s
       WHERE s.relname = 'churned'`
    )
    return row ?? { n: 0, bytes: 0 }
  }
  let [largest, seen] = [0, 0]
  for (let round = 0; round < 5; round += 1) {
    await postgres.query("INSERT INTO churned SELECT n, repeat('x', 300) FROM generate_series(1, 5000) AS n")
    await postgres.query('DELETE FROM churned')
    for (const deadline = Date.now() + WAIT_MS; Date.now() < deadline; ) {
      const { n } = await vacuums()
      if (n > seen) break
    }
    const { n, bytes } = await vacuums()
    t.ok(n > seen, `round ${round}: vacuumed`)
    seen = n
    largest = Math.max(largest, bytes)
  }
  // 5,000 such rows are 1.8 MB, 25,000 are 9.
  t.ok(largest < 4_000_000, `${largest} bytes`)
  t.ok((await transactionAge(postgres)) < 1000)
})

test('a table of PGlite that cannot be vacuumed is reported, and the others are', async (t) => {
  const dir = join(t.testdir({}), '..', `unvacuumed-${process.pid}`)
  const before = await openPglite({ dir })
  for (const name of ['damaged', 'sound'])
    await before.script(
      `CREATE TABLE ${name} (n integer PRIMARY KEY); INSERT INTO ${name} SELECT generate_series(1, 5000)`
    )
  const [file] = await before.query<{ path: string }>(`SELECT pg_relation_filepath('damaged') AS path`)
  await before.close()
  const path = join(dir, file?.path ?? '')
  const bytes = readFileSync(path)
  writeFileSync(path, bytes.fill(1, bytes.length - 8192))
  const checks: unknown[] = []
  const upkeep = { everyMs: 50, onChecked: (failure?: unknown) => void checks.push(failure) }
  const postgres = await openPglite({ dir, upkeep })
  t.teardown(() => postgres.close())
  // By the index, which does not lead to the damaged page.
  await postgres.script(
    'SET enable_seqscan = off; DELETE FROM damaged WHERE n < 2000; DELETE FROM sound WHERE n < 6000'
  )
  const until = async (isLast: (failure: unknown) => boolean) => {
    for (const deadline = Date.now() + WAIT_MS; Date.now() < deadline && !isLast(checks.at(-1)); ) await pause(20)
    return checks.at(-1)
  }
  t.match(await until((failure) => failure !== undefined), {
    cause: { message: /invalid page in block \d+ of relation/ }
  })
  t.same(await postgres.query(`SELECT pg_relation_size('sound')::int AS bytes`), [{ bytes: 0 }])
  await postgres.script('TRUNCATE damaged')
  t.equal(await until((failure) => failure === undefined), undefined, 'once it is repaired')
})

const asRoot = { skip: process.getuid?.() === 0 ? false : 'only root can run a process of another user' }

test('a first start of PGlite does not need the template that another user made', asRoot, async (t) => {
  // The other user can reach neither the fixtures, which may be in a private folder in memory, nor the program, which may be in root's.
  const dir = mkdtempSync(join(tmpdir(), 'gamenet-cluster-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  const program = join(dir, 'engines', 'dist', 'src')
  const copyOf = (name: string) =>
    cpSync(fileURLToPath(new URL(`../src/${name}`, import.meta.url)), join(program, name))
  for (const name of ['postgres/empty-cluster.js', 'engine-versions.js', 'flush-files.js']) copyOf(name)
  writeFileSync(join(dir, 'engines', 'package.json'), '{"type": "module"}')
  const pglite = join('node_modules', '@electric-sql', 'pglite')
  const installed = fileURLToPath(new URL('..', import.meta.resolve('@electric-sql/pglite')))
  cpSync(installed, join(dir, pglite), { recursive: true })
  execFileSync('chmod', ['-R', 'a+rX', dir])
  const module = pathToFileURL(join(program, 'postgres', 'empty-cluster.js'))
  const { layEmptyCluster: layHere } = await import(module.href)
  const folderOf = (name: string) => {
    mkdirSync(join(dir, name))
    return join(dir, name)
  }
  await layHere(folderOf('made'))
  const [template = ''] = readdirSync(join(dir, 'engines', 'dist')).filter((name) => name.startsWith('empty-cluster'))
  chmodSync(join(dir, 'engines', 'dist', template), 0o700)
  const writes = folderOf('writes')
  // The folder of a cluster is renamed.
  for (const name of ['.', 'writes']) chownSync(join(dir, name), OTHER_USER, OTHER_USER)
  const script = `
    const { layEmptyCluster } = await import(${JSON.stringify(module.href)})
    await layEmptyCluster(${JSON.stringify(writes)})`
  await runAsOther([], script)
  t.ok(existsSync(join(writes, 'PG_VERSION')))
})

test('all files and folders of a cluster belong to its user alone, whatever their modes were', async (t) => {
  const dir = t.testdir({ new: {} })
  const modes = () => {
    const found = readdirSync(join(dir, 'new'), { recursive: true, withFileTypes: true })
    return found.map(({ parentPath, name }) => (fs.statSync(join(parentPath, name)).mode & 0o777).toString(8))
  }
  await layEmptyCluster(join(dir, 'new'))
  t.ok(modes().length > 900)
  t.same([...new Set(modes())].sort(), ['600', '700'])
  execFileSync('chmod', ['-R', 'a+rwX', join(dir, 'new')])
  await layEmptyCluster(join(dir, 'new'))
  t.same([...new Set(modes())].sort(), ['600', '700'])
})

test('transactions of PGlite are frozen before their numbers run out, in each of its databases', async (t) => {
  const dir = join(t.testdir({}), '..', `frozen-${process.pid}`)
  mkdirSync(dir)
  await layEmptyCluster(dir)
  const database = await openFlushing(dir)
  t.teardown(() => database.close())
  const databases = async () =>
    (await database.query('SELECT d.datname AS name, age(d.datfrozenxid) AS age FROM pg_database AS d ORDER BY 1')).rows
  await database.exec('CREATE TABLE counted (n integer)')
  for (let n = 0; n < 20; n += 1) await database.query('INSERT INTO counted VALUES ($1)', [n])
  await upkeep(database)
  t.match(await databases(), [{ name: 'postgres', age: Number }, { name: 'template0' }, { name: 'template1' }])
  await upkeep(database, { freezeAtAge: 10 })
  t.match(await databases(), [{ name: 'postgres', age: /^[0-5]$/ }], 'what nobody can connect to, no longer ages')
  t.same((await database.query('SELECT count(*)::int AS n FROM counted')).rows, [{ n: 20 }])
  await upkeep(database, { freezeAtAge: 10 })
})

test('an erasure removes the files that an interrupted rewrite of a table left, and no others', async (t) => {
  const dir = join(t.testdir({}), '..', `orphans-${process.pid}`)
  const open = async () => await openPglite({ dir })
  const before = await open()
  await before.script(
    `CREATE TABLE kept (name text); INSERT INTO kept SELECT 'name ' || n FROM generate_series(1, 1000) AS n`
  )
  await before.script('CREATE INDEX ON kept (name); CHECKPOINT')
  const [file] = await before.query<{ path: string }>(`SELECT pg_relation_filepath('kept') AS path`)
  const path = join(dir, file?.path ?? '')
  const orphans = ['999999', '999999.1', '999999_fsm'].map((name) => join(path, '..', name))
  for (const orphan of orphans) copyFileSync(path, orphan)
  const spill = () => before.query('SELECT n FROM generate_series(1, 300000) AS n ORDER BY n DESC LIMIT 200000')
  await spill()
  await before.erase(['kept'])
  await spill()
  t.same(
    orphans.filter((orphan) => existsSync(orphan)),
    []
  )
  await before.close()
  const after = await open()
  t.teardown(() => after.close())
  t.same(await after.query(`SELECT count(*)::int AS n FROM kept WHERE name LIKE 'name %'`), [{ n: 1000 }])
  await after.script('CREATE TABLE another (n integer); DROP TABLE another')
  await after.script('VACUUM ANALYZE')
})

test('the write-ahead log of PGlite is shortened during writes, and a checkpoint loses none', async (t) => {
  const dir = join(t.testdir({}), '..', `logged-${process.pid}`)
  mkdirSync(dir)
  await layEmptyCluster(dir)
  const database = await openFlushing(dir)
  t.teardown(() => database.close())
  const files = async () => (await database.query('SELECT FROM pg_ls_waldir()')).rows.length
  await database.exec('CREATE TABLE logged (text text)')
  const write = () => database.exec(`INSERT INTO logged SELECT repeat('x', 1000) FROM generate_series(1, 40000)`)
  await write()
  const long = await files()
  t.ok(long >= 3, `${long} files of 16 MiB`)
  await upkeep(database)
  t.equal(await files(), long, 'shorter than the limit')
  await upkeep(database, { logBytesMax: 32 * 2 ** 20 })
  const short = await files()
  t.ok(short <= 2, `${short} files: the present one and perhaps the next`)
  t.same((await database.query('SELECT count(*)::int AS n FROM logged')).rows, [{ n: 40_000 }])
})

test('PGlite creates a file again whose creation failed', async (t) => {
  const dir = join(t.testdir({}), 'full')
  mkdirSync(dir)
  await layEmptyCluster(dir)
  const database = await openFlushing(dir)
  t.teardown(() => database.close())
  await database.exec(
    `CREATE TABLE filled (word text); INSERT INTO filled SELECT repeat('x', 100) FROM generate_series(1, 1000)`
  )
  const { writeFileSync } = fs
  fs.writeFileSync = () => {
    throw Object.assign(new Error('ENOSPC: no space left on device'), {
      code: 'ENOSPC',
      errno: -constants.errno.ENOSPC
    })
  }
  try {
    await t.rejects(database.exec('VACUUM filled'), { message: /could not create file .*No space left on device/ })
  } finally {
    fs.writeFileSync = writeFileSync
  }
  await database.exec('VACUUM filled')
})

test('removed rows are in no file of PGlite', async (t) => {
  const dir = t.testdir()
  const postgres = await openPglite({ dir })
  await postgres.query('CREATE TABLE erased (word text)')
  await postgres.query(`INSERT INTO erased VALUES ('zebrafish'), ('quagga')`)
  const found = (word: string) =>
    readdirSync(dir, { recursive: true, withFileTypes: true })
      .filter((each) => each.isFile() && readFileSync(join(each.parentPath, each.name)).includes(word))
      .map((each) => each.name)
  t.not(found('zebrafish').length, 0)
  await postgres.query(`DELETE FROM erased WHERE word = 'zebrafish'`)
  await postgres.erase(['erased'])
  t.same(found('zebrafish'), [])
  await postgres.close()
  t.same(found('zebrafish'), [])
  t.not(found('quagga').length, 0)
})

test('PGlite keeps stored rows, and closes once', async (t) => {
  await (await embedded)?.close()
  await (await embedded)?.close()
  const again = await openPglite({ dir: join(t.testdir({}), '..', `postgres-${process.pid}`) })
  t.teardown(() => again.close())
  t.same(await again.query('SELECT n FROM kept'), [{ n: 1 }])
})
test('a PGlite that was killed during its creation is created again', async (t) => {
  const dir = join(t.testdir({ 'writes.new': { PG_VERSION: '1' } }), 'writes')
  const postgres = await openPglite({ dir })
  t.same(await postgres.query('SELECT 1 AS n'), [{ n: 1 }])
  await postgres.close()
  t.notOk(existsSync(`${dir}.new`))
})

test('a PGlite without the folders that a start fills keeps its rows over the next starts', async (t) => {
  const dir = t.testdir()
  const first = await openPglite({ dir })
  await first.script('CREATE TABLE kept (n integer)')
  await first.close()
  for (const name of ['pg_subtrans', 'pg_notify', 'pg_twophase', 'pg_stat', 'pg_tblspc', 'pg_logical/mappings'])
    rmSync(join(dir, name), { recursive: true })
  for (const n of [1, 2]) {
    const again = await openPglite({ dir })
    await again.query('INSERT INTO kept VALUES ($1)', [n])
    t.same(await again.query('SELECT count(*)::int AS n FROM kept'), [{ n }])
    await again.close()
  }
  rmSync(join(dir, 'pg_xact'), { recursive: true })
  await t.rejects(openPglite({ dir }), /its file or folder pg_xact is missing/)
})

test('a PGlite without its configuration, or with a damaged one, keeps its rows', async (t) => {
  const dir = t.testdir({})
  await (await openPglite({ dir })).close()
  const names = ['postgresql.conf', 'postgresql.auto.conf', 'pg_hba.conf', 'pg_ident.conf']
  for (const damage of [rmSync, (path: string) => writeFileSync(path, '\u0001\u0002 half = ')]) {
    for (const name of names) damage(join(dir, name))
    const postgres = await openPglite({ dir })
    t.same(await postgres.query(`SELECT current_setting('timezone') AS zone`), [{ zone: 'UTC' }])
    await postgres.close()
  }
})

test('a PGlite with a damaged file is refused with the name of this file', async (t) => {
  const dir = t.testdir({})
  await (await openPglite({ dir })).close()
  for (const [name, reason] of [
    ['PG_VERSION', `File "${dir}/PG_VERSION" does not contain valid data`],
    ['base/5/PG_VERSION', 'base/5/PG_VERSION'],
    // The catalog of functions, read after the start.
    ['base/5/1255', 'could not open file "base/5/1255"'],
    ['pg_xact/0000', 'pg_xact/0000']
  ] as const) {
    const path = join(dir, name)
    const bytes = readFileSync(path)
    if (name.endsWith('PG_VERSION')) truncateSync(path)
    else rmSync(path)
    const refused = await openPglite({ dir }).then(() => '', errorMessage)
    t.match(refused, /^The PostgreSQL directory .* cannot be opened: /)
    t.ok(refused.includes(reason), refused)
    writeFileSync(path, bytes)
  }
})

test('a PGlite whose transaction status was overwritten with zeros is refused', async (t) => {
  const dir = t.testdir({})
  const first = await openPglite({ dir })
  await migratePostgres(first)
  await first.script('BEGIN; CREATE TABLE undone (n integer); ROLLBACK')
  await first.script('VACUUM FREEZE')
  await first.close()
  const path = join(dir, 'pg_xact', '0000')
  const bytes = readFileSync(path)
  writeFileSync(path, Buffer.alloc(bytes.length))
  await t.rejects(openPglite({ dir }), /cannot be opened: its transaction status \(pg_xact\) is damaged/)
  writeFileSync(path, bytes)
  const again = await openPglite({ dir })
  await again.script('VACUUM FULL')
  await again.close()
  await (await openPglite({ dir })).close()
})

test('a PGlite whose files fail refuses statements, and is restarted', async (t) => {
  const dir = t.testdir()
  const postgres = await openPglite({ dir })
  t.teardown(() => postgres.close())
  await postgres.script('CREATE TABLE kept (n integer)')
  await postgres.query('INSERT INTO kept VALUES (1)')
  const heard: string[] = []
  let listened = 0
  postgres.listen(
    'events',
    (payload) => heard.push(payload),
    () => {
      listened += 1
    }
  )
  await postgres.check()
  // The next file of the write-ahead log cannot be created: PostgreSQL ends itself.
  const obstacle = join(dir, 'pg_wal', 'xlogtemp.42')
  mkdirSync(obstacle)
  const away = { name: 'Refusal', code: 'engine_away', status: 503, retryAfterSeconds: 5 }
  await t.rejects(
    postgres.script('SELECT pg_switch_wal(); INSERT INTO kept SELECT * FROM generate_series(1, 100000)'),
    {
      ...away,
      cause: { message: /PANIC: +could not create file "pg_wal.xlogtemp.42"/ }
    }
  )
  rmdirSync(obstacle)
  t.same(await postgres.query('SELECT n FROM kept'), [{ n: 1 }])
  t.equal(listened, 2, 'a listener learns that notifications may be missing')
  await postgres.query(`SELECT pg_notify('events', 'after')`)
  await postgres.check()
  t.same(heard, ['after'])
})

test('a path that is not a directory is refused in one sentence', async (t) => {
  const dir = t.testdir()
  writeFileSync(join(dir, 'file'), '')
  await t.rejects(openPglite({ dir: join(dir, 'file') }), {
    message: /^The PostgreSQL directory .* cannot be opened: /
  })
})

const programs = postgresPrograms()
const missing = 'PostgreSQL is not installed (Debian: apt-get install postgresql); the server engine stays untested'
const skip = programs === undefined && process.env.CI !== 'true' ? missing : false
const withoutPgBouncer =
  spawnSync('pgbouncer', ['--version']).status === 0 || process.env.CI === 'true'
    ? false
    : 'PgBouncer is not installed (Debian: pgbouncer); poolers stay untested'
if (withoutPgBouncer !== false) console.error(`NOT TESTED: ${withoutPgBouncer}.`)
let server: PostgresProcess | undefined

test('a PostgreSQL server starts', { skip }, async (t) => {
  if (programs === undefined) throw new Error(missing)
  server = await startPostgres(programs)
  t.match(server.url, /^postgres:/)
})
const openServer = async (t: Test, options: Partial<PostgresOptions> = {}): Promise<Postgres> => {
  const postgres = openPostgres({ url: server?.url ?? '', ...options })
  t.teardown(() => postgres.close())
  return postgres
}
postgresContract('a server', { skip }, (t) => openServer(t))

test('a server that refuses the user or the database is unavailable, with the reason', { skip }, async (t) => {
  const warnings: Error[] = []
  const warned = (warning: Error) => void warnings.push(warning)
  process.on('warning', warned)
  t.teardown(() => process.off('warning', warned))
  for (const [change, reason] of [
    [{ username: 'nobody' }, /role "nobody" does not exist/],
    [{ pathname: '/nowhere' }, /database "nowhere" does not exist/],
    [{ search: '?sslmode=require' }, /does not support SSL/]
  ] as const) {
    const postgres = openPostgres({ url: String(Object.assign(new URL(server?.url ?? ''), change)) })
    t.teardown(() => postgres.close())
    await t.rejects(postgres.check(), { name: 'Refusal', code: 'engine_away', cause: { message: reason } })
  }
  t.same(warnings, [])
})

test('an unavailable server is reported, and is used again when it is back', { skip }, async (t) => {
  const postgres = await openServer(t)
  await postgres.check()
  const away = { name: 'Refusal', code: 'engine_away', message: /^PostgreSQL cannot be reached/, retryAfterSeconds: 5 }
  let reached = (): void => undefined
  const inside = new Promise<void>((resolve) => {
    reached = resolve
  })
  const cut = postgres.transaction(async (transaction) => {
    await transaction.query('SELECT 1')
    reached()
    await transaction.query('SELECT pg_sleep(60)')
  })
  await Promise.all([t.rejects(cut, away, 'a transaction under way'), inside.then(() => server?.kill())])
  await t.rejects(postgres.check(), away)
  await t.rejects(
    postgres.transaction(async () => undefined),
    away
  )
  await server?.start()
  await postgres.check()
})

test('statements on a server that does not reply are refused in seconds, whatever their own limits, and work when it is back', {
  skip
}, async (t) => {
  const wire = await startWire(t, Number(new URL(server?.url ?? '').port))
  const url = new URL(server?.url ?? '')
  url.port = String(wire.port)
  const postgres = openPostgres({ url: url.href, connections: 1, health: { pauseMs: 50, silenceMs: 500 } })
  t.teardown(() => postgres.close())
  const away = { name: 'Refusal', code: 'engine_away', message: /^PostgreSQL cannot be reached/, retryAfterSeconds: 5 }
  await postgres.query('SELECT pg_sleep(1.5)')
  t.pass('a long statement is not a silence')
  const cut = postgres.transaction(async (transaction) => {
    await transaction.query('SELECT 1')
    wire.isSilent = true
    await Promise.all([
      t.rejects(postgres.query('SELECT 2'), away, 'a statement that waits for a connection'),
      t.rejects(
        postgres.transaction(async () => undefined),
        away,
        'a transaction that waits for a connection'
      )
    ])
    await transaction.query('SELECT 3')
  })
  await t.rejects(cut, away, 'the transaction that has it')
  await t.rejects(postgres.check(), away, 'a new one')
  wire.isSilent = false
  await poll(
    () =>
      postgres.check().then(
        () => true,
        () => false
      ),
    Boolean,
    { everyMs: 50, timeoutMs: 20_000 }
  )
  t.same(await postgres.transaction((transaction) => transaction.query('SELECT 4 AS n')), [{ n: 4 }])
})

test('the server ends the transaction of a process that rests in it, and with it the locks', { skip }, async (t) => {
  const [stopped, waiting] = await Promise.all([openServer(t, { idleTransactionMs: 500 }), openServer(t)])
  const lock = (postgres: typeof stopped, rest?: () => Promise<unknown>) =>
    postgres.transaction(async (transaction) => {
      await transaction.query('SELECT pg_advisory_xact_lock(45)')
      await rest?.()
      return await transaction.query('SELECT 1 AS n')
    })
  const cut = lock(stopped, async () => t.same(await lock(waiting), [{ n: 1 }]))
  await t.rejects(cut, { name: 'Refusal', code: 'engine_away' })
  await stopped.check()
})

test('a listener is called when the server is back, and then gets notifications again', { skip }, async (t) => {
  const listener = await openServer(t)
  const notifier = await openServer(t)
  const received: string[] = []
  let begun = 0
  let next = (): void => undefined
  const something = () =>
    new Promise<void>((resolve) => {
      next = resolve
    })
  const first = something()
  listener.listen(
    'told',
    (payload) => {
      received.push(payload)
      next()
    },
    () => {
      begun += 1
      next()
    }
  )
  await first
  const again = something()
  await server?.kill()
  await server?.start()
  await again
  t.equal(begun, 2)
  const sent = something()
  await notifier.query(`SELECT pg_notify('told', 'back')`)
  await sent
  t.same(received, ['back'])
})

test('a listener of an unavailable server gets notifications once the server is back, or ends', { skip }, async (t) => {
  await server?.kill()
  const listener = await openServer(t)
  await listener.listen(
    'told',
    () => {},
    () => t.fail('listening to nobody')
  )()
  const received = listening(listener, 'told', () => {})
  await server?.start()
  await (await received)()
})
test('PgBouncer that pools transactions works, and a listener without notifications polls or listens elsewhere', {
  skip: skip || withoutPgBouncer
}, async (t) => {
  const direct = server?.url ?? ''
  const url = await startPgBouncer(t, direct, 'transaction')
  const notifier = openPostgres({ url })
  t.teardown(() => notifier.close())
  await notifier.script('CREATE TABLE told (n integer)')
  const limited = openPostgres({ url, statementTimeoutMs: 50 })
  t.teardown(() => limited.close())
  await t.rejects(
    limited.transaction((transaction) => transaction.query('SELECT pg_sleep(60)')),
    { code: '57014' },
    'the server ends a long statement'
  )
  const heard: string[] = []
  const deaf = openPostgres({ url, polled: { told: 'SELECT count(*) FROM told' } })
  t.teardown(() => deaf.close())
  let changes = 0
  let next = (): void => undefined
  const something = () =>
    new Promise<void>((resolve) => {
      next = resolve
    })
  const listened = something()
  deaf.listen(
    'told',
    (payload) => heard.push(payload),
    () => {
      changes += 1
      next()
    }
  )
  await listened
  await something()
  t.equal(changes, 2, 'a first poll follows')
  const edited = something()
  await notifier.query('INSERT INTO told VALUES (1)')
  await edited
  t.same(heard, [], 'the change of another process is seen without a notification')
  const hearing = openPostgres({ url, listenUrl: direct })
  t.teardown(() => hearing.close())
  const told = new Promise<string>((resolve) => {
    hearing.listen('told', resolve, () => void notifier.query(`SELECT pg_notify('told', 'through the pooler')`))
  })
  t.equal(await told, 'through the pooler')
})
test('PgBouncer that pools sessions passes notifications on', { skip: skip || withoutPgBouncer }, async (t) => {
  const postgres = openPostgres({ url: await startPgBouncer(t, server?.url ?? '', 'session') })
  t.teardown(() => postgres.close())
  const told = new Promise<string>((resolve) => {
    postgres.listen('told', resolve, () => void postgres.query(`SELECT pg_notify('told', 'through the pooler')`))
  })
  t.equal(await told, 'through the pooler')
  const limit = await postgres.transaction((transaction) => transaction.query('SHOW statement_timeout'))
  t.same(limit, [{ statement_timeout: '15s' }])
})
test('the PostgreSQL server stops', { skip }, async () => {
  await server?.stop()
})

/** A PgBouncer before a server, with three connections to it (statements, notifications, probes); ends with the test. */
async function startPgBouncer(t: Test, target: string, poolMode: 'session' | 'transaction'): Promise<string> {
  const [{ port }, own] = [new URL(target), await freePort()]
  // It refuses to run as root, and the user postgres may not read the checkout.
  const folder = mkdtempSync(join(tmpdir(), 'pgbouncer-'))
  chmodSync(folder, 0o755)
  t.teardown(() => rmSync(folder, { recursive: true }))
  writeFileSync(
    join(folder, 'pgbouncer.ini'),
    `[databases]
postgres = host=127.0.0.1 port=${port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${own}
unix_socket_dir =
auth_type = any
pool_mode = ${poolMode}
default_pool_size = 3
`
  )
  const user = process.getuid?.() === 0 ? ['-u', 'postgres'] : []
  const child = spawn('pgbouncer', [...user, 'pgbouncer.ini'], { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
  t.teardown(() => child.kill('SIGKILL'))
  let said = ''
  for await (const chunk of child.stderr) {
    said += chunk
    if (said.includes('process up')) return `postgres://postgres@127.0.0.1:${own}/postgres`
  }
  throw new Error(`PgBouncer did not start: ${said}`)
}
