import { sealKeys } from '@gamenet/ingest'
import { createProjector, type Projector } from '@gamenet/projector'
import { freeMinBytesOf } from '../data-directory/disk-guard.js'
import { explained, noteDamage } from '../stores/engine-failures.js'
import { erasedPeople } from '../stores/ledger.js'
import { isAcceptedOlder } from '../stores/older-writes.js'
import { readingThread, reloadReadersOf } from '../stores/reading-thread.js'
import type { Needs } from './dependencies.js'

/** Starts a projector that loads the log and projects until it is stopped. */
export function startProjector(needs: Needs): Projector {
  const { config, engines, registry, logger, damage, damageMet, dataVersions, concurrentWriters } = needs
  const { loader, projections, rebuild } = engines.clickhouse
  const projector = createProjector({
    tables: { loader, projections, rebuild },
    startReading: async (only) => readingThread({ choice: engines.logChoice, only }),
    reloadReaders: reloadReadersOf(engines.logChoice),
    sealKeys: async (people) => await sealKeys(await engines.writes(), people),
    erasedPeople: async (people) => await erasedPeople(await engines.writes(), people),
    damaged: damage.tables,
    areKeysLost: async () => await isAcceptedOlder(await engines.writes()),
    registry,
    logger,
    reservedBytes: (diskBytes) => freeMinBytesOf(config.DISK_FREE_MIN_BYTES, diskBytes),
    explain: async (error) => {
      const failure = await explained(error, engines.directory?.path, engines.ownsTables)
      noteDamage(damageMet, failure)
      return failure
    },
    ...concurrentWriters,
    // DataVersions itself logs a failed refresh.
    onChange: () => void dataVersions.refresh().catch(() => undefined)
  })
  projector.start()
  damage.repairedBy(projector)
  return projector
}
