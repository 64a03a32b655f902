import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { openChdb } from '@gamenet/engines'
import { migrate } from '@gamenet/projector'
import { Registry } from 'prom-client'
import type { LogChoice } from '../src/service/log.js'
import { fillWithCounts, rateInto } from './count-log.js'
import { figure, type Measurement, quantile, scaled } from './measurement.js'
import { projectorOn } from './projector-on.js'

const EVENTS = 2_000_000
const ROUNDS = 3
const EVENTS_A_SECOND = 200_000
const LOOK_MS = 20

/** An event table made anew from the embedded log, as `gamenet rebuild start title-count --from-log` does it first. */
export const reload: Measurement = {
  name: 'reload',
  claim: 'event tables are loaded anew from the embedded log at 200,000 events a second',
  async run({ scale, directory, note }) {
    const choice: LogChoice = { engine: 'lmdb', path: await mkdtemp(join(directory, 'log-')), epoch: 0 }
    const events = await fillWithCounts(choice, scaled(EVENTS, scale, 50_000))
    note(`${events} events are in the log`)
    const tables = await openChdb({ path: await mkdtemp(join(directory, 'chdb-')), threadPoolSize: 16 })
    await migrate(tables.control)
    const projector = projectorOn(tables, choice, new Registry())
    try {
      projector.start()
      const live = await rateInto(tables, 'event_title_count', events)
      // The checkpoints follow the rows, and a rebuild goes as far as they say.
      await projector.settled()
      note(`first load ${figure(live)}/s, every projection beside it`)
      const anew: number[] = []
      for (let round = 0; round < ROUNDS; round += 1) {
        await projector.rebuilds.start('title-count', { isFromLog: true })
        anew.push(await rateInto(tables, await freshTable(), events))
        note(`loaded anew ${figure(anew.at(-1) ?? 0)}/s`)
        await projector.rebuilds.cancel('title-count')
      }
      return [
        {
          what: 'events a second, first insert to last',
          measured: quantile(anew, 0.5),
          unit: '/s',
          reach: { bound: 'at least', value: EVENTS_A_SECOND, of: 'measured' },
          detail: `${figure(events)} counts, median of ${ROUNDS}; the first load, beside its projections, ${figure(live)}/s`
        }
      ]
    } finally {
      await projector.stop()
      await tables.close()
    }

    async function freshTable(): Promise<string> {
      for (;;) {
        const [row] = await tables.control.rows(
          `SELECT t.name AS name FROM system.tables AS t
           WHERE t.database = currentDatabase() AND startsWith(t.name, 'event_title_count__')`
        )
        if (row !== undefined) return String(row.name)
        await wait(LOOK_MS)
      }
    }
  }
}
