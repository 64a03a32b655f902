import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { openPglite } from '../src/index.js'
import { showsWholeTable } from '../src/postgres/btree-pages.js'

const PAGE_BYTES = 8192

test('an index shows whether its table or the index was cut, also when a byte of it is damaged', async (t) => {
  const dir = t.testdir({})
  const postgres = await openPglite({ dir })
  t.teardown(() => postgres.close())
  await postgres.script(
    `CREATE TABLE kept (n integer PRIMARY KEY, word text, few integer);
     INSERT INTO kept SELECT n, md5(n::text), n % 3 FROM generate_series(1, 20000) AS n;
     CREATE INDEX by_word ON kept (word); CREATE INDEX by_few ON kept (few);
     CREATE TABLE empty (n integer PRIMARY KEY); CHECKPOINT`
  )
  const read = async (name: string) => {
    const [row] = await postgres.query<{ file: string }>('SELECT pg_relation_filepath($1::regclass) AS file', [name])
    return readFileSync(join(dir, row?.file ?? ''))
  }
  const pages = (await read('kept')).length / PAGE_BYTES
  const half = PAGE_BYTES * 1.5
  for (const name of ['kept_pkey', 'by_word', 'by_few']) {
    const bytes = await read(name)
    const shown = () => [pages, pages - 1, pages / 2].map((each) => showsWholeTable(bytes, each))
    t.same(shown(), [true, false, false], name)
    t.notOk(showsWholeTable(bytes.subarray(0, -PAGE_BYTES), pages), `${name}, cut`)
    t.notOk(showsWholeTable(bytes.subarray(0, 2 * PAGE_BYTES), pages), `${name}, cut`)
    for (let bit = 0; bit < 256; bit += 1) {
      const at = half + Math.floor(bit / 8)
      bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << (bit % 8)), at)
      t.same(shown(), [true, false, false], `${name}, bit ${bit}`)
      bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << (bit % 8)), at)
    }
    bytes.writeUInt16LE(0, PAGE_BYTES + 16)
    t.notOk(showsWholeTable(bytes, pages), `${name} may hide references`)
  }
  t.ok(showsWholeTable(await read('empty_pkey'), 0))
})
