import type { ClickHouse } from '@gamenet/engines'
import { createProjector, type Projector } from '@gamenet/projector'
import { pino } from 'pino'
import { Registry } from 'prom-client'
import type { LogChoice } from '../../src/stores/log.js'
import { readingThread, reloadReadersOf } from '../../src/stores/reading-thread.js'

/** Creates a projector, wired as in the service of one process. */
export function projectorOn(tables: ClickHouse, choice: LogChoice): Projector {
  return createProjector({
    tables: { loader: tables.loader, projections: tables.projections, rebuild: tables.rebuild },
    startReading: async (only) => readingThread({ choice, only }),
    reloadReaders: reloadReadersOf(choice),
    sealKeys: async () => new Map(),
    registry: new Registry(),
    logger: pino({ level: 'warn' }, pino.destination(2)),
    onChange: () => undefined
  })
}
