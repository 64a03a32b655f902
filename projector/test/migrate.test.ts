import { readFile, writeFile } from 'node:fs/promises'
import { sharedClickHouse } from '@gamenet/engines/testing'
import { test } from 'tap'
import {
  bareName,
  changedDefinitions,
  migrateSchema,
  migrationOf,
  readDefinitions,
  readMigrations,
  statementsOf
} from '../src/migrate/migrate-schema.js'
import { storeOver } from '../src/store/operation.js'
import { createTable } from '../src/store/table.js'
import type { Tables } from '../src/store/tables.js'
import { resetOldParts, shortenOldParts } from '../src/store/user-rows.js'
import { around } from './around.js'

const DEFINITIONS = new URL('../../definitions.json', import.meta.url)

test('migrations', async (t) => {
  const engine = await sharedClickHouse(t)
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
      for (let failAt = 1; failAt <= statements; failAt += 3) await calls((spy) => migrateSchema(spy), failAt)
      await migrateSchema(tables)
      await tables.execute('DELETE FROM schema_migration WHERE 1')
      await migrateSchema(tables)
      t.same(await changedDefinitions(tables), [], 'the rows of the record are lost')
      t.equal(await calls((spy) => migrateSchema(spy)), 1, 'only the table of migrations is asked for')
      t.same(await migrateSchema(tables), [])
    }
  )

  await t.test('definitions.json has what the migrations create', async (t) => {
    const hashes = [...(await readDefinitions(tables))].map(([name, hash]) => [bareName(name), hash])
    const definitions = `${JSON.stringify(Object.fromEntries(hashes), null, 2)}\n`
    if (process.env.REFRESH_SCHEMA === '1') await writeFile(DEFINITIONS, definitions)
    t.equal(
      await readFile(DEFINITIONS, 'utf8').catch(() => ''),
      definitions,
      'projector/definitions.json is not what the migrations make; REFRESH_SCHEMA=1 npm test -- migrate.test writes it again; the next run passes'
    )
  })

  await t.test(
    'a table is not reported as changed while a user is erased from it, or when it is dropped',
    async (t) => {
      const store = storeOver(tables)
      const shortened = [...(await readDefinitions(tables)).keys()].filter((name) => /__0$/.test(name))
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
      const unreadable: Pick<Tables, 'rows'> = {
        rows: (sql, parameters) => tables.rows(sql.replace(/^SHOW CREATE TABLE title__0$/, 'no statement'), parameters)
      }
      t.same(await changedDefinitions(unreadable), ['title__0'], 'a definition that cannot be read')
    }
  )

  await t.test('a missing table is refused, and a changed one is reported', async (t) => {
    t.same(await changedDefinitions(tables), [])
    await tables.execute('CREATE TABLE dead_letter__1 AS dead_letter')
    t.same(await changedDefinitions(tables), [], 'a rebuild from the log has dead letters of its own')
    await tables.execute('DROP TABLE dead_letter__1 SYNC')
    await tables.execute("ALTER TABLE title__0 MODIFY COMMENT 'changed'")
    t.same(await changedDefinitions(tables), ['title__0'])
    await tables.execute("ALTER TABLE title__0 MODIFY COMMENT ''")
    await tables.execute('RENAME TABLE event_title__0 TO gone')
    await t.rejects(migrateSchema(tables), /^event_title__0 of the tables are missing, although they were created/)
    await tables.execute('RENAME TABLE gone TO event_title__0')
    await tables.execute('RENAME TABLE title__0 TO title__3, generation_pointer TO gone')
    await t.rejects(migrateSchema(tables), /^generation_pointer of the tables are missing/, 'generations are unknown')
    await tables.execute('RENAME TABLE title__3 TO title__0, gone TO generation_pointer')
    t.same(await migrateSchema(tables), [])
  })

  await t.test('an applied migration that was changed is refused by name; a changed comment is not', async (t) => {
    const migrations = await readMigrations()
    const [first] = migrations
    if (first === undefined) throw new Error('there are no migrations')
    const changed = migrationOf(first.name, 'CREATE TABLE IF NOT EXISTS other (a UInt8) ENGINE = Memory')
    await t.rejects(migrateSchema(tables, [changed, ...migrations.slice(1)]), {
      message: new RegExp(`^Migration ${first.name} was applied with checksum .* put the change into a new one\\.$`)
    })
    const a = migrationOf('a', '-- before; with a semicolon\nSELECT 1;\n')
    t.equal(migrationOf('a', '-- after\nSELECT   1').checksum, a.checksum)
  })

  await t.test('tables of a newer program are refused with a sentence', async (t) => {
    const migrations = await readMigrations()
    await t.rejects(migrateSchema(tables, migrations.slice(0, -1)), {
      message:
        /^The tables were created by a newer program: they have the migrations 0\d+-[a-z-]+, and this program knows/
    })
  })
})

test('all generations of a dropped table are dropped', async (t) => {
  const engine = await sharedClickHouse(t)
  const tables = engine.control
  const migrations = await readMigrations()
  await migrateSchema(tables)
  await tables.execute('CREATE TABLE title_count__7 AS title_count__0')
  const drop = [
    migrationOf('9999-view', 'DROP VIEW IF EXISTS title_count'),
    migrationOf('9999-without', 'DROP TABLE IF EXISTS title_count__* SYNC')
  ]
  t.same(await migrateSchema(tables, [...migrations, ...drop]), ['9999-view', '9999-without'])
  t.same(
    await tables.rows(
      "SELECT t.name FROM system.tables AS t WHERE t.database = currentDatabase() AND match(t.name, '^title_count(__.*)?$')"
    ),
    []
  )
})

test('a change of a table is a change of each of its generations', async (t) => {
  const engine = await sharedClickHouse(t)
  const tables = engine.control
  const migrations = await readMigrations()
  await migrateSchema(tables)
  await tables.execute('CREATE TABLE title_count__7 AS title_count__0')
  const change = migrationOf('9999-more', 'ALTER TABLE title_count__* ADD COLUMN IF NOT EXISTS more UInt8')
  await migrateSchema(tables, [...migrations, change])
  for (const name of ['title_count__0', 'title_count__7', 'title_count'])
    t.same(await tables.rows(`SELECT c.more FROM ${name} AS c`), [], name)

  const other = migrationOf('9999-other', 'ALTER TABLE title_count__* ADD COLUMN IF NOT EXISTS other UInt8')
  const raced = around(tables, async (work, what) => {
    if (what.startsWith('ALTER TABLE title_count__0'))
      await tables.execute('CREATE TABLE IF NOT EXISTS title_count__8 AS title_count__0')
    if (what.startsWith('ALTER TABLE title_count__7')) await tables.execute('DROP TABLE title_count__7')
    return await work()
  })
  await migrateSchema(raced, [...migrations, change, other])
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

test('columns that several tables have are written once', async (t) => {
  t.same(
    statementsOf('COLUMNS place\n  a UInt8,\n  b UInt8;\nCREATE TABLE x ({place}, c UInt8); SELECT {d: UInt8}, {e}'),
    ['CREATE TABLE x (a UInt8, b UInt8, c UInt8)', 'SELECT {d: UInt8}, {e}']
  )
})
