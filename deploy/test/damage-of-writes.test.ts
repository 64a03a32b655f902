import { cpSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openPglite, type Postgres } from '@gamenet/engines'
import { Refusal } from '@gamenet/schemas'
import { test } from 'tap'
import { damageOfWrites } from '../src/operate/verify/damage-of-writes.js'
import { flipMiddle } from './service/damaged-files.js'

const PAGE_BYTES = 8192
const RESTORE = /^stop the service and restore the newest backup: gamenet restore DIR/

test('damaged and lacking pages of tables and indexes of the write side are found once', async (t) => {
  const directory = t.testdir({})
  const first = await openPglite({ dir: directory })
  for (const table of ['one', 'two'])
    await first.script(
      `CREATE TABLE ${table} (n integer PRIMARY KEY, word text);
       INSERT INTO ${table} SELECT n, md5(n::text) FROM generate_series(1, 5000) AS n`
    )
  await first.script("CREATE INDEX two_word ON two (word); CREATE SEQUENCE numbers; SELECT nextval('numbers')")
  const rows = await first.query<{ name: string; file: string }>(
    `SELECT c.relname AS name, pg_relation_filepath(c.oid) AS file FROM pg_class AS c WHERE c.relnamespace = 'public'::regnamespace`
  )
  await first.close()
  const pathOf = (name: string) => join(directory, rows.find((row) => row.name === name)?.file ?? '')
  const whole = `${directory}-whole`
  cpSync(directory, whole, { recursive: true })
  t.teardown(() => rmSync(whole, { recursive: true }))
  const cutLastPage = (name: string) => truncateSync(pathOf(name), statSync(pathOf(name)).size - PAGE_BYTES)
  const zeroPage = (name: string, page: number) =>
    writeFileSync(pathOf(name), readFileSync(pathOf(name)).fill(0, page * PAGE_BYTES, (page + 1) * PAGE_BYTES))
  const finding = (name: string) => ({
    ...{ part: 'writes', repair: RESTORE },
    what: new RegExp(`^public.${name} of the write side cannot be read: `)
  })
  // Each of these starts PostgreSQL, so independent damages share one.
  for (const [title, damage, findings] of [
    ['nothing', () => [], []],
    [
      'a changed bit of a table, of an index, and a deleted sequence',
      () => [flipMiddle(pathOf('one')), flipMiddle(pathOf('two_word')), rmSync(pathOf('numbers'))],
      ['numbers', 'one', 'two_word']
    ],
    [
      'a table that was cut between two pages; an index with a page of zeros',
      () => [cutLastPage('one'), zeroPage('two_pkey', 3)],
      ['one_pkey', 'two_pkey']
    ],
    ['a deleted table', () => [rmSync(pathOf('two'))], ['two']]
  ] as const) {
    rmSync(directory, { recursive: true })
    cpSync(whole, directory, { recursive: true })
    await Promise.all(damage())
    const writes = await openPglite({ dir: directory })
    try {
      const found = await damageOfWrites(writes, true)
      t.match(found, findings.map(finding), title)
      t.equal(found.length, findings.length, title)
    } finally {
      await writes.close()
    }
  }
})

test('a full disk is not damage of the write side', async (t) => {
  const relation = { oid: 1, name: 'public.one', kind: 'r', table: 'public.one', keys: null, check: null }
  const full = {
    script: async () => undefined,
    query: async (sql: string) => {
      if (sql.includes('FROM pg_class')) return [relation]
      throw new Refusal('disk_full', ['PostgreSQL'])
    }
  }
  await t.rejects(damageOfWrites(full as unknown as Postgres, true), { code: 'disk_full' })
})
