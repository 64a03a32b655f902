import { test } from 'tap'
import type { RebuildContext } from '../src/rebuild/context.js'
import { type RebuildRecord, readRebuilds, storeRebuild } from '../src/rebuild/rebuild-record.js'
import { resumeSwap } from '../src/rebuild/swap.js'
import { storeOver } from '../src/store/operation.js'
import { readTableUuids } from '../src/store/table.js'
import { openTables } from './pipeline.js'

const SWAPS = [
  ['swapping', 'filled', 'swapped'],
  ['rolling-back', 'swapped', 'rolled-back']
] as const

/** What a swap asks of a process that does nothing else. */
const AT_REST = {
  serving: { current: async () => [], install: async () => undefined },
  runner: { announceAll: async () => undefined, wake: () => undefined },
  aroundSwap: async (_: unknown, swap: () => Promise<void>) => {
    await swap()
    return 0
  }
}

test('a swap that ended while another process took it for not begun has ended', async (t) => {
  const { control } = await openTables()
  for (const [id, [intent, before, ended]] of SWAPS.entries()) {
    const record: RebuildRecord = {
      id: id + 1,
      version: 1,
      projection: 'title-count',
      unit: [],
      tables: { title_count: 'title_count__1' },
      helpers: {},
      state: before,
      reason: null,
      until: null,
      isFromLog: false,
      retracts: null,
      startedAt: '2026-01-01T00:00:00.000Z',
      changedAt: '2026-01-01T00:00:00.000Z',
      target: {},
      events: {},
      slices: {},
      costs: {},
      verification: null,
      definitions: {},
      exchange: null
    }
    const exchange = {
      uuids: Object.fromEntries(await storeOver(control).do(readTableUuids, ['title_count'])),
      definitions: {}
    }
    const intended = await storeRebuild(storeOver(control), record, { state: intent, exchange })
    const stateNow = async () => (await readRebuilds(storeOver(control))).find((each) => each.id === record.id)?.state

    const ending = async (meanwhile: () => Promise<unknown>, interrupted = intended) => {
      const rows: typeof control.rows = async (sql, parameters) => {
        const found = await control.rows(sql, parameters)
        await meanwhile()
        return found
      }
      await resumeSwap({ ...AT_REST, store: storeOver({ ...control, rows }) } as unknown as RebuildContext, interrupted)
    }
    await ending(async () => undefined)
    t.equal(await stateNow(), before, 'it had not begun')
    await ending(() => storeRebuild(storeOver(control), intended, { state: ended, exchange: null }))
    t.equal(await stateNow(), ended)

    // A process that begins after the look at the tables, and dies before it reports.
    const again = await storeRebuild(storeOver(control), { ...intended, version: intended.version + 4 }, {})
    await control.execute(`CREATE TABLE IF NOT EXISTS title_count__1 AS title_count`)
    let swapped: Promise<void> | undefined
    await ending(async () => {
      swapped ??= control.execute('EXCHANGE TABLES title_count AND title_count__1')
      await swapped
    }, again)
    t.equal(await stateNow(), ended, 'begun behind the look')
  }
})
