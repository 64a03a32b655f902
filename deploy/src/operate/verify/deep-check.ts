import { projections } from '@gamenet/projector'
import { type VerifyReport as Comparison, RebuildRefused, type Rebuilds } from '@gamenet/projector/rebuild'
import { pause } from '@gamenet/schemas'
import { type Damage, shownFinding } from '../../stores/damage.js'
import type { VerifyReport } from '../../stores/damage-report.js'

const LOOK_MS = 200

/** `notChecked`: why a rebuild was impossible, by projection. */
type DeepCheck = { readonly damages: readonly Damage[]; readonly notChecked: readonly string[] }

/** Adds the read tables that differ to a report, unless tables are damaged otherwise: rebuilds read them. */
export async function deepened(report: VerifyReport, rebuilds: Rebuilds, signal: AbortSignal): Promise<VerifyReport> {
  if (report.findings.some(({ part }) => part === 'tables'))
    return {
      ...report,
      notChecked: [...report.notChecked, 'read tables, before the findings about tables are repaired']
    }
  const { damages, notChecked } = await differingTables(rebuilds, signal)
  return {
    ...report,
    findings: [...report.findings, ...damages.map(shownFinding)],
    notChecked: [...report.notChecked, ...notChecked]
  }
}

/**
 * Compares each read table with what its statements make of the events: fills fresh tables by rebuilds, which are
 * verified and cancelled. It needs the space of the largest unit, one after the other.
 */
async function differingTables(rebuilds: Rebuilds, signal: AbortSignal): Promise<DeepCheck> {
  const damages: Damage[] = []
  const notChecked: string[] = []
  const checked = new Set<string>()
  for (const { name } of projections) {
    if (checked.has(name)) continue
    try {
      const { id, unit } = await rebuilds.start(name)
      for (const each of unit) checked.add(each)
      try {
        await untilFilled(rebuilds, id, signal)
        damages.push(...damagesOf(name, await rebuilds.verify(name)))
      } finally {
        await rebuilds.cancel(name)
      }
    } catch (error) {
      if (!(error instanceof RebuildRefused)) throw error
      notChecked.push(`tables of ${name} (${error.message.replace(/\.$/, '')})`)
    }
  }
  return { damages, notChecked }
}

async function untilFilled(rebuilds: Rebuilds, id: number, signal: AbortSignal): Promise<void> {
  for (;;) {
    signal.throwIfAborted()
    const found = (await rebuilds.list()).find((each) => each.id === id)
    if (found?.state === 'filled') return
    if (found?.state !== 'filling') throw new RebuildRefused(found?.reason ?? 'its rebuild was ended')
    await pause(LOOK_MS, signal)
  }
}

function damagesOf(projection: string, { tables }: Comparison): Damage[] {
  const ways = ['start', 'verify', 'swap'].map((verb) => `gamenet rebuild ${verb} ${projection}`).join(', ')
  return tables
    .filter(({ differentBuckets }) => differentBuckets > 0)
    .map(({ table, differences }) => ({
      part: 'tables',
      what: `${table} differs in ${differences} rows from what ${projection} makes of its events`,
      cost: 'answers from it may be wrong',
      repair: `${ways} --accept-differences`
    }))
}
