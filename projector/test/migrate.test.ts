import { readFile, writeFile } from 'node:fs/promises'
import { openChdb } from '@gamenet/engines'
import { test } from 'tap'
import { projections } from '../src/index.js'
import { definitionOf as definitionText } from '../src/project/generations.js'
import type { Projection } from '../src/project/projection.js'
import { readDefinitions, readPointers } from '../src/store/generation.js'
import {
  changedDefinitions,
  definedTables,
  definitionOf,
  migrate,
  migrationOf,
  readMigrations,
  statementsOf
} from '../src/store/migrate.js'
import { storeOver } from '../src/store/operation.js'
import { createTable } from '../src/store/table.js'
import type { Tables } from '../src/store/tables.js'
import { resetOldParts, shortenOldParts } from '../src/store/user-rows.js'
import { around } from './around.js'

const SCHEMA = new URL('../../schema.sql', import.meta.url)

test('migrations', async (t) => {
  const engine = await openChdb({ path: t.testdir() })
  t.teardown(() => engine.close())
  const tables = engine.control
  const calls = async (work: (tables: Tables) => Promise<unknown>, failAt = Number.POSITIVE_INFINITY) => {
    const executed: string[] = []
    const spy: Tables = {
      rows: (sql, parameters) => tables.rows(sql, parameters),
      json: (sql, parameters) => tables.json(sql, parameters),
      insert: (table, columns, body) => tables.insert(table, columns, body),
      execute: async (sql, parameters) => {
        if (executed.length === failAt) throw new Error('the process died')
        await tables.execute(sql, parameters)
        executed.push(sql)
      }
    }
    await work(spy).catch((error: Error) => t.equal(error.message, 'the process died'))
    return executed.length
  }

  await t.test(
    'after a crash at any statement the next run completes the migration, and a third run does nothing',
    async (t) => {
      const migrations = await readMigrations()
      const statements = migrations.flatMap((migration) => migration.statements).length
      t.ok(statements > 10)
      for (let failAt = 1; failAt <= statements; failAt += 3) await calls((spy) => migrate(spy), failAt)
      await migrate(tables)
      for (const lost of ['1', "name >= '0021'", "name < '0014'"]) {
        await tables.execute(`DELETE FROM schema_migration WHERE ${lost}`)
        await migrate(tables)
        t.same(await changedDefinitions(tables), [], `rows of the record are lost: ${lost}`)
      }
      await migrate(tables)
      t.equal(await calls((spy) => migrate(spy)), 1, 'only the table of migrations is asked for')
      t.same(await migrate(tables), [])
    }
  )

  await t.test('schema.sql equals the tables that the migrations create', async (t) => {
    const parts: string[] = []
    for (const name of await definedTables(tables)) parts.push(await definitionOf(tables, name))
    const schema = parts.join('\n')
    if (process.env.REFRESH_SCHEMA === '1') await writeFile(SCHEMA, schema)
    t.equal(
      await readFile(SCHEMA, 'utf8').catch(() => ''),
      schema,
      'projector/schema.sql is not what the migrations make; REFRESH_SCHEMA=1 npm test -- migrate.test writes it again; the next run passes'
    )
  })

  await t.test(
    'a table is not reported as changed while a user is erased from it, or when it is dropped',
    async (t) => {
      const store = storeOver(tables)
      const names = await definedTables(tables)
      const shortened = names.filter((name) => /__0$/.test(name))
      for (const name of shortened) await store.do(shortenOldParts, name)
      t.same(await changedDefinitions(tables), [])
      for (const name of shortened) await store.do(resetOldParts, name)
      await tables.execute('CREATE TABLE title__9 AS title__0')
      const dropping: Pick<Tables, 'rows'> = {
        rows: async (sql, parameters) => {
          if (sql === 'SHOW CREATE TABLE title__9') await tables.execute('DROP TABLE title__9 SYNC')
          return await tables.rows(sql, parameters)
        }
      }
      t.same(await changedDefinitions(dropping), [])
    }
  )

  await t.test('a missing table is refused, and a changed one is reported', async (t) => {
    t.same(await changedDefinitions(tables), [])
    await tables.execute('CREATE TABLE parked_message__1 AS parked_message')
    t.same(await changedDefinitions(tables), [], 'a rebuild from the log has dead letters of its own')
    await tables.execute('DROP TABLE parked_message__1 SYNC')
    await tables.execute("ALTER TABLE title__0 MODIFY COMMENT 'changed'")
    t.same(await changedDefinitions(tables), ['title__0'])
    await tables.execute("ALTER TABLE title__0 MODIFY COMMENT ''")
    await tables.execute('RENAME TABLE event_title__0 TO gone')
    await t.rejects(migrate(tables), /^event_title__0 of the tables are missing, although they were created/)
    await tables.execute('RENAME TABLE gone TO event_title__0')
    await tables.execute('RENAME TABLE title__0 TO title__3, generation_pointer TO gone')
    await t.rejects(migrate(tables), /^generation_pointer of the tables are missing/, 'generations are unknown')
    await tables.execute('RENAME TABLE title__3 TO title__0, gone TO generation_pointer')
    t.same(await migrate(tables), [])
  })

  await t.test('boards are projected again for instants that their rows lack, and no other table is', async (t) => {
    const names = ['project:leaderboard-entry', 'project:player', 'project:player-entry']
    const rows = names.map((name) => `${JSON.stringify([name, 1, 0, 7])}\n`).join('')
    await tables.insert('checkpoint', ['name', 'epoch', 'partition', 'next'], new TextEncoder().encode(rows))
    const migration = (await readMigrations()).find(({ name }) => name === '0014-rank-reached')
    const own = (migration?.statements ?? []).filter((statement) => !statement.startsWith('ALTER TABLE'))
    for (const statement of own) await tables.execute(statement)
    t.same(await tables.rows('SELECT c.name AS name FROM checkpoint AS c'), [{ name: 'project:player' }])
    await tables.execute('TRUNCATE TABLE checkpoint')
  })

  await t.test('an applied migration that was changed is refused by name; a changed comment is not', async (t) => {
    const migrations = await readMigrations()
    const [first] = migrations
    if (first === undefined) throw new Error('there are no migrations')
    const changed = migrationOf(first.name, 'CREATE TABLE IF NOT EXISTS other (a UInt8) ENGINE = Memory')
    await t.rejects(migrate(tables, [changed, ...migrations.slice(1)]), {
      message: new RegExp(`^Migration ${first.name} was applied with checksum .* put the change into a new one\\.$`)
    })
    const a = migrationOf('a', '-- before; with a semicolon\nSELECT 1;\n')
    t.equal(migrationOf('a', '-- after\nSELECT   1').checksum, a.checksum)
  })

  await t.test('tables of a newer program are refused with a sentence', async (t) => {
    const migrations = await readMigrations()
    await t.rejects(migrate(tables, migrations.slice(0, -1)), {
      message:
        /^The tables were created by a newer program: they have the migrations 0\d+-[a-z-]+, and this program knows/
    })
  })
})

