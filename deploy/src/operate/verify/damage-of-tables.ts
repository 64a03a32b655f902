import type { ClickHouse } from '@gamenet/engines'
import { changedDefinitions, type DamagedTables, readDamagedParts, storeOver } from '@gamenet/projector'
import { isTableDropped } from '@gamenet/schemas'
import { reasonOf, shown } from '../../stores/damage.js'
import type { Finding, ReportBytes } from '../../stores/damage-report.js'
import type { DamageStatus } from '../../stores/damaged-tables.js'
import { MAKE_TABLES_AGAIN, noneIfDamaged, REPAIR_SERVER, undefinedIfDamaged } from '../../stores/engine-failures.js'

/** Where findings about the generations of tables are recorded; undefined for a server's. */
export type Marking = DamagedTables | undefined

/** The way out of a damaged generation. */
export const REBUILT = 'none needed: the service rebuilds it (gamenet status)'
const AS_SAID = 'as the finding says'

/**
 * Verifies every part of every table, as long statements: large tables take minutes on a slow disk. Marks what is
 * damaged, and adds what is marked already.
 */
export async function damageOfTables(
  { control: tables, rebuild }: Pick<ClickHouse, 'control' | 'rebuild'>,
  marking: Marking,
  report: ReportBytes
): Promise<Finding[]> {
  const known = (await marking?.inUse().catch(noneIfDamaged)) ?? []
  const damages: Finding[] = []
  const found = new Set<string>()
  for (const what of marking?.gone ?? []) damages.push(findingOf(what, 'restore a backup that has these events'))
  for (const { name, bytes } of await tablesOfParts(tables)) {
    for (const { part, reason } of await damagedParts(rebuild, name)) {
      found.add(name)
      const what = `part ${part} of ${name} is damaged: ${shown(reason)}`
      if (marking === undefined) damages.push(findingOf(what, REPAIR_SERVER))
      else if (name.includes('__')) {
        await marking.mark([[name, `its part ${part} does not match its checksum`]]).catch(undefinedIfDamaged)
        damages.push(findingOf(what, REBUILT))
      } else damages.push(findingOf(what, 'none needed: the service continues with what is left of it'))
    }
    report('tables', bytes)
  }
  for (const { name, reason, left } of known)
    if (!found.has(name)) damages.push(findingOf(`${name} is damaged: ${reason}`, left ?? REBUILT))
  return damages
}

/** Returns findings about damage that the files in use do not show: it was detached, or is being repaired. */
export const findingsSetAside = (damages: readonly DamageStatus[]): Finding[] =>
  damages.map(({ state, reason }) => findingOf(reason, state === 'left' ? AS_SAID : 'none needed (gamenet status)'))

function findingOf(what: string, repair: string): Finding {
  return { part: 'tables', what, cost: 'answers that need these rows are refused, or lack them', repair }
}

type TableOfParts = { readonly name: string; readonly bytes: number }

async function tablesOfParts(tables: ClickHouse['control']): Promise<TableOfParts[]> {
  const rows = await tables.rows(
    `SELECT t.name AS name, t.total_bytes AS bytes FROM system.tables AS t
     WHERE t.database = currentDatabase() AND t.engine LIKE '%MergeTree' ORDER BY name`
  )
  return rows.map(({ name, bytes }) => ({ name: String(name), bytes: Number(bytes ?? 0) }))
}

/** Returns the parts whose checksums are wrong; the name is empty if it is unknown. */
async function damagedParts(
  rebuild: ClickHouse['rebuild'],
  table: string
): Promise<readonly { readonly part: string; readonly reason: string }[]> {
  return await storeOver(rebuild)
    .do(readDamagedParts, table)
    .catch((error: unknown) => (isTableDropped(error) ? [] : [{ part: '', reason: reasonOf(error) }]))
}

/** Finds tables and views that the program did not create as they are. */
export async function changedTables(tables: ClickHouse['control']): Promise<Finding[]> {
  const cost = 'answers from it may be wrong'
  return (await changedDefinitions(tables)).map((name) => {
    return { part: 'tables', what: `${name} is not defined as the program created it`, cost, repair: MAKE_TABLES_AGAIN }
  })
}
