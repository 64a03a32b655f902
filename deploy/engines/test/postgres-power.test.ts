import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { openPglite } from '../src/index.js'
import { layEmptyCluster } from '../src/postgres/empty-cluster.js'
import { openFlushing } from '../src/postgres/flushing-files.js'
import { volatileDisk } from './volatile-disk.js'

test('commits of PGlite survive a power loss', async (t) => {
  const dir = join(t.testdir({}), 'writes')
  mkdirSync(dir)
  await layEmptyCluster(dir)
  const disk = volatileDisk(dir, join(dir, '..', 'after'))
  const database = await openFlushing(dir)
  await database.exec('CREATE TABLE kept (n integer)')
  for (let n = 1; n <= 3; n += 1) await database.query('INSERT INTO kept VALUES ($1)', [n])
  await database.exec('CHECKPOINT')
  // The write-ahead log continues in a new file.
  await database.exec('SELECT pg_switch_wal()')
  for (let n = 4; n <= 6; n += 1) await database.query('INSERT INTO kept VALUES ($1)', [n])
  disk.stop()
  await database.close()
  t.ok(disk.flushed.includes('pg_wal'), 'the folder of a new file is flushed, too')

  const after = await openPglite({ dir: join(dir, '..', 'after') })
  t.teardown(() => after.close())
  t.same(
    (await after.query('SELECT n FROM kept ORDER BY n')).map(({ n }) => n),
    [1, 2, 3, 4, 5, 6]
  )
  t.same(await after.query('SHOW fsync'), [{ fsync: 'on' }])
})

test('PGlite opens a directory whose postmaster.pid is empty after a power loss', async (t) => {
  const dir = t.testdir({})
  await layEmptyCluster(dir)
  writeFileSync(join(dir, 'postmaster.pid'), '')
  const postgres = await openPglite({ dir })
  t.teardown(() => postgres.close())
  t.same(await postgres.query('SELECT 1 AS n'), [{ n: 1 }])
})
