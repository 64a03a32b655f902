import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openChdb } from '@gamenet/engines'
import { migrate, readPointers, storeOver } from '@gamenet/projector'
import { test } from 'tap'
import { engineFailure } from '../src/stores/engine-failures.js'
import { freezeTables, unfreeze } from '../src/stores/freeze.js'
import { provesBackups } from './service/backups.js'

test('a backup of a busy service contains all acknowledged data, and answers are equal after a restore elsewhere', (t) =>
  provesBackups(t, {
    rebuilds: false,
    restoreKills: [],
    backupKills: [0.4],
    seed: 20_260_314,
    startsAgain: false
  }))

test('a swap after the copy of the rebuild records is not copied without its record', async (t) => {
  const path = t.testdir()
  const { control, close } = await openChdb({ path })
  t.teardown(close)
  await migrate(control)
  const seen: number[] = []
  const execute: typeof control.execute = async (sql, ...given) => {
    if (sql.includes('generation_pointer FREEZE')) {
      if (seen.length === 0)
        await control.execute("INSERT INTO generation_pointer (owner, writes, version) VALUES ('project:title', 1, 1)")
      seen.push((await storeOver(control).do(readPointers)).version)
    }
    await control.execute(sql, ...given)
  }
  await freezeTables({ ...control, execute }, path, 'backup')
  t.same(seen, [1, 1], 'all tables are copied again')
})

test('a freeze that a full disk ended does not prevent later ones', async (t) => {
  const path = t.testdir()
  const { control, close } = await openChdb({ path })
  t.teardown(close)
  await migrate(control)
  await mkdir(join(path, 'shadow'))
  await writeFile(join(path, 'shadow', 'increment.txt'), '')
  const refused = await freezeTables(control, path, 'backup').catch((error: unknown) => error)
  t.match(refused, { message: /increment\.txt is empty/ })
  t.match(engineFailure(refused, true), { message: /their disk is full/ }, 'not called damaged')
  await unfreeze(path, 'backup')
  await freezeTables(control, path, 'backup')
})
