import { errorMessage, type Logger, withTimeout } from '@gamenet/schemas'
import { Gauge, type Registry } from 'prom-client'
import type { Store } from '../store/operation.js'
import type { RebuildState } from './contract.js'
import { readRebuilds } from './rebuild-record.js'

/** States in which a rebuild has tables. */
const COUNTED: readonly RebuildState[] = ['filling', 'paused', 'failed', 'filled', 'swapped']
const ASK_MS = 2000

/**
 * Registers how many rebuilds have tables, by state. If the records cannot be read in time, it reports the last known
 * numbers.
 */
export function registerRebuildGauge(registry: Registry, store: Store, logger: Logger): void {
  let reading: Promise<void> | undefined
  const gauge = new Gauge({
    name: 'gamenet_rebuilds',
    help: 'Rebuilds that have tables, by state',
    labelNames: ['state'],
    registers: [registry],
    async collect() {
      reading ??= readRebuilds(store)
        .then((records) => {
          for (const counted of COUNTED)
            gauge.set({ state: counted }, records.filter(({ state }) => state === counted).length)
        })
        .catch((error: unknown) => logger.warn({ reason: errorMessage(error) }, 'rebuilds cannot be counted'))
        .finally(() => {
          reading = undefined
        })
      await withTimeout(reading, ASK_MS, () => undefined)
    }
  })
}
