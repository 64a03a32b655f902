import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { emptiedPages } from '../src/postgres/emptied-pages.js'
import { PAGE_BYTES } from '../src/postgres/page-checksums.js'
import { openPglite } from '../src/postgres/pglite.js'

test('a page of zeros is emptied if an index refers to it, also one of lists of rows', async (t) => {
  const directory = t.testdir({})
  const writes = await openPglite({ dir: directory })
  await writes.script(
    `CREATE TABLE one (word text); CREATE INDEX one_word ON one (word);
     INSERT INTO one SELECT repeat('x', n % 7) FROM generate_series(1, 3000) AS n`
  )
  const [paths] = await writes.query<{ table: string; index: string }>(
    `SELECT pg_relation_filepath('one') AS table, pg_relation_filepath('one_word') AS index`
  )
  const { table = '', index = '' } = paths ?? {}
  await writes.close()
  const bytes = readFileSync(join(directory, table))
  const added = bytes.length / PAGE_BYTES
  writeFileSync(
    join(directory, table),
    Buffer.concat([bytes.fill(0, 2 * PAGE_BYTES, 4 * PAGE_BYTES), Buffer.alloc(PAGE_BYTES)])
  )
  t.ok(added > 4)
  t.same(emptiedPages(directory, table, [index]), [2, 3])
  t.same(emptiedPages(directory, table, []), [])
})
