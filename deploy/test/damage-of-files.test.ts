import { appendFileSync, cpSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { revisionFiles, unusableNames } from '@gamenet/api'
import { openPglite } from '@gamenet/engines'
import { checkPages, emptiedPages } from '@gamenet/engines/log'
import { Refusal, withChecksum } from '@gamenet/schemas'
import { test } from 'tap'
import { withCheckThread } from '../src/operations/check-files.js'
import { damageOfWrites } from '../src/operations/damage-of-writes.js'
import { damageOfDatasets } from '../src/operations/find-damage.js'
import { flipMiddle } from './service/damaged-files.js'

const PAGE_BYTES = 8192
const RESTORE = /^stop the service and restore the newest backup: gamenet restore DIR/

test('an index of the write side is rebuilt unless it was cut and nothing else shows whether its table has all rows', async (t) => {
  const directory = t.testdir({})
  const first = await openPglite({ dir: directory })
  for (const table of ['one', 'two']) {
    await first.script(
      `CREATE TABLE ${table} (n integer PRIMARY KEY, word text);
       INSERT INTO ${table} SELECT n, md5(n::text) FROM generate_series(1, 5000) AS n`
    )
  }
  await first.script("CREATE INDEX two_word ON two (word); CREATE SEQUENCE numbers; SELECT nextval('numbers')")
  const rows = await first.query<{ name: string; file: string }>(
    `SELECT c.relname AS name, pg_relation_filepath(c.oid) AS file FROM pg_class AS c WHERE c.relnamespace = 'public'::regnamespace`
  )
  await first.close()
  const fileOf = (name: string) => rows.find((row) => row.name === name)?.file ?? ''
  const whole = `${directory}-whole`
  const copy = (from: string, to: string) => {
    rmSync(to, { recursive: true, force: true })
    cpSync(from, to, { recursive: true })
  }
  copy(directory, whole)
  t.teardown(() => rmSync(whole, { recursive: true }))
  const found = async (repair: boolean, { acceptLoss = false, isUnreadable = false, isFull = false } = {}) => {
    const writes = await openPglite({ dir: directory })
    const pages = await checkPages(directory, async () => undefined)
    const emptied = async (file: string, indexes: readonly string[]) => {
      if (isFull) throw new Refusal('disk_full')
      return emptiedPages(isUnreadable ? `${directory}\0` : directory, file, indexes)
    }
    try {
      return await damageOfWrites({ writes, files: { ...pages, emptied }, repair, acceptLoss })
    } finally {
      await writes.close()
    }
  }
  const rebuilt = (name: string, what = 'are damaged') => ({
    what: new RegExp(`writes/${fileOf(name)} \\(public.${name}\\) ${what}`),
    repaired: 'the index was rebuilt from its table'
  })
  const lost = (name: string, what = 'are damaged') => ({
    what: new RegExp(`writes/${fileOf(name)} \\(public.${name}\\) ${what}`),
    repair: RESTORE,
    repaired: undefined
  })

  // Each of these starts PostgreSQL twice, so independent damages share one.
  for (const [title, damage, findings, left] of [
    [
      'an index with a changed bit; one of two indexes that was cut; a deleted sequence',
      () => [flipMiddle(join(directory, fileOf('one_pkey'))), halvePages('two_pkey'), remove('numbers')],
      [
        lost('one_pkey'),
        rebuilt('two_pkey'),
        { what: /^public.numbers of the write side cannot be read: could not open file/ }
      ],
      [lost('one_pkey'), { what: /^public.numbers of the write side/, repair: RESTORE }]
    ],
    [
      'a changed bit in the only index of a table, which was cut behind the rows of the index before the bit',
      () => [flipMiddle(join(directory, fileOf('one_pkey'))), cutLastPage('one')],
      [lost('one_pkey')],
      [lost('one_pkey')]
    ],
    [
      'the only index, cut; one of two indexes and its table, cut',
      () => [halvePages('one_pkey'), halvePages('two_pkey'), halvePages('two')],
      [lost('one_pkey'), lost('two_pkey'), lost('two')],
      [lost('one_pkey'), lost('two_pkey'), lost('two')]
    ],
    [
      'a deleted table; one of two indexes that was deleted',
      () => [remove('one'), remove('two_pkey')],
      [lost('one', 'is missing'), rebuilt('two_pkey', 'is missing')],
      [lost('one', 'is missing')]
    ],
    [
      'an index that was cut within a page, and its table, cut',
      () => [cutWithin('one_pkey'), halvePages('one')],
      [lost('one_pkey')],
      [lost('one_pkey')]
    ],
    [
      'an index and its table, cut',
      () => [halvePages('one_pkey'), halvePages('one')],
      [lost('one_pkey')],
      [lost('one_pkey')]
    ],
    [
      'zeros in a page of a table, of a table and its index, and of a sequence',
      () => [zeroPage('one', 3), zeroPage('two', 5), zeroPage('two_word', 2), zeroPage('numbers', 0)],
      [lost('one'), lost('two'), lost('two_word'), { what: /^public.numbers of the write side/ }],
      [lost('one'), lost('two'), lost('two_word'), { what: /^public.numbers of the write side/ }]
    ],
    [
      'zeros in a page of a table and in that of its only index which refers to it; in all pages of a table and its indexes',
      () => [
        zeroPage('one', 1),
        zeroPage('one_pkey', 1),
        ...['two', 'two_pkey', 'two_word'].map((name) => zeroFile(name))
      ],
      [lost('one_pkey'), lost('two_pkey'), { what: /^public.two of the write side cannot be read/, repair: RESTORE }],
      [lost('one_pkey'), lost('two_pkey'), { what: /^public.two of the write side cannot be read/, repair: RESTORE }]
    ],
    [
      'zeros in a page of an index; a page that was added to a table and not written',
      () => [zeroPage('two_word', 4), addPage('one')],
      [rebuilt('two_word')],
      []
    ]
  ] as const) {
    copy(whole, directory)
    await Promise.all(damage())
    const seen = await found(true)
    t.match(seen, findings, title)
    t.equal(seen.length, findings.length, title)
    const after = await found(false)
    t.match(after, left, `${title}: afterwards`)
    t.equal(after.length, left.length, title)
  }
  copy(whole, directory)
  cutLastPage('one')
  await flipMiddle(join(directory, fileOf('one_pkey')))
  t.match(await found(true, { acceptLoss: true }), [
    { repaired: 'the index was rebuilt from the rows that its table has' }
  ])
  t.same(await found(false), [])
  zeroPage('two', 5)
  zeroPage('two_word', 2)
  t.match(await found(false, { isUnreadable: true }), [
    { what: /^pages of zeros of the write side cannot be compared with its indexes: / },
    lost('two_word')
  ])
  await t.rejects(found(false, { isFull: true }), { code: 'disk_full' }, 'a full disk is not damage')

  function halvePages(name: string): void {
    const path = join(directory, fileOf(name))
    truncateSync(path, Math.floor(statSync(path).size / PAGE_BYTES / 2) * PAGE_BYTES)
  }
  function cutLastPage(name: string): void {
    const path = join(directory, fileOf(name))
    truncateSync(path, statSync(path).size - PAGE_BYTES)
  }
  function zeroPage(name: string, page: number): void {
    const path = join(directory, fileOf(name))
    writeFileSync(path, readFileSync(path).fill(0, page * PAGE_BYTES, (page + 1) * PAGE_BYTES))
  }
  function zeroFile(name: string): void {
    const path = join(directory, fileOf(name))
    writeFileSync(path, readFileSync(path).fill(0))
  }
  function addPage(name: string): void {
    appendFileSync(join(directory, fileOf(name)), Buffer.alloc(PAGE_BYTES))
  }
  function cutWithin(name: string): void {
    halvePages(name)
    appendFileSync(join(directory, fileOf(name)), Buffer.alloc(PAGE_BYTES / 2, 1))
  }
  function remove(name: string): void {
    rmSync(join(directory, fileOf(name)))
  }
})

test('files and descriptions of datasets that cannot be read are findings', async (t) => {
  const revision = { revision: 1, rows: 1, bytes: 1, first: null, last: null, sha256: 'a'.repeat(64), rowsHash: '' }
  const facts = { ...revision, position: '', madeAt: '2025-01-01T00:00:00.000Z' }
  const described = withChecksum(
    JSON.stringify({ version: 1, checkedMs: 1, revisions: [{ ...facts, file: '2025-01.a.parquet' }] })
  )
  const directory = t.testdir({
    'network-count': {
      '2025-01.json': described,
      '2025-01.a.parquet': {},
      '2025-02.json': described.slice(1)
    },
    'title-count': { '2025-01.json': {} }
  })
  const found = async (repair: boolean) => {
    const { files, unreadable } = await revisionFiles(directory)
    const host = { read: () => undefined, keys: async () => new Map() }
    const damaged = await withCheckThread(host, (call) => call('datasets', directory, files))
    return await damageOfDatasets(directory, [...damaged, ...unreadable], repair)
  }
  const unreadable = (name: string) => ({ what: `datasets/${name} cannot be read (EISDIR)`, repaired: undefined })
  const ways = [unreadable('network-count/2025-01.a.parquet'), unreadable('title-count/2025-01.json')]
  t.same(await unusableNames(directory), ['network-count/2025-01.a.parquet', 'title-count/2025-01.json'])
  t.match(await found(true), ways)
})
