import { cp, mkdir, readdir, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type ClickHouse, migratePostgres, openChdb, openPglite } from '@gamenet/engines'
import { until } from '@gamenet/engines/testing'
import { publish } from '@gamenet/ingest'
import { migrate, storeOver } from '@gamenet/projector'
import { presenceTopic } from '@gamenet/schemas'
import { test } from 'tap'
import { eraseUser, finishErasures, reapplyMissingErasures } from '../src/operate/erase/erase-user.js'
import { eraseRows } from '../src/stores/erase-rows.js'
import { addToLedger, readLedger } from '../src/stores/ledger.js'
import { mergeLedgerCopy, writeLedgerCopy } from '../src/stores/ledger-file.js'
import {
  filesThatName,
  fill,
  leftBehindCuts,
  needsOf,
  openTables,
  openWorld,
  rowsOfOthers,
  sighting,
  storedMutations,
  tablesThatName,
  USER,
  writesThatName
} from './service/erasure-world.js'

/** After the deletions from tables about users, and again after the last deletion, when no table names the user. */
const CUTS = ['FROM data_change', 'NOT p.active']

const NONE = { completed: 0, repeated: 0 }

test('an erased user is in no table, no row and no byte, and nothing restores them', async (t) => {
  const world = await openWorld(t, (folder) => openPglite({ dir: join(folder, 'writes') }))
  await fill(world)
  t.not((await tablesThatName(world.clickhouse)).length, 0)
  t.not((await writesThatName(world.writes)).length, 0)
  const { control } = world.clickhouse
  for (const name of ['cancelled__7', 'cancelled__8', 'cancelled__9']) {
    await control.execute(`CREATE TABLE ${name} (user_key String) ENGINE = MergeTree ORDER BY user_key`)
    await control.execute(`INSERT INTO ${name} VALUES ('zebrafish')`)
  }
  await control.execute('DROP TABLE cancelled__7')
  await control.execute('ALTER TABLE cancelled__8 DETACH PARTITION ALL')
  const broken = await brokenPart(control, 'cancelled__9')
  t.not((await filesThatName(broken)).length, 0)
  await addUnknownTable(world.folder, 'zebrafish')
  const before = await rowsOfOthers(world)
  // The newest change that readers know, as of a process whose clock is ahead.
  const known = (Date.now() + 3_600_000) * 1000
  await control.execute(
    `INSERT INTO data_change (version, projection, key, from_ms, to_ms) VALUES (${known}, 'rating', 'zebrafish', 0, 1)`
  )

  const phases: string[] = []
  const onProgress = ({ phase }: { phase: string }) => phases.push(phase)
  const lingering = filesOfDropped(control, 3)
  const stray = join(world.folder, 'tables', 'store', 'README')
  await writeFile(stray, 'not of the engine')
  const report = await eraseUser({ ...needsOf(world), tables: lingering.seen, onProgress }, 'zebrafISH')
  await rm(stray)
  t.equal(lingering.looksLeft(), 0, 'the files of dropped tables are waited for')
  t.match(report, { wasKnown: true, rowsOfWrites: 6 })
  t.ok(report.rowsOfTables > 20, `${report.rowsOfTables} rows of tables`)
  t.same([...new Set(phases)], ['keys', 'waiting', 'tables', 'files'])

  t.same(await tablesThatName(world.clickhouse), [])
  t.same(await writesThatName(world.writes), [])
  t.same(await filesThatName(world.folder), [])
  t.same(await readdir(broken), [], 'the folder of a damaged part stays: the next start restores the rows of others')
  t.same(await storedMutations(world.clickhouse), [], 'no stored mutation names the user')
  t.same(await rowsOfOthers(world), before, 'of others everything stays')
  const [announced] = await control.rows(
    `SELECT d.version FROM data_change AS d WHERE d.key = '*' ORDER BY 1 DESC LIMIT 1`
  )
  t.ok(Number(announced?.version) > known, 'no reader keeps an answer from before')
  t.match(await readLedger(world.writes), [{ nameHash: /^[0-9a-f]{64}$/, doneAt: Date }])

  await t.test('with an older copy of all other data, the ledger is applied again', async (t) => {
    const ledger = await world.writes.query('SELECT f.* FROM erasure AS f')
    await world.writes.query('DELETE FROM erasure')
    await fill(world)
    t.not((await tablesThatName(world.clickhouse)).length, 0)
    for (const { name_hash, erased_at } of ledger) {
      await world.writes.query('INSERT INTO erasure (name_hash, erased_at) VALUES ($1, $2)', [name_hash, erased_at])
    }
    t.equal(await finishErasures(needsOf(world)), 1)
    t.same(await tablesThatName(world.clickhouse), [])
    t.same(await writesThatName(world.writes), [])
  })
  await t.test('later sightings of an erased user are ignored', async (t) => {
    const heads = await world.log.extents('presence')
    await publish(world.log, presenceTopic, [sighting(USER, 50)], { source: '/scrape/players' }, world.people)
    t.same(await world.log.extents('presence'), heads)
    t.match(await world.registry.metrics(), /gamenet_erased_events_total\{topic="presence"\} 1/)
  })
  await t.test('erasing again, and erasing an unknown user, changes nothing', async (t) => {
    const nothing = { wasKnown: false, isEntered: true, rowsOfWrites: 0, rowsOfTables: 0 }
    t.same(await eraseUser(needsOf(world), USER), nothing)
    t.same(await rowsOfOthers(world), before)
    t.match(await eraseUser(needsOf(world), 'nobody'), { wasKnown: false, isEntered: false })
    t.equal((await readLedger(world.writes)).length, 1, 'a name that may be misspelt is not entered')
    t.match(await eraseUser(needsOf(world), 'nobody', true), { wasKnown: false, isEntered: true })
    t.equal((await readLedger(world.writes)).length, 2)
  })
  await t.test(`an erasure interrupted at ${CUTS.join(', ')} is completed later`, async (t) => {
    t.same(await leftBehindCuts(world, CUTS), [])
    t.same(await rowsOfOthers(world), before)
  })
  t.same(await filesThatName(world.folder), [])
  await t.test('tables rebuilt from the log do not have it either', async (t) => {
    await world.closeTables()
    const rebuilt = { ...world, ...(await openTables(world, 'rebuilt')) }
    t.teardown(() => rebuilt.closeTables())
    await rebuilt.projector.caughtUp()
    t.same(await tablesThatName(rebuilt.clickhouse), [])
    t.same(await rowsOfOthers(rebuilt), before)
  })
  await t.test('with older tables, erased users are erased again, and users who returned since stay', async (t) => {
    const { folder, writes, log, people } = world
    await writes.query('DELETE FROM erasure')
    const first = await openTables(world, 'tables')
    await first.clickhouse.control.execute('ALTER TABLE erasure DELETE WHERE 1 SETTINGS mutations_sync = 2')
    await fill({ ...world, ...first })
    await first.closeTables()
    await cp(join(folder, 'tables'), join(folder, 'older'), { recursive: true })
    const now = await openTables(world, 'tables')
    await eraseUser(needsOf({ ...world, ...now }), USER)
    await eraseUser(needsOf({ ...world, ...now }), 'ben')
    await now.closeTables()
    await writes.query(
      'UPDATE erasure AS f SET returned_at = now() WHERE f.erased_at = (SELECT min(erased_at) FROM erasure)'
    )
    await publish(log, presenceTopic, [sighting(USER, 50)], { source: '/scrape/players' }, people)

    const signal = new AbortController().signal
    const clickhouse = await openChdb({ path: join(folder, 'older') })
    const stepsEnded = async () => undefined
    const needs = { writes, tables: clickhouse.control, stepsEnded, ownsTables: true, signal, isOnlyReader: true }
    t.not((await tablesThatName(clickhouse)).length, 0)
    t.same(await reapplyMissingErasures(needs), { completed: 0, repeated: 2 })
    t.same(await tablesThatName(clickhouse), [])
    t.same(await reapplyMissingErasures(needs), NONE)
    await clickhouse.close()
    const loaded = await openTables(world, 'older')
    t.teardown(() => loaded.closeTables())
    await loaded.projector.caughtUp()
    const known = async () =>
      await loaded.clickhouse.control.rows(
        'SELECT d.user_key, sum(d.sightings) AS sightings FROM presence_day AS d FINAL GROUP BY d.user_key ORDER BY d.user_key'
      )
    const sightings = await known()
    t.match(sightings, [{ user_key: 'ann' }, { user_key: 'zebrafish', sightings: '1' }])
    t.same(await reapplyMissingErasures({ ...needs, tables: loaded.clickhouse.control }), NONE)
    t.same(await known(), sightings)

    await t.test('with an older PostgreSQL, the tables have the erased users', async (t) => {
      await writes.query('DELETE FROM erasure')
      const tables = loaded.clickhouse.control
      t.same(
        await reapplyMissingErasures({ ...needs, tables, isOnlyReader: false }),
        NONE,
        'others may read the log with a key'
      )
      t.match(await readLedger(writes), [{ doneAt: null }, { doneAt: null }])
      t.same(
        await reapplyMissingErasures({ ...needs, tables }),
        { completed: 2, repeated: 0 },
        'they are in the ledger now'
      )
      t.same(await tablesThatName(loaded.clickhouse), [])
      t.same(await writesThatName(writes), [])
      t.match(await readLedger(writes), [{ doneAt: Date }, { doneAt: Date }])
    })

    await t.test('a step of a rebuild that had read rows before their deletion does not restore them', async (t) => {
      await writes.query('DELETE FROM erasure')
      await fill({ ...world, ...loaded })
      await loaded.closeTables()
      const slow = slowInsert('presence_day__1')
      const tables = await openTables(world, 'older', (lane) => slow.on(lane))
      t.teardown(() => tables.closeTables())
      const now = { ...world, ...tables }
      await tables.projector.caughtUp()
      await tables.projector.rebuilds.start('presence')
      await slow.begun
      const orphan = orphanedInsert(tables.clickhouse, 'presence_day__0', 'presence_day__9')
      let waits = 0
      const stepsEnded = async () => {
        waits += 1
        const ended = tables.projector.stepsEnded()
        let isOver = false
        void ended.then(() => {
          isOver = true
        })
        if (waits === 1) {
          // One query later, everything that waits for nothing else has ended.
          await tables.clickhouse.control.rows('SELECT 1 AS one')
          t.equal(isOver, false, 'the step is waited for')
          slow.release()
        }
        await ended
        if (waits === 1) await orphan.begin()
      }
      await eraseUser({ ...needsOf(now), stepsEnded, tables: orphan.seen }, USER)
      t.equal(orphan.hadEnded(), true, 'nor is anything deleted while a statement of a dead process runs')
      t.same(await tablesThatName(tables.clickhouse), [])
      slow.release()
      await until(async () => (await tables.projector.rebuilds.list())[0]?.state === 'filled')
      t.same(await tablesThatName(tables.clickhouse), [])
      t.equal((await tables.projector.rebuilds.verify('presence')).isEqual, true)
    })
  })
})

