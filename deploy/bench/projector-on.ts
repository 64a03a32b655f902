import { Worker } from 'node:worker_threads'
import type { ClickHouse } from '@gamenet/engines'
import { createProjector, type Projector } from '@gamenet/projector'
import { pino } from 'pino'
import type { Registry } from 'prom-client'
import type { LoaderWorkerData } from '../src/service/loader-worker.js'
import type { LogChoice } from '../src/service/log.js'

/** As the service gives its reading thread. */
const READING_YOUNG_HEAP_MB = 96

/** A projector as the service of one process has it. */
export function projectorOn(tables: ClickHouse, choice: LogChoice, registry: Registry): Projector {
  return createProjector({
    tables: { loader: tables.loader, projections: tables.projections, rebuild: tables.rebuild },
    startReading: async () => {
      const worker = new Worker(new URL('../src/service/loader-worker.js', import.meta.url), {
        workerData: { choice, only: undefined } satisfies LoaderWorkerData,
        resourceLimits: { maxYoungGenerationSizeMb: READING_YOUNG_HEAP_MB }
      })
      const ended = new Promise<void>((resolve, reject) => {
        worker.on('error', reject)
        worker.on('exit', () => resolve())
      })
      return { port: worker, ended, close: async () => void (await worker.terminate()) }
    },
    sealKeys: async () => new Map(),
    registry,
    logger: pino({ level: 'warn' }, pino.destination(2)),
    onChange: () => undefined
  })
}
