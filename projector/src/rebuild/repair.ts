import type { Topic } from '@gamenet/schemas'
import { eventTableName } from '../events/event-table.js'
import type { DamagedTable } from '../generations/damaged-tables.js'
import { importRetraction } from '../projections/import-retraction.js'
import { type Projection, tablesOf } from '../store/projection.js'
import { type RebuildRequest, unitFor } from './unit.js'

/*
 * repair   an automatic rebuild that replaces damaged tables: a read table is computed from its event table again, an
 *          event table is loaded from the log, with all that the log no longer has from the parts that can be read
 */

export type Repair = {
  readonly request: RebuildRequest
  readonly unit: readonly Projection[]
  /** The topic that it loads from the log. */
  readonly topic: Topic | undefined
  /** The tables that it replaces. */
  readonly damaged: readonly DamagedTable[]
}

/**
 * Returns the repairs of damaged tables, in order: what is undone is known before anything else is loaded again, and
 * event tables before the read tables that are computed from them.
 */
export function repairsOf(projections: readonly Projection[], damaged: readonly DamagedTable[]): Repair[] {
  const repairs: Repair[] = []
  const add = ({ name, from }: Projection, isFromLog: boolean) => {
    const request = { projection: name, until: null, isFromLog, retracts: null, isAutomatic: true }
    const unit = unitFor(projections, request)
    const tables = [...(isFromLog ? [eventTableName(from)] : []), ...unit.flatMap(tablesOf)]
    const replaced = damaged.filter(({ table }) => tables.includes(table))
    if (replaced.length > 0 && !replaced.every((each) => repairs.some((other) => other.damaged.includes(each))))
      repairs.push({ request, unit, topic: isFromLog ? from : undefined, damaged: replaced })
  }
  const isDamaged = (table: string) => damaged.some((each) => each.table === table)
  for (const each of projections) if (isDamaged(eventTableName(each.from))) add(each, true)
  for (const each of projections) if (tablesOf(each).some(isDamaged)) add(each, false)
  return repairs.toSorted((a, b) => Number(isOfUndos(b)) - Number(isOfUndos(a)))
}

/** Whether a repair restores which imports are undone: until then, a load from the log brings their events back. */
export function isOfUndos({ unit }: Pick<Repair, 'unit'>): boolean {
  return unit.some(({ name }) => name === importRetraction.name)
}
