import { loadCheckpoint, type PartitionExtent, projectionCheckpoint, type Topic, tablesIn } from '@gamenet/schemas'
import { eventTables } from '../events/event-tables.js'
import { ownersOf, storeAt } from '../generations/generations.js'
import type { Target } from '../project/caught-up.js'
import { DataChanges } from '../project/data-changes.js'
import { projections } from '../projections/projections.js'
import { type RebuildRecord, readRebuilds, storeRebuild } from '../rebuild/rebuild-record.js'
import { tablesToDrop } from '../rebuild/swap.js'
import { Checkpoints, deleteCheckpoints, type Progress, storeCheckpoints } from '../store/checkpoint.js'
import { readPointers } from '../store/generation.js'
import type { Store } from '../store/operation.js'
import { type Projection, readsOf, tablesOf, withDependents } from '../store/projection.js'
import { dropLostPart, type LostPart, readLostParts } from '../store/table.js'

/*
 * lost part   a damaged part of a table, which the engine detached at its start: its rows are missing
 * repair      restores these rows: events are loaded from the log and rows projected from the event tables, both from the
 *             beginning. All tables accept the same row twice, so a repair can begin again after any crash. The detached parts
 *             are its record; they are dropped at its end.
 */

/** A lost part with the engine's name of its table. */
export type NamedLostPart = LostPart & { readonly engineTable: string }

/**
 * Finds the parts that the engine has detached because they were damaged. A table that steps write or answers read has the name that
 * statements use; any other generation has the engine's.
 */
export async function findLostParts(store: Store): Promise<NamedLostPart[]> {
  const lost = await store.do(readLostParts)
  if (lost.length === 0) return []
  const nameOf = await namesOfUsedTables(store)
  return lost.map(({ table, part }) => ({ table: nameOf.get(table) ?? table, part, engineTable: table }))
}

/** Reads the names of tables in statements, by the engine's names of the generations that steps write or answers read. */
export async function namesOfUsedTables(store: Store): Promise<ReadonlyMap<string, string>> {
  const pointers = await store.do(readPointers)
  const owners = ownersOf(projections)
  return new Map(
    [...pointers.names('reads', owners), ...pointers.names('writes', owners)].map(([name, used]) => [used, name])
  )
}

/** Event tables and read tables. */
export const dataTables: readonly string[] = [
  ...eventTables.map(({ table }) => table),
  ...projections.flatMap(tablesOf)
]

/** The work that restores the rows of damaged tables. */
export type Repair = {
  /** Tables that lost rows. */
  readonly damaged: ReadonlySet<string>
  /** Topics that are loaded from the log again, from the beginning. */
  readonly topics: readonly Topic[]
  /** Projections that consume their event tables again, from the beginning. */
  readonly projections: readonly Projection[]
  /** Tables that lack rows until the repair has ended, or are computed from such tables. */
  readonly incomplete: ReadonlySet<string>
  /** True if the instants of changes are lost. */
  readonly changesAreLost: boolean
  /** True if checkpoints are lost: answers up to a position would end too early. */
  readonly positionsAreLost: boolean
  /** Tables that cannot be restored, with the consequence. */
  readonly lasting: ReadonlyMap<string, string>
}

const POSITIONS = 'checkpoint'

/** What is lost permanently with bookkeeping tables; all others are written again automatically. */
const LASTING: Readonly<Record<string, string>> = {
  dead_letter_decision: 'decisions about dead letters may be missing: such messages are dead letters again',
  log_gap: 'gaps that were accepted may no longer be listed',
  rebuild: 'rebuilds may be missing: check `gamenet status`, and discard the tables of that rebuild',
  generation_statement: 'what filled the tables of projections may be missing: rebuild the projections',
  generation_pointer:
    'the generation that is read was chosen by the records of rebuilds, or by an older row: rebuild the projections',
  schema_migration: 'migrations may have been applied a second time'
}

/** Returns how the rows of damaged tables are restored. */
export function repairOf(all: readonly Projection[], damaged: ReadonlySet<string>): Repair {
  const areDeadLettersLost = damaged.has('dead_letter')
  const topics = eventTables.filter(({ table }) => areDeadLettersLost || damaged.has(table)).map(({ topic }) => topic)
  const isEventTable = new Set(eventTables.map(({ table }) => table))
  const isTouched = (projection: Projection) =>
    // Late events are in no range that passes would consume again.
    damaged.has('late_batch') ||
    tablesOf(projection).some((table) => damaged.has(table)) ||
    eventTables.some(({ topic, table }) => topic === projection.from && damaged.has(table)) ||
    readsOf(projection).some((table) => isEventTable.has(table) && damaged.has(table))
  const again = withDependents(all, new Set(all.filter(isTouched).map(({ name }) => name)))
  return {
    damaged,
    topics,
    projections: again,
    incomplete: new Set([
      ...eventTables.map(({ table }) => table).filter((table) => damaged.has(table)),
      ...again.flatMap(tablesOf),
      ...(damaged.has(POSITIONS) ? [POSITIONS] : [])
    ]),
    changesAreLost: damaged.has('data_change'),
    positionsAreLost: damaged.has(POSITIONS),
    lasting: new Map(
      [...damaged].flatMap((table) => {
        const lost = table.includes('__')
          ? 'neither steps nor answers use it, and the service drops it'
          : LASTING[table]
        return lost === undefined ? [] : [[table, lost] as const]
      })
    )
  }
}

/**
 * Cancels the rebuilds that would continue with missing rows, and returns their ids. Call it before any rebuild continues. If the record
 * of import undos is lost, the events of these imports are loaded again: their undos are cancelled too, so that they are repeated.
 */