test('an erasure does not end while replaced parts exist that name the user', async (t) => {
  const path = join(t.testdir({}), 'tables')
  const before = await openChdb({ path, grants: 'GRANT ALL ON *.*' })
  await migrate(before.control)
  await before.control.execute('CREATE TABLE seen (user_key String) ENGINE = MergeTree ORDER BY user_key')
  for (let n = 0; n < 2; n += 1) await before.control.execute(`INSERT INTO seen VALUES ('${USER}')`)
  await before.control.execute('OPTIMIZE TABLE seen FINAL')
  const folders = await before.control.rows(
    `SELECT p.path AS path FROM system.parts AS p WHERE p.table = 'seen' AND NOT p.active`
  )
  await before.close()
  const hourAhead = Date.now() / 1000 + 3600
  for (const folder of folders) await utimes(String(folder.path), hourAhead, hourAhead)
  const { control, close } = await openChdb({ path })
  t.teardown(close)
  const needs = { store: storeOver(control), salt: '00', stepsEnded: async () => undefined, onTable: () => undefined }
  const erased = eraseRows({ ...needs, signal: new AbortController().signal, oldPartsMs: 2000 }, [USER])
  await t.rejects(erased, /the files of 2 replaced parts still exist/)
})

test('a start with an older PostgreSQL and older tables keeps the erasures of the copied ledger', async (t) => {
  const folder = t.testdir({})
  const writes = await openPglite({ dir: join(folder, 'writes') })
  t.teardown(() => writes.close())
  await migratePostgres(writes)
  const directory = { path: folder, part: (name: string) => join(folder, name) }
  const engines = { writes: async () => writes, directory }
  await mergeLedgerCopy(engines)
  const nameHash = 'ab'.repeat(32)
  await addToLedger(writes, [{ nameHash, erasedAtMs: 1_700_000_000_000 }])
  await writeLedgerCopy(engines)
  await writes.query('DELETE FROM erasure')
  await mergeLedgerCopy(engines)
  t.match(await readLedger(writes), [{ nameHash, doneAt: null }])
  await writes.query('DELETE FROM erasure')
  const [former] = await writes.query<{ salt: Uint8Array }>('SELECT s.salt FROM erasure_salt AS s')
  await writes.query("UPDATE erasure_salt SET salt = decode(repeat('01', 32), 'hex')")
  for (const start of ['first', 'second']) {
    t.match(
      await mergeLedgerCopy(engines),
      [/^erasures-[0-9a-f]{16}\.json lists 1 erasures/],
      `the ${start} start says so`
    )
    t.same(await readLedger(writes), [], 'the copy is of another installation')
    await writeLedgerCopy(engines)
  }
  await writes.query('UPDATE erasure_salt SET salt = $1', [former?.salt])
  t.same(await mergeLedgerCopy(engines), [], 'the empty copy of the other one is not kept')
  t.match(await readLedger(writes), [{ nameHash, doneAt: null }], 'with the former PostgreSQL the kept copy is merged')

  await writeLedgerCopy(engines)
  await writes.query('DELETE FROM erasure')
  await writeLedgerCopy(engines)
  await writeFile(join(folder, 'erasures-01.json'), '{"x')
  t.match(await mergeLedgerCopy(engines), [/^erasures that erasures-01\.json lists are not compared/])
  t.match(await readLedger(writes), [{ nameHash }], 'a copy that was not merged is not replaced by a shorter one')
  await rm(join(folder, 'erasures-01.json'))
  const copy = join(folder, 'erasures.json')
  const text = await readFile(copy, 'utf8')
  await writeFile(copy, text.replace('1700000000000', '1900000000000'))
  t.match(await mergeLedgerCopy(engines), [/^erasures that erasures\.json lists are not compared: .* or is damaged/])
  await writeFile(copy, text.replace(/"sha256":"\w+",/, ''))
  t.match(await mergeLedgerCopy(engines), [/^erasures that erasures\.json lists are not compared/])
  await writeFile(copy, '')
  for (const name of ['erasures', 'erasures-unreadable']) {
    t.match(await mergeLedgerCopy(engines), [new RegExp(`^erasures that ${name}\\.json lists are not compared`)])
    await writeLedgerCopy(engines)
  }
})

