import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type ClickHouse, openChdb } from '@gamenet/engines'
import { migrate, type Projector } from '@gamenet/projector'
import type { LogChoice } from '../../src/stores/log.js'
import { fillWithCounts, rateInto } from './count-log.js'
import { figure, type Measurement, quantile, scaled } from './measurement.js'
import { projectorOn } from './projector-on.js'

const EVENTS = 2_000_000
const ROUNDS = 3
const EVENTS_A_SECOND = 200_000
const POLL_MS = 20

/** Reloads an event table from the embedded log. */
export const reload: Measurement = {
  name: 'reload',
  claim: 'event tables are reloaded from the embedded log at 200,000 events a second',
  async run(conditions) {
    const choice: LogChoice = { engine: 'lmdb', path: await mkdtemp(join(conditions.directory, 'log-')), epoch: 0 }
    const events = await fillWithCounts(choice, scaled(EVENTS, conditions.scale, 50_000))
    conditions.note(`${events} events are in the log`)
    const tables = await openChdb({ path: await mkdtemp(join(conditions.directory, 'chdb-')) })
    await migrate(tables.control)
    const projector = projectorOn(tables, choice)
    try {
      projector.start()
      const live = await rateInto(tables, 'event_title_count__0', events)
      // Checkpoints are written after rows, and a rebuild ends at them.
      await projector.caughtUp()
      const rates: number[] = []
      const costs: number[] = []
      for (let round = 0; round < ROUNDS; round += 1) {
        const before = process.cpuUsage()
        rates.push(await reloadedPerSecond(tables, projector, events))
        const { user, system } = process.cpuUsage(before)
        costs.push((user + system) / events)
        conditions.note(`reloaded ${figure(rates.at(-1) ?? 0)}/s`)
      }
      const cost = figure(quantile(costs, 0.5))
      return [
        {
          what: 'events a second, first insert to last',
          measured: quantile(rates, 0.5),
          unit: '/s',
          target: { bound: 'at least', value: EVENTS_A_SECOND, of: 'measured' },
          detail:
            `${figure(events)} counts, median of ${ROUNDS}; the first load, with its projections, ${figure(live)}/s; ` +
            `processor time ${cost} µs per event`
        }
      ]
    } finally {
      await projector.stop()
      await tables.close()
    }
  }
}

/**
 * Reloads the event table, the first step of `gamenet rebuild start title-count --from-log`; returns events a second.
 */
async function reloadedPerSecond(tables: ClickHouse, { rebuilds }: Projector, events: number): Promise<number> {
  await rebuilds.start('title-count', { isFromLog: true })
  const rate = await rateInto(tables, await freshTable(tables), events)
  await rebuilds.cancel('title-count')
  return rate
}

async function freshTable({ control }: ClickHouse): Promise<string> {
  for (;;) {
    const [row] = await control.rows(
      `SELECT t.name AS name FROM system.tables AS t
       WHERE t.database = currentDatabase() AND match(t.name, '^event_title_count__[1-9]')`
    )
    if (row !== undefined) return String(row.name)
    await pause(POLL_MS)
  }
}
