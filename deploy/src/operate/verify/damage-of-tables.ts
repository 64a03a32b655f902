import { mkdir, readdir, rename } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { ClickHouse } from '@gamenet/engines'
import { flushPath } from '@gamenet/engines/files'
import { changedDefinitions, eventTableName, findLostParts, namesOfUsedTables, storeOver } from '@gamenet/projector'
import { isTableDropped } from '@gamenet/schemas'
import { FailureError } from '../../config.js'
import { type Damage, reasonOf } from '../../stores/damage.js'
import type { ReportBytes } from '../../stores/damage-report.js'
import { MAKE_TABLES_AGAIN, REPAIR_SERVER, RESTORE, undefinedIfDamaged } from '../../stores/engine-failures.js'

export type TablesToCheck = {
  readonly repair: boolean
  /** The parts that tables lacked when they were opened. */
  readonly lost: readonly LostPart[]
  /**
   * Events that the log can no longer read: a damaged part of the event table of their topic may be the last copy of
   * its other rows.
   */
  readonly faults?: readonly { readonly topic: string }[] | undefined
  /** Whether the tables are on a server, where nothing is repaired. */
  readonly isServer?: boolean
}

/** `part` is undefined if all of a table is lost. */
type LostPart = { readonly table: string; readonly part: string | undefined }

/** Parts in a finding; a table may have lost thousands. */
const PARTS_NAMED = 5
const COST_UNUSED = 'neither steps nor answers use this table; its rebuild cannot be continued or rolled back'

/** Verifies every part of every table, as long statements: large tables take minutes on a slow disk. */
export async function damageOfTables(
  { control: tables, rebuild }: Pick<ClickHouse, 'control' | 'rebuild'>,
  { repair, isServer = false, lost, faults = [] }: TablesToCheck,
  report: ReportBytes
): Promise<Damage[]> {
  const damages: Damage[] = []
  const nameOf = (await namesOfUsedTables(storeOver(tables)).catch(undefinedIfDamaged)) ?? new Map<string, string>()
  const isUnused = (table: string) => table.includes('__') && !nameOf.has(table)
  const missing: readonly LostPart[] = await findLostParts(storeOver(tables))
  const isMissing = ({ table }: Pick<LostPart, 'table'>) => missing.some((each) => each.table === table)
  const all = [...missing, ...lost.filter((each) => !isMissing(each))]
  for (const table of new Set(all.map((each) => each.table))) {
    damages.push({
      part: 'tables',
      what:
        `${partsText(all.filter((each) => each.table === table))} of ${table} are missing, or were detached ` +
        `because they were unreadable`,
      cost: isUnused(table) ? COST_UNUSED : 'its rows are missing until they are restored',
      repair: isServer ? REPAIR_SERVER : isUnused(table) ? 'gamenet start, which drops the table' : 'gamenet start',
      ...(repair && !isMissing({ table }) && { repaired: 'its rows were restored' })
    })
  }
  for (const { name, path, bytes } of await tablesOfParts(tables)) {
    for (const { part, message } of await damagedParts(rebuild, name)) {
      const isLast = faults.some(({ topic }) => name.split('__')[0] === eventTableName({ name: topic }))
      const isDetached = repair && !isServer && !isLast && part !== ''
      if (isDetached) await detachPart(tables, name, path, part)
      const then = `the next start ${isUnused(name) ? 'drops the table' : 'restores its rows'}`
      damages.push({
        part: 'tables',
        what: `part ${part} of ${name} is damaged: ${message}`,
        cost: isUnused(name) ? COST_UNUSED : 'queries that read it fail, or return wrong answers',
        repair: isServer
          ? REPAIR_SERVER
          : isLast
            ? `${RESTORE}. The log cannot read all events of this table, so it is not detached`
            : `gamenet verify --repair, which detaches it; ${then}`,
        ...(isDetached && { repaired: `it was detached; ${then}` })
      })
    }
    report('tables', bytes)
  }
  return damages
}

function partsText(parts: readonly LostPart[]): string {
  const names = parts.flatMap(({ part }) => part ?? [])
  if (names.length < parts.length) return 'all parts'
  const others = names.length > PARTS_NAMED ? ` and ${names.length - PARTS_NAMED} others` : ''
  return `${names.length} parts (${names.slice(0, PARTS_NAMED).join(', ')}${others})`
}

/** Detaches damaged parts of the tables that a start reads before it can repair any: those without generations. */
export async function detachDamagedBookkeeping({
  control: tables,
  rebuild
}: Pick<ClickHouse, 'control' | 'rebuild'>): Promise<void> {
  for (const { name, path } of await tablesOfParts(tables)) {
    if (name.includes('__')) continue
    for (const { part } of await damagedParts(rebuild, name))
      if (part !== '') await detachPart(tables, name, path, part)
  }
}

type TableOfParts = { readonly name: string; readonly path: string; readonly bytes: number }

async function tablesOfParts(tables: ClickHouse['control']): Promise<TableOfParts[]> {
  const rows = await tables.rows(
    `SELECT t.name AS name, t.data_paths[1] AS path, t.total_bytes AS bytes FROM system.tables AS t
     WHERE t.database = currentDatabase() AND t.engine LIKE '%MergeTree' ORDER BY name`
  )
  return rows.map(({ name, path, bytes }) => ({ name: String(name), path: String(path), bytes: Number(bytes ?? 0) }))
}

/** Returns the parts whose checksums are wrong; the name is empty if it is unknown. */
async function damagedParts(
  rebuild: ClickHouse['rebuild'],
  table: string
): Promise<{ readonly part: string; readonly message: string }[]> {
  const parts = await rebuild
    .rows(`CHECK TABLE ${table}`)
    .catch((error: unknown) =>
      isTableDropped(error) ? [] : [{ is_passed: 0, part_path: '', message: reasonOf(error) }]
    )
  return parts
    .filter(({ is_passed: isPassed }) => Number(isPassed) !== 1)
    .map(({ part_path: part, message }) => ({ part: String(part), message: String(message) }))
}

/** Finds tables and views that the program did not create as they are. */
export async function changedTables(tables: ClickHouse['control']): Promise<Damage[]> {
  const cost = 'answers from it may be wrong'
  return (await changedDefinitions(tables)).map((name) => {
    return { part: 'tables', what: `${name} is not defined as the program created it`, cost, repair: MAKE_TABLES_AGAIN }
  })
}

/**
 * Detaches a part in the way in which the engine detaches an unreadable one at its start. The mark comes first: after a
 * kill in between, the next start restores the rows.
 */
async function detachPart(tables: ClickHouse['control'], table: string, path: string, part: string): Promise<void> {
  const folder = join(path, 'detached')
  const before = new Set(await readdir(folder).catch(() => []))
  const mark = await markLost(path, part)
  await tables.execute(`ALTER TABLE ${table} DETACH PART '${part}'`)
  const [detached, ...others] = (await readdir(folder)).filter((name) => !before.has(name) && name !== basename(mark))
  if (detached === undefined || others.length > 0)
    throw new FailureError(`${part} of ${table} could not be detached to ${dirname(folder)}.`)
  await rename(join(folder, detached), mark)
}

/**
 * Makes the next start restore the rows of a part, as after a part that the engine could not read; returns the path of
 * the mark.
 */
async function markLost(path: string, part: string): Promise<string> {
  const detached = join(path, 'detached')
  const mark = join(detached, `broken-on-start_${part}`)
  await mkdir(mark, { recursive: true })
  await flushPath(detached)
  return mark
}
