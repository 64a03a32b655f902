import { generationName, type Logger, loadCheckpoint, type Topic, topics } from '@gamenet/schemas'
import { eventTableName } from '../events/event-table.js'
import type { Folding } from '../folding/folding.js'
import type { StepContext } from '../folding/step.js'
import type { DamagedTables } from '../generations/damaged-tables.js'
import { ownerOf, ownersOf, type Unlike, unlike } from '../generations/generations.js'
import type { PassLock } from '../generations/pass-lock.js'
import type { Loader } from '../load/loader.js'
import type { ProjectionRunner } from '../project/run-projections.js'
import { namesOf, type Pointers, readFilled, readPointers } from '../store/generation.js'
import type { Store, TableNames } from '../store/operation.js'
import { type Projection, readsOf, tablesOf } from '../store/projection.js'
import { RebuildRefused } from './contract.js'
import type { StepSizes } from './fill.js'
import type { ReservedBytes } from './free-space.js'
import type { RebuildRecord } from './rebuild-record.js'
import type { RebuildSteps } from './rebuild-steps.js'

/** The environment of rebuilds. */
export type RebuildContext = {
  /** A separate connection, so that live steps never wait for a rebuild's. */
  readonly store: Store
  /** The projections of this program, whose statements fill the tables. */
  readonly projections: readonly Projection[]
  readonly runner: Pick<ProjectionRunner, 'betweenPasses' | 'stepOnce' | 'announceChanged' | 'wakeForLate'>
  /** The live loader. */
  readonly loader: Pick<Loader, 'whilePaused' | 'extents'>
  /**
   * Returns a loader of one topic, not started. It begins at the checkpoint in these tables or at the log's beginning,
   * reads in the consumer group `group`, and stores under the lock.
   */
  readonly loaderOf: (store: Store, topic: Topic, group: string, lock: Pick<PassLock, 'shared'>) => Loader
  readonly folding: Folding
  readonly passLock: PassLock
  readonly steps: RebuildSteps
  readonly reservedBytes: ReservedBytes
  readonly damaged: DamagedTables
  /**
   * Whether PostgreSQL lacks keys of people: then nothing about people is loaded again by itself, because a missing key
   * reads as an erasure.
   */
  readonly areKeysLost: () => Promise<boolean>
  readonly logger: Logger
  /** Returns a failure of a fill as it is reported; it may name a way out. */
  readonly explain?: ((error: unknown) => Promise<unknown>) | undefined
  /** The unique name of this process. */
  readonly process: string
  /** Whether other processes may work on the same tables. */
  readonly isShared: boolean
  readonly sizes: StepSizes
  /** Longest duration of statements of answers, in ms: the generation that they read before a swap is dropped later. */
  readonly longestAnswerMs: number
  /** Longest wait of a swap for passes, in ms. */
  readonly catchUpMs: number
  readonly signal: AbortSignal
}

/** Returns the projections of a rebuild. */
export function unitOf({ projections }: Pick<RebuildContext, 'projections'>, { unit }: RebuildRecord) {
  return projections.filter(({ name }) => unit.includes(name))
}

/** Returns why this program must not continue the tables of a rebuild: other statements fill them. */
export async function foreignStatementsIn(
  { store, projections }: Pick<RebuildContext, 'store' | 'projections'>,
  { unit, waiting }: RebuildRecord
): Promise<Unlike | undefined> {
  const filled = await store.do(readFilled)
  for (const name of unit) {
    const own = projections.find((each) => each.name === name)
    if (own === undefined) return { isOutdated: true, reason: `this program has no projection ${name}` }
    const generation = waiting.find(({ owner }) => owner === ownerOf(own).owner)?.generation
    const filledBy = filled.find((each) => each.projection === name && each.generation === generation)
    const found = filledBy && unlike(own, filledBy)
    if (found !== undefined) return found
  }
  return undefined
}

/** Throws a {@link RebuildRefused} if other statements than this program's fill the tables of a rebuild. */
export async function requireOwnStatements(context: RebuildContext, record: RebuildRecord): Promise<void> {
  const found = await foreignStatementsIn(context, record)
  if (found === undefined) return
  const { id, projection } = record
  throw new RebuildRefused(`Rebuild ${id} of ${projection} belongs to another version of the program: ${found.reason}.`)
}

/**
 * Throws a {@link RebuildRefused} if these projections read a damaged table that a rebuild does not fill: what it fills
 * would lack rows, and be read.
 */
export async function requireSoundSources(
  context: Pick<RebuildContext, 'store' | 'projections' | 'damaged'>,
  unit: readonly Projection[],
  reloaded: Topic | undefined
): Promise<void> {
  const { names } = await liveOf(context)
  const filled = new Set([...unit.flatMap(tablesOf), ...(reloaded === undefined ? [] : [eventTableName(reloaded)])])
  const read = unit.flatMap((each) => [eventTableName(each.from), ...readsOf(each)])
  const table = read.find((each) => !filled.has(each) && context.damaged.has(names.get(each) ?? each))
  if (table === undefined) return
  throw new RebuildRefused(
    `Rows of ${table} may be missing until its repair has ended, and this rebuild reads it. Repeat it when gamenet ` +
      `status reports no damaged table.`
  )
}

/** Returns the topic whose event table a rebuild loads from the log; undefined if it loads none. */
export function reloadedTopic({ waiting, isFromLog }: RebuildRecord): Topic | undefined {
  return isFromLog ? topics.find(({ name }) => loadCheckpoint(name) === waiting[0]?.owner) : undefined
}

/** Returns the tables of a rebuild that answers do not read, by the names in statements. */
export function waitingTables({ waiting }: Pick<RebuildRecord, 'waiting'>): Record<string, string> {
  return Object.fromEntries(
    waiting.flatMap(({ tables, generation }) =>
      tables.map((table) => [table, generationName(table, generation)] as const)
    )
  )
}

/** Returns the tables and checkpoints of a rebuild that answers do not read, by the names in statements. */
export function waitingNames({ waiting, helpers }: RebuildRecord): TableNames {
  const owned = waiting.flatMap((each) => [...namesOf(each, each.generation)])
  return new Map([...owned, ...Object.entries(helpers)])
}

/** The tables that live steps write, at one instant. */
export type Live = { readonly pointers: Pointers; readonly names: TableNames; readonly store: Store }

export async function liveOf({ store, projections }: Pick<RebuildContext, 'store' | 'projections'>): Promise<Live> {
  const pointers = await store.do(readPointers)
  const names = pointers.names('writes', ownersOf(projections))
  return { pointers, names, store: store.with({ names }) }
}

/** Returns the view of a rebuild's steps: its tables, and for other owners those of live steps. */
export function stepContextOf(
  { store, folding, signal, steps, isShared }: RebuildContext,
  record: RebuildRecord,
  live: Live
): StepContext {
  return {
    store: store.with({ names: new Map([...live.names, ...waitingNames(record)]) }),
    folding,
    signal,
    isShared,
    inStep: (step) => steps.run(step)
  }
}
