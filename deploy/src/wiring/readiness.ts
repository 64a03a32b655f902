import type { DataVersions, Readiness } from '@gamenet/api'
import { withTimeout } from '@gamenet/schemas'
import type { Engines } from './engines.js'
import type { LostRows } from './lost-rows.js'

/** Longer than a query waits for a connection, shorter than the usual timeout of probes. */
const CHECK_MS = 2000

export type IsReady = () => Promise<Readiness>

/** Checks whether every engine of the service answers. Concurrent calls share one check. */
export function readiness({
  engines,
  dataVersions,
  lostRows,
  hasApi
}: {
  readonly engines: Engines
  readonly dataVersions: DataVersions
  readonly lostRows: Pick<LostRows, 'repairing'>
  readonly hasApi: boolean
}): IsReady {
  let checking: Promise<Readiness> | undefined
  const check = async (): Promise<Readiness> => {
    const checks: [string, Promise<unknown>][] = [
      ['tables', engines.clickhouse.control.rows('SELECT 1 AS one')],
      ['log', engines.log.extents('scrape')],
      ...(engines.postgres === undefined
        ? []
        : [['writes', engines.postgres.check()] satisfies [string, Promise<unknown>]])
    ]
    // The answer names the first fault; a later one must not end the process as an unhandled rejection.
    for (const [, check] of checks) check.catch(() => undefined)
    for (const [role, check] of checks) {
      const name = `${role} (${engines.names[role]})`
      const fault = await faultOf(check)
      if (fault !== undefined) return { ok: false, reason: `${name} ${fault}` }
    }
    if (hasApi && !dataVersions.isCurrent) return { ok: false, reason: 'what changed in the tables is not known yet' }
    return { ok: true, repairing: lostRows.repairing() }
  }
  return () => {
    checking ??= check().finally(() => {
      checking = undefined
    })
    return checking
  }
}

/** Returns why a check fails, or undefined. */
export async function faultOf(check: Promise<unknown>): Promise<string | undefined> {
  const fault = check.then(
    () => undefined,
    () => 'cannot be reached'
  )
  return await withTimeout(fault, CHECK_MS, () => `did not answer within ${CHECK_MS} ms`)
}
