import { setTimeout as pause } from 'node:timers/promises'
import type { Operations } from '../../src/operate/operation.js'
import { rebuild } from '../../src/operate/rebuild/operation.js'
import { operationsAt } from '../../test/service/gamenet.js'
import { loadAlone, NEW_EVERY, startLoad } from './even-load.js'
import { figure, type Measurement, quantile, scaled } from './measurement.js'
import { importTitleCounts, importTitlesAndNetwork, startQuietService } from './quiet-service.js'

const IDLE_MS = 10_000
const REBUILDING_MS = 10_000
const LATE_MS_MAX = 250
const TIMES_IDLE = 3
const PROJECTION = 'title-count'

/** 500 requests a second to the embedded service during a rebuild, a swap and a rollback. */
export const rebuildApi: Measurement = {
  name: 'rebuild-api',
  claim: 'answers take at most three times as long during a rebuild, and none fails or waits at a swap',
  async run({ directory, scale, note }) {
    const service = await startQuietService(directory)
    try {
      await importTitlesAndNetwork(service, directory)
      await importTitleCounts(service, directory, scaled(20_000, scale, 500))
      const operations = operationsAt(service.operatorUrl)
      note('requests to the idle service')
      const idle = await loadAlone(service, IDLE_MS)
      note('requests during rebuilds')
      const rebuilding = startLoad(service)
      const begun = performance.now()
      for (;;) {
        await operations.run(rebuild.start, { projection: PROJECTION })
        await untilFilled(operations)
        if (performance.now() - begun >= REBUILDING_MS) break
        await operations.run(rebuild.cancel, { projection: PROJECTION })
      }
      await rebuilding.stop()
      note('requests during a swap and a rollback')
      await operations.run(rebuild.verify, { projection: PROJECTION })
      const swapping = startLoad(service)
      await pause(1000)
      const swap = await operations.run(rebuild.swap, { projection: PROJECTION })
      await pause(1000)
      const rollback = await operations.run(rebuild.rollback, { projection: PROJECTION })
      await pause(1000)
      await swapping.stop()
      const failures = [...idle.failures, ...rebuilding.failures, ...swapping.failures]
      const requests = idle.times.length + rebuilding.times.length + swapping.times.length
      return [
        {
          what: 'an answer during a rebuild, p99',
          measured: quantile(rebuilding.times, 0.99),
          unit: 'ms',
          baseline: { what: 'idle', measured: quantile(idle.times, 0.99) },
          target: { bound: 'at most', value: TIMES_IDLE, of: 'ratio' },
          detail: `median ${figure(quantile(rebuilding.times, 0.5))} ms, idle ${figure(quantile(idle.times, 0.5))} ms; one in ${NEW_EVERY} requests is new`
        },
        {
          what: 'delay of new data by a swap or rollback',
          measured: Math.max(swap.lateMs, rollback.lateMs),
          unit: 'ms',
          target: { bound: 'at most', value: LATE_MS_MAX, of: 'measured' },
          detail: `the slowest answer around it ${figure(Math.max(...swapping.times))} ms, idle ${figure(Math.max(...idle.times))} ms`
        },
        {
          what: 'answers computed twice',
          measured: await service.metric('gamenet_answer_repeats_total'),
          unit: '',
          target: { bound: 'at most', value: 0, of: 'measured' }
        },
        {
          what: `requests that failed, of ${figure(requests)}`,
          measured: failures.length,
          unit: '',
          target: { bound: 'at most', value: 0, of: 'measured' },
          detail: failures[0] ?? ''
        }
      ]
    } finally {
      await service.remove()
    }
  }
}

async function untilFilled(operations: Operations): Promise<void> {
  for (;;) {
    const [newest] = await operations.run(rebuild.list, {})
    if (newest?.state === 'filled') return
    if (newest?.state !== 'filling') throw new Error(`the rebuild is ${newest?.state}: ${newest?.reason}`)
    await pause(100)
  }
}