test('an erasure removes rows that the undo of an import has only masked', async (t) => {
  const { control, close } = await openChdb({ path: join(t.testdir({}), 'tables') })
  t.teardown(close)
  await migrate(control)
  await control.execute('CREATE TABLE seen (user_key String, id UInt8) ENGINE = MergeTree ORDER BY id')
  await control.execute(`INSERT INTO seen VALUES ('${USER}', 1), ('${USER}', 2), ('other', 3)`)
  await control.execute('DELETE FROM seen WHERE id < 2')
  await control.execute("INSERT INTO seen VALUES ('other', 4)")
  const needs = {
    store: storeOver(control),
    salt: '00'.repeat(32),
    stepsEnded: async () => undefined,
    onTable: () => undefined
  }
  const signal = new AbortController().signal
  t.equal(await eraseRows({ ...needs, signal }, [USER]), 1)
  const stored = 'SELECT s.id AS id FROM seen AS s ORDER BY s.id SETTINGS apply_deleted_mask = 0'
  t.same(await control.rows(stored), [{ id: 3 }, { id: 4 }])
  await control.execute('DELETE FROM seen WHERE id = 3')
  t.equal(await eraseRows({ ...needs, signal }, ['other']), 1)
  t.same(await control.rows(stored), [], 'no row is visible in one part')
})

