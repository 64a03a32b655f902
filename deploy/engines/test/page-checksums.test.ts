import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { checkPages } from '../src/postgres/page-checksums.js'

const PAGE_BYTES = 8192
/** A page without rows, as PostgreSQL adds it, with another checksum. */
const damaged = Buffer.alloc(PAGE_BYTES)
damaged.writeUInt16LE(1, 8)

test('a page that is damaged only while PostgreSQL writes it is sound', async (t) => {
  const directory = t.testdir({ base: { 5: {} }, global: {} })
  const file = join(directory, 'base', '5', '16384')
  writeFileSync(file, Buffer.concat([damaged, damaged]))
  const checking = checkPages(directory, async () => {})
  writeFileSync(file, Buffer.concat([damaged, Buffer.alloc(PAGE_BYTES)]))
  t.same((await checking).faults, [{ filenode: 16_384, file: join('base', '5', '16384'), pages: [0] }])
})

test('files that are deleted with their table meanwhile are passed over', async (t) => {
  const directory = t.testdir({ base: {}, global: {} })
  const folder = join(directory, 'base', '5')
  mkdirSync(folder)
  const files = ['16384', '16385'].map((name) => join(folder, name))
  for (const file of files) writeFileSync(file, Buffer.alloc(PAGE_BYTES))
  const sizes: number[] = []
  const { faults } = await checkPages(directory, async (bytes) => {
    sizes.push(bytes)
    for (const file of files) rmSync(file, { force: true })
  })
  t.same([faults, sizes], [[], [PAGE_BYTES, 0]])
})