export async function cancelRebuilds(store: Store, repair: Repair): Promise<number[]> {
  const cancelled: number[] = []
  for (const record of await readRebuilds(store)) {
    const state = stateAfterLoss(record, repair)
    if (state === record.state) continue
    const kept = await storeRebuild(store, record, { state, reason: 'rows that it reads or has written were lost' })
    cancelled.push(kept.id)
  }
  return cancelled
}

function stateAfterLoss(
  record: RebuildRecord,
  { damaged, topics, projections: again }: Repair
): RebuildRecord['state'] {
  const { state, unit, retracts } = record
  const hasLost = tablesToDrop(record).some((table) => damaged.has(table))
  const takes = again.filter(({ name }) => unit.includes(name))
  switch (state) {
    case 'filling':
    case 'paused':
    case 'failed':
    case 'filled':
      return hasLost || takes.length > 0 ? 'cancelled' : state
    case 'swapped':
    case 'dropped': {
      const isReloaded = takes.some(({ from }) => topics.includes(from))
      if (retracts !== null && damaged.has('import_retraction') && isReloaded) return 'cancelled'
      return hasLost ? 'dropped' : state
    }
    default:
      return state
  }
}

/** Events of an event table below `next` that are lost, because the log no longer has them. */
export type MissingEvents = Target & { readonly table: string }

/** The name of the checkpoint that records which events stay lost, over all repairs. */
const goneCheckpoint = (topic: string) => `gone:${topic}`

export async function readMissingEvents(store: Store): Promise<MissingEvents[]> {
  const checkpoints = await Checkpoints.read(store)
  return eventTables.flatMap(({ topic, table }) =>
    checkpoints.of(goneCheckpoint(topic.name)).map((each) => ({ topic: topic.name, table, ...each }))
  )
}

/**
 * Begins a repair: deletes the checkpoints of its topics and projections. Call it while nothing loads or projects.
 * Order: events that stay lost → checkpoints deleted → checkpoints behind these events; after a crash in between it begins again.
 * @param extents where the log's partitions begin and end, at least of the topics that are loaded again
 * @returns the positions at which the repair has ended
 */
export async function beginRepair(
  store: Store,
  all: readonly Projection[],
  { topics, projections: again, changesAreLost, positionsAreLost }: Repair,
  extents: ReadonlyMap<string, readonly PartitionExtent[]>
): Promise<readonly Target[]> {
  if (changesAreLost) {
    const names = all.map(({ name }) => name)
    await announceAllChanged(store, names)
  }
  const written = await storeAt('writes', store, projections)
  const before = await Checkpoints.read(written)
  const names = [
    ...topics.map(({ name }) => loadCheckpoint(name)),
    ...again.map(({ name }) => projectionCheckpoint(name))
  ]
  const gone = topics.flatMap(({ name }) =>
    goneOf(name, before, extents.get(name)).map((each) => ({ topic: name, each }))
  )
  const keep = async (nameOf: (topic: string) => string) => {
    if (gone.length === 0) return
    await written.do(
      storeCheckpoints,
      gone.map(({ topic, each }) => ({ name: nameOf(topic), ...each }))
    )
  }
  await keep(goneCheckpoint)
  if (names.length > 0) await written.do(deleteCheckpoints, names)
  await keep(loadCheckpoint)
  const reloaded = [...topics, ...again.map(({ from }) => from)]
  const toReach = new Set((positionsAreLost ? eventTables.map(({ topic }) => topic) : reloaded).map(({ name }) => name))
  return [...toReach].flatMap((topic) => targetsOf(topic, before, extents.get(topic)))
}

/** Returns how far a topic was loaded from messages that the log no longer has: they are not loaded again. */
function goneOf(topic: string, before: Checkpoints, extents: readonly PartitionExtent[] = []): Progress[] {
  const name = goneCheckpoint(topic)
  // An interrupted repair may have deleted the topic's checkpoint.
  const gone = Checkpoints.of(before.of(name).map((each) => ({ name, ...each })))
  for (const { epoch, partition, next } of before.of(loadCheckpoint(topic))) {
    const extent = extents.find((each) => each.epoch === epoch && each.partition === partition)
    const first = Math.min(next, extent?.first ?? next)
    if (first > 0) gone.advance({ name, epoch, partition, next: first })
  }
  return gone.of(name)
}

/** The topic's checkpoint and the end of the log, whichever is higher: an interrupted repair has deleted the checkpoint. */
function targetsOf(topic: string, before: Checkpoints, extents: readonly PartitionExtent[] = []): Target[] {
  const reached = Checkpoints.of(before.of(loadCheckpoint(topic)).map((each) => ({ name: topic, ...each })))
  for (const { epoch, partition, first, next } of extents) {
    if (first < next) reached.advance({ name: topic, epoch, partition, next })
  }
  return reached.of(topic).map((each) => ({ topic, ...each }))
}

/** Announces that everything of these projections may have changed, in a version above all others. */
export async function announceAllChanged(store: Store, projections: readonly string[], above = 0): Promise<void> {
  await new DataChanges(store, true).announceAll(projections, above)
}

/** Drops detached parts once their rows are restored. */
export async function dropLostParts(store: Store, parts: readonly NamedLostPart[]): Promise<void> {
  for (const { engineTable, part } of parts) await store.do(dropLostPart, { table: engineTable, part })
}

/** Returns the first table of a statement that a repair has not completed yet. Tables of bookkeeping have no generations. */
export function incompleteTableIn(sql: string, incomplete: ReadonlySet<string>): string | undefined {
  const isAboutPositions = incomplete.has(POSITIONS) && sql.includes(`FROM ${POSITIONS} `)
  return isAboutPositions ? POSITIONS : tablesIn(sql).find((table) => incomplete.has(table))
}