test('tables with bare names become first generations, with their statements and without rebuilds under way', async (t) => {
  const engine = await openChdb({ path: t.testdir() })
  t.teardown(() => engine.close())
  const tables = engine.control
  const former = (await readMigrations()).filter(({ name }) => name < '0021')
  await migrate(tables, former)
  await tables.execute(
    "INSERT INTO title_count (title_id, ts, online, position) VALUES ('4d530064', '2026-03-14', 7, 1)"
  )
  const hour = projections.find(({ name }) => name === 'title-count-hour') as Projection
  const bare = definitionText(hour).replaceAll(/\{(\w+): Identifier\}/g, '$1')
  t.notMatch(bare, 'Identifier')
  await tables.execute(`INSERT INTO projection_definition VALUES ('title-count-hour', {bare: String}, 5)`, { bare })
  const record = (state: string) => JSON.stringify({ id: 1, state, exchange: null, version: 3 })
  const store = async (id: number, state: string) =>
    await tables.execute('INSERT INTO rebuild VALUES ({id: UInt32}, {record: String}, 3)', {
      id,
      record: record(state)
    })
  for (const [n, state] of ['filling', 'filled', 'swapped', 'dropped', 'swapping'].entries()) await store(n, state)
  await t.rejects(migrate(tables), /A swap of rebuilt tables was interrupted. Start the former version once/)
  await tables.execute('ALTER TABLE rebuild DELETE WHERE id = 4')
  await migrate(tables)
  const states = (
    await tables.rows('SELECT argMax(r.record, r.version) AS record FROM rebuild AS r GROUP BY r.id ORDER BY r.id')
  ).map((row) => JSON.parse(String(row.record)))
  t.match(states, [
    { state: 'cancelled', version: 4 },
    { state: 'cancelled', version: 4 },
    { state: 'dropped', version: 4 },
    { state: 'dropped', version: 3 }
  ])
  const [stored] = await storeOver(tables).do(readDefinitions)
  t.match(stored, { projection: 'title-count-hour', generation: 0, definition: definitionText(hour) })
  t.same(await tables.rows('SELECT c.online FROM title_count__0 AS c'), [{ online: 7 }])
  t.same(await tables.rows('SELECT c.online FROM title_count AS c FINAL'), [{ online: 7 }], 'a view for people')
})

