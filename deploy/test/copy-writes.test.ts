import { join } from 'node:path'
import { migratePostgres, openPglite } from '@gamenet/engines'
import { test } from 'tap'
import { copyWrites, MOVED } from '../src/operate/restore/copy-writes.js'

/** Tables whose rows belong to the log that is left behind, or to one start. */
const LEFT = [
  'accepted_older',
  'achievement_evaluation',
  'achievement_day',
  'board_lease',
  'schema_migration',
  'work_lease'
]

test('the write side is copied whole into an empty database, and into no other', async (t) => {
  const folder = t.testdir({})
  const from = await openPglite({ dir: join(folder, 'from') })
  const to = await openPglite({ dir: join(folder, 'to') })
  t.teardown(() => Promise.all([from.close(), to.close()]))
  await migratePostgres(from)
  const tables = await from.query(`SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY name`)
  t.same(
    tables.map(({ name }) => name),
    [...MOVED, ...LEFT].sort(),
    'each table is moved or left'
  )
  await from.script(`
    INSERT INTO person (user_key, seal_key) SELECT 'user ' || n, decode(md5(n::text), 'hex') FROM generate_series(1, 12000) AS n;
    DELETE FROM person WHERE id > 11990;
    INSERT INTO erasure VALUES ('\\x00ff', '{9007199254740993}', '2026-03-01T00:00:00.123456Z', NULL, NULL);
    INSERT INTO rating VALUES ('ann', 'ben', 'Ann', 'Ben', 5, E'a "quote", \\\\ and \\n', now(), 9007199254740993);
    INSERT INTO profile (user_key, username, bio, revision, changed_at) VALUES ('ann', 'Ann', '😀 شعار', nextval('revision'), now());
    INSERT INTO outbox (topic, people, event) VALUES ('profile', '{ann}', '{"id": 9007199254740993}')`)
  t.equal(await copyWrites(from, to), 11_990 + 5)
  for (const table of MOVED) {
    const rows = `SELECT md5(string_agg(t::text, ' ' ORDER BY t::text)) AS hash, count(*) AS rows FROM ${table} AS t`
    t.same(await to.query(rows), await from.query(rows), table)
  }
  const next = async (postgres: typeof from) => {
    const [row] = await postgres.query(
      `INSERT INTO person (user_key, seal_key) VALUES ('new', '') RETURNING id, nextval('revision') AS revision`
    )
    return row
  }
  t.same(await next(to), await next(from), 'numbers continue where they were')
  await t.rejects(copyWrites(from, to), { message: /has rows in person.*Create another database/ })
})
