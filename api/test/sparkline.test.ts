import { deepStrictEqual } from 'node:assert'
import { newestSamples, rollupsOf, runs } from '@gamenet/engines/testing'
import type { Sparklines } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { sparklines } from '../src/routes/sparkline.js'
import { ask } from './ask.js'
import { DAY_MS, HOUR_MS, MINUTE_MS, within } from './plain-counts.js'
import { factsOf, iso, NOW_MS } from './samples.js'
import { catalogNaming, openStoredTables } from './stored-tables.js'

const HALO = '4d530064'
const RIDE = '55530036'
const catalog = catalogNaming({ [HALO]: 'Halo 2', [RIDE]: 'Ride' }, [HALO, RIDE])

test('trend lines equal plain loops over all samples, and have null for a step without one', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  await fc.assert(
    fc.asyncProperty(factsOf(HALO, RIDE), fc.constantFrom(1, 2, 3, 14, 15, 90), async (facts, days) => {
      await model.clear()
      await model.storeTitles(facts)
      const { body } = await ask(sparklines, { days: String(days) }, needs)
      const { from, stepSeconds, titles } = body as Sparklines
      const stepMs = days < 3 ? HOUR_MS : days < 15 ? 6 * HOUR_MS : DAY_MS
      const count = (days * DAY_MS) / stepMs
      const fromMs = Math.floor(NOW_MS / stepMs) * stepMs - (count - 1) * stepMs
      deepStrictEqual([from, stepSeconds], [iso(fromMs), stepMs / 1000])
      const minuteEndMs = (Math.floor(NOW_MS / MINUTE_MS) + 1) * MINUTE_MS
      const seen = within(newestSamples(facts), fromMs, minuteEndMs)
      const expected = [HALO, RIDE].flatMap((titleId) => {
        const own = rollupsOf(
          seen.filter(({ key }) => key === titleId),
          stepMs
        )
        if (own.length === 0) return []
        const online = Array.from(
          { length: count },
          (_, n) => own.find((step) => step.fromMs === fromMs + n * stepMs)?.max ?? null
        )
        return [{ titleId, name: titleId === HALO ? 'Halo 2' : 'Ride', online }]
      })
      deepStrictEqual(titles, expected)
    }),
    runs(4)
  )
  t.pass()
})
