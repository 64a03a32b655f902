import { DamagedTables, migrate, projections, storeOver } from '@gamenet/projector'
import { pino } from 'pino'
import { type Config, FilesDamaged } from '../../config.js'
import type { VerifyReport } from '../../stores/damage-report.js'
import { engineFailure, undefinedIfDamaged } from '../../stores/engine-failures.js'
import { openSoundEngines, startFailure } from '../../stores/engines.js'
import { findDamage } from './find-damage.js'

/**
 * Verifies a stopped service that cannot be opened: each engine on its own, and those that are open with each other.
 */
export async function verifyApart(config: Config): Promise<VerifyReport> {
  const logger = pino({ level: 'silent' })
  const { close, damaged, ...engines } = await openSoundEngines({ config, role: 'verify', logger })
  try {
    let marking: DamagedTables | undefined
    if (engines.clickhouse !== undefined) {
      await migrate(engines.clickhouse.control).catch((error: unknown) => {
        const failure = engineFailure(error, engines.ownsTables)
        if (!(failure instanceof FilesDamaged)) throw failure
        damaged.push(failure)
      })
      if (config.CLICKHOUSE_URL === undefined) {
        marking = new DamagedTables(storeOver(engines.clickhouse.control), projections)
        await marking.open().catch(undefinedIfDamaged)
      }
    }
    return await findDamage(engines, { marking, damaged }, () => undefined, new AbortController().signal)
  } catch (error) {
    throw await startFailure(config, error)
  } finally {
    await close()
  }
}
