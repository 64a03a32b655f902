import { test } from 'tap'
import type { RebuildContext } from '../src/rebuilding/context.js'
import { end } from '../src/rebuilding/exchange.js'
import { uuidsOf } from '../src/rebuilding/fresh-tables.js'
import { type RebuildRecord, readRebuilds, storeRebuild } from '../src/rebuilding/rebuild-record.js'
import { openTables } from './pipeline.js'

const EXCHANGES = [
  ['swapping', 'filled', 'swapped'],
  ['rolling-back', 'swapped', 'rolled-back']
] as const

test('an exchange that ended while another process took it for not begun has ended', async (t) => {
  const { control } = await openTables(t)
  for (const [id, [intent, before, ended]] of EXCHANGES.entries()) {
    const record: RebuildRecord = {
      id: id + 1,
      version: 1,
      projection: 'title-count',
      unit: ['title-count'],
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
    const exchange = { uuids: Object.fromEntries(await uuidsOf(control, ['title_count'])), definitions: {} }
    const intended = await storeRebuild(control, record, { state: intent, exchange })
    const stateNow = async () => (await readRebuilds(control)).find((each) => each.id === record.id)?.state

    const ending = (meanwhile: () => Promise<unknown>) => {
      const rows: typeof control.rows = async (sql, parameters) => {
        const found = await control.rows(sql, parameters)
        await meanwhile()
        return found
      }
      return end({ tables: { ...control, rows } } as unknown as RebuildContext, intended)
    }
    await ending(async () => undefined)
    t.equal(await stateNow(), before, 'it had not begun')
    await ending(() => storeRebuild(control, intended, { state: ended, exchange: null }))
    t.equal(await stateNow(), ended)
  }
})