/** What every record of a rebuild has. */
const RECORD = {
  ...{ projection: 'entry-time', tables: {}, helpers: {}, definitions: {}, until: null, isFromLog: false },
  ...{ reason: null, retracts: null, startedAt: '', changedAt: '', target: {}, events: {}, costs: {} },
  ...{ verification: null, version: 3 }
}

test('all generations of a dropped table are dropped, with rebuilds of it', async (t) => {
  const engine = await openChdb({ path: t.testdir() })
  t.teardown(() => engine.close())
  const tables = engine.control
  const migrations = await readMigrations()
  await migrate(
    tables,
    migrations.filter(({ name }) => name < '0026')
  )
  await tables.execute('CREATE TABLE entry_time__3 AS entry_time__0')
  await tables.execute("INSERT INTO generation_pointer VALUES ('project:entry-time', ['entry_time'], 3, 3, 1, 1)")
  const store = async (id: number, state: string, ...unit: string[]) =>
    await tables.execute('INSERT INTO rebuild VALUES ({id: UInt32}, {record: String}, 3)', {
      id,
      record: JSON.stringify({ ...RECORD, id, state, unit })
    })
  await store(1, 'filling', 'player')
  await store(2, 'filling', 'leaderboard-history', 'entry-time')
  await store(3, 'swapped', 'entry-time')
  await store(4, 'swapping', 'entry-time')
  await store(5, 'filled', 'leaderboard-entry', 'player-entry')
  await t.rejects(migrate(tables), /A swap of rebuilt tables was interrupted. Start the former version once/)
  await tables.execute('ALTER TABLE rebuild DELETE WHERE id = 4')
  await migrate(tables)
  const states = await tables.rows(
    "SELECT JSONExtractString(argMax(r.record, r.version), 'state') AS state FROM rebuild AS r GROUP BY r.id ORDER BY r.id"
  )
  t.same(states, [{ state: 'filling' }, { state: 'cancelled' }, { state: 'dropped' }, { state: 'cancelled' }])
  t.same(await tables.rows("SELECT t.name FROM system.tables AS t WHERE startsWith(t.name, 'entry_time')"), [])
  t.notOk((await storeOver(tables).do(readPointers)).serving.nameOf('entry_time').includes('3'), 'no pointer names it')
  t.same(await migrate(tables), [])
})

test('a change of a table is a change of each of its generations', async (t) => {
  const engine = await openChdb({ path: t.testdir() })
  t.teardown(() => engine.close())
  const tables = engine.control
  const migrations = await readMigrations()
  await migrate(tables)
  await tables.execute('CREATE TABLE title_count__7 AS title_count__0')
  const change = migrationOf('9999-more', 'ALTER TABLE title_count__* ADD COLUMN IF NOT EXISTS more UInt8')
  await migrate(tables, [...migrations, change])
  for (const name of ['title_count__0', 'title_count__7', 'title_count'])
    t.same(await tables.rows(`SELECT c.more FROM ${name} AS c`), [], name)

  const other = migrationOf('9999-other', 'ALTER TABLE title_count__* ADD COLUMN IF NOT EXISTS other UInt8')
  const raced = around(tables, async (work, what) => {
    if (what.startsWith('ALTER TABLE title_count__0'))
      await tables.execute('CREATE TABLE IF NOT EXISTS title_count__8 AS title_count__0')
    if (what.startsWith('ALTER TABLE title_count__7')) await tables.execute('DROP TABLE title_count__7')
    return await work()
  })
  await migrate(raced, [...migrations, change, other])
  t.same(await tables.rows('SELECT c.other FROM title_count__8 AS c'), [], 'also of one that a rebuild makes meanwhile')

  const late = around(tables, async (work, what) => {
    const done = await work()
    if (what.startsWith('CREATE TABLE')) await tables.execute('ALTER TABLE title_count__0 ADD COLUMN late UInt8')
    return done
  })
  await t.rejects(
    storeOver(late).do(createTable, 'title_count__9', 'title_count__0'),
    /changed columns of title_count__0 \(late\) while title_count__9/,
    'one that is visible after the last list is refused'
  )
})

test('statements are cut at semicolons outside quotes, and comments are left out', async (t) => {
  t.same(statementsOf("SELECT ';--' -- one; two\n, 'it''s';\n\n-- nothing\nSELECT `a;b`, 5 - 3;"), [
    "SELECT ';--' , 'it''s'",
    'SELECT `a;b`, 5 - 3'
  ])
})