/** Detaches the only part of a table as the engine detaches one that it cannot read at its start; returns its folder. */
async function brokenPart(control: ClickHouse['control'], table: string): Promise<string> {
  await control.execute(`ALTER TABLE ${table} DETACH PARTITION ALL`)
  const parts = `SELECT d.path AS path, d.reason AS reason FROM system.detached_parts AS d WHERE d.table = '${table}'`
  const path = String((await control.rows(parts))[0]?.path)
  const broken = join(dirname(path), `broken-on-start_${basename(path)}`)
  await rename(path, broken)
  const [part] = await control.rows(parts)
  if (part?.reason !== 'broken-on-start') throw new Error(`${broken} is ${JSON.stringify(part)}`)
  return broken
}

/** Adds a table whose definition was deleted while nothing ran; all folders are as old as before a start. */
async function addUnknownTable(folder: string, content: string): Promise<void> {
  const store = join(folder, 'tables', 'store')
  const part = join(store, '0ab', '0ab00000-0000-4000-8000-000000000001', 'all_1_1_0')
  await mkdir(part, { recursive: true })
  await writeFile(join(part, 'data.bin'), content)
  for (const group of await readdir(store))
    for (const name of await readdir(join(store, group))) await utimes(join(store, group, name), 1, 1)
}

