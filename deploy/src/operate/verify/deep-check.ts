import { projections } from '@gamenet/projector'
import { type VerifyReport as Comparison, RebuildRefused, type Rebuilds } from '@gamenet/projector/rebuild'
import { pause } from '@gamenet/schemas'
import type { Finding, VerifyReport } from '../../stores/damage-report.js'
import { type Marking, REBUILT } from './damage-of-tables.js'

const LOOK_MS = 200

/** `notChecked`: why a rebuild was impossible, by projection. */
type DeepCheck = { readonly differing: readonly Differing[]; readonly notChecked: readonly string[] }

/** Adds the read tables that differ to a report, unless tables are damaged otherwise: rebuilds read them. */
export async function deepened(
  report: VerifyReport,
  rebuilds: Rebuilds,
  marking: Marking,
  signal: AbortSignal
): Promise<VerifyReport> {
  if (report.findings.some(({ part }) => part === 'tables'))
    return {
      ...report,
      notChecked: [...report.notChecked, 'read tables, before the findings about tables are repaired']
    }
  const { differing, notChecked } = await differingTables(rebuilds, signal)
  await marking?.markServing(differing.map(({ table, what }) => [table, what] as const))
  return {
    ...report,
    findings: [...report.findings, ...differing.map((each) => findingOf(each, marking !== undefined))],
    notChecked: [...report.notChecked, ...notChecked]
  }
}

/**
 * Compares each read table with what its statements make of the events: fills fresh tables by rebuilds, which are
 * verified and cancelled. It needs the space of the largest unit, one after the other.
 */
async function differingTables(rebuilds: Rebuilds, signal: AbortSignal): Promise<DeepCheck> {
  const differing: Differing[] = []
  const notChecked: string[] = []
  const checked = new Set<string>()
  for (const { name } of projections) {
    if (checked.has(name)) continue
    try {
      const { id, unit } = await rebuilds.start(name)
      for (const each of unit) checked.add(each)
      try {
        await untilFilled(rebuilds, id, signal)
        differing.push(...differingOf(name, await rebuilds.verify(name)))
      } finally {
        await rebuilds.cancel(name)
      }
    } catch (error) {
      if (!(error instanceof RebuildRefused)) throw error
      notChecked.push(`tables of ${name} (${error.message.replace(/\.$/, '')})`)
    }
  }
  return { differing, notChecked }
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

type Differing = { readonly table: string; readonly projection: string; readonly what: string }

function differingOf(projection: string, { tables }: Comparison): Differing[] {
  return tables
    .filter(({ differentBuckets }) => differentBuckets > 0)
    .map(({ table, differences }) => {
      return {
        table,
        projection,
        what: `it differs in ${differences} rows from what ${projection} makes of its events`
      }
    })
}

function findingOf({ table, projection, what }: Differing, isRebuilt: boolean): Finding {
  const ways = ['start', 'verify', 'swap'].map((verb) => `gamenet rebuild ${verb} ${projection}`).join(', ')
  return {
    part: 'tables',
    what: `${table}: ${what}`,
    cost: 'answers from it may be wrong; they are refused until it is rebuilt',
    repair: isRebuilt ? REBUILT : `${ways} --accept-differences`
  }
}
