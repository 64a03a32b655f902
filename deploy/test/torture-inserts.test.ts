import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { insertsInto } from '../proof/torture/inserts.js'

const TABLES = 50

test('a wait for inserts ends when it is cancelled at any moment, and stops watching', async (t) => {
  const { tables } = await tablesOf(t)
  await insertsInto(tables, 1, AbortSignal.abort())
  for (let turns = 0; turns < 2 * TABLES; turns += 7) {
    const calledOff = new AbortController()
    const waiting = insertsInto(tables, 1, calledOff.signal)
    for (let done = 0; done < turns; done += 1) await turn()
    calledOff.abort()
    await waiting
  }
  t.equal(await stillWatched(), 0)
})

test('a wait for inserts ends with the last of them', async (t) => {
  const { tables, table } = await tablesOf(t)
  const waiting = insertsInto(tables, 2, new AbortController().signal)
  while (watched() < TABLES) await turn()
  await writeFile(join(table, 'all_1_1_0'), '')
  await mkdir(join(table, 'tmp_insert_all_1_1_0'))
  await mkdir(join(table, 'tmp_insert_all_2_2_0'))
  await waiting
  t.equal(await stillWatched(), 0)
})

async function tablesOf(t: Test): Promise<{ readonly tables: string; readonly table: string }> {
  const tables = t.testdir({})
  const each = Array.from({ length: TABLES }, (_, n) => join(tables, 'store', `a${n}`, `table${n}`))
  for (const table of each) await mkdir(table, { recursive: true })
  return { tables, table: each[0] ?? '' }
}

/** Watchers disappear at the end of the turn of the event loop in which they are closed. */
async function stillWatched(): Promise<number> {
  await turn()
  await turn()
  return watched()
}

function watched(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'FSEventWrap').length
}