/**
 * The files of a dropped table stay for this number of polls: the embedded ClickHouse deletes them at once, a ClickHouse server after 8
 * minutes.
 */
function filesOfDropped(control: ClickHouse['control'], looks: number) {
  let left = looks
  const rows: typeof control.rows = async (sql, parameters) => {
    if (!sql.includes('system.dropped_tables') || left === 0) return await control.rows(sql, parameters)
    left -= 1
    return [{ uuid: 'of a dropped table' }]
  }
  return { seen: { ...control, rows }, looksLeft: () => left }
}

/** A statement that continues in the engine, and whether it had ended when rows were first deleted. */
function orphanedInsert({ control, rebuild }: ClickHouse, from: string, into: string) {
  let isEnded = false
  let hadEnded: boolean | undefined
  const begin = async () => {
    await control.execute(`CREATE TABLE ${into} AS ${from}`)
    const ended = rebuild.execute(`INSERT INTO ${into} SELECT * FROM ${from} WHERE NOT ignore(sleep(1))`).then(() => {
      isEnded = true
    })
    ended.catch(() => undefined)
    const running = `SELECT 1 AS one FROM system.processes AS p WHERE p.query_kind = 'Insert' AND position(p.query, '${into}') > 0`
    await until(async () => isEnded || (await control.rows(running)).length > 0)
  }
  const execute: typeof control.execute = async (sql, parameters) => {
    if (sql.includes(' DELETE ')) hadEnded ??= isEnded
    await control.execute(sql, parameters)
  }
  return { begin, seen: { ...control, execute }, hadEnded: () => hadEnded }
}

/** An INSERT … SELECT into a table that has read its rows when it has begun, and stores them on request. */
function slowInsert(table: string) {
  let begin = () => {}
  const begun = new Promise<void>((resolve) => {
    begin = resolve
  })
  let release = () => {}
  const notified = new Promise<void>((resolve) => {
    release = resolve
  })
  const on = (lane: ClickHouse['rebuild']): ClickHouse['rebuild'] => ({
    ...lane,
    execute: async (sql, parameters) => {
      const [head = ''] = new RegExp(`^INSERT INTO ${table} \\([^)]*\\)`).exec(sql) ?? []
      if (head === '') return await lane.execute(sql, parameters)
      const columns = head.slice(head.indexOf('(') + 1, -1)
      await lane.execute(`CREATE TABLE read_rows ENGINE = Memory AS SELECT ${columns} FROM ${table} LIMIT 0`)
      await lane.execute(`INSERT INTO read_rows (${columns})${sql.slice(head.length)}`, parameters)
      begin()
      await notified
      await lane.execute(`${head} SELECT ${columns} FROM read_rows`)
      await lane.execute('DROP TABLE read_rows')
    }
  })
  return { on, begun, release: () => release() }
}
