import { readFile, writeFile } from 'node:fs/promises'
import { openChdb } from '@gamenet/engines'
import { test } from 'tap'
import {
  changedDefinitions,
  definitionOf,
  migrate,
  migrationOf,
  readMigrations,
  statementsOf
} from '../src/store/migrate.js'
import type { Tables } from '../src/store/tables.js'

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

  await t.test('a crash after any statement is made good by the next run, and a third run does nothing', async (t) => {
    const migrations = await readMigrations()
    const statements = migrations.flatMap((migration) => migration.statements).length
    t.ok(statements > 10)
    for (let failAt = 1; failAt <= statements; failAt += 3) await calls((spy) => migrate(spy), failAt)
    await migrate(tables)
    t.equal(await calls((spy) => migrate(spy)), 1, 'only the table of migrations is asked for')
    t.same(await migrate(tables), [])
  })

  await t.test('schema.sql is what the migrations make', async (t) => {
    const names = await tables.rows(
      'SELECT t.name AS name FROM system.tables AS t WHERE t.database = currentDatabase() ORDER BY t.name'
    )
    const parts: string[] = []
    for (const { name } of names) {
      parts.push(await definitionOf(tables, String(name)))
    }
    const schema = parts.join('\n')
    if (process.env.REFRESH_SCHEMA === '1') await writeFile(SCHEMA, schema)
    t.equal(
      await readFile(SCHEMA, 'utf8').catch(() => ''),
      schema,
      'projector/schema.sql is not what the migrations make; REFRESH_SCHEMA=1 npx tap projector/dist/test/migrate.test.js writes it again'
    )
  })

  await t.test('a table that is missing is refused, and one that is changed is told', async (t) => {
    t.same(await changedDefinitions(tables), [])
    await tables.execute("ALTER TABLE title MODIFY COMMENT 'changed'")
    t.same(await changedDefinitions(tables), ['title'])
    await tables.execute("ALTER TABLE title MODIFY COMMENT ''")
    await tables.execute('RENAME TABLE event_title TO gone')
    await t.rejects(migrate(tables), /^event_title of the tables are missing, though they were made/)
    await tables.execute('RENAME TABLE gone TO event_title')
    t.same(await migrate(tables), [])
  })

  await t.test(
    'boards get instants that their rows never had by being projected again, and nothing else is',
    async (t) => {
      const names = ['project:leaderboard-entry', 'project:player', 'project:player-entry']
      const rows = names.map((name) => `${JSON.stringify([name, 1, 0, 7])}\n`).join('')
      await tables.insert('checkpoint', ['name', 'epoch', 'partition', 'next'], new TextEncoder().encode(rows))
      const migration = (await readMigrations()).find(({ name }) => name === '0014-rank-reached')
      for (const statement of migration?.statements ?? []) await tables.execute(statement)
      t.same(await tables.rows('SELECT c.name AS name FROM checkpoint AS c'), [{ name: 'project:player' }])
      await tables.execute('TRUNCATE TABLE checkpoint')
    }
  )

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

  await t.test('tables that a newer program made are refused with a sentence', async (t) => {
    const migrations = await readMigrations()
    await t.rejects(migrate(tables, migrations.slice(0, -1)), {
      message: /^The tables were made by a newer program: they have the migrations 0\d+-[a-z-]+, and this program knows/
    })
  })
})

test('statements are cut at semicolons outside quotes, and comments are left out', async (t) => {
  t.same(statementsOf("SELECT ';--' -- one; two\n, 'it''s';\n\n-- nothing\nSELECT `a;b`, 5 - 3;"), [
    "SELECT ';--' , 'it''s'",
    'SELECT `a;b`, 5 - 3'
  ])
})
