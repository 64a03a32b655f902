import type { Topic } from '@gamenet/schemas'
import type { Folding } from '../folding/folding.js'
import type { StepContext } from '../folding/step.js'
import { type Generations, ownerOf, ownersOf, projectionOf } from '../generations/generations.js'
import type { PassLock } from '../generations/pass-lock.js'
import type { Loader } from '../load/loader.js'
import type { Logger } from '../logger.js'
import type { ProjectionRunner } from '../project/run-projections.js'
import { eventOwner, namesOf, type Owner, type Pointers, readPointers } from '../store/generation.js'
import type { Store, TableNames } from '../store/operation.js'
import type { Projection } from '../store/projection.js'
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
  readonly generations: Pick<Generations, 'current'>
  readonly runner: Pick<ProjectionRunner, 'betweenPasses' | 'stepOnce' | 'announceAll' | 'wakeForLate'>
  /** The live loader. */
  readonly loader: Pick<Loader, 'whilePaused'>
  /**
   * Returns a loader of one topic, not started. It begins at the checkpoint in these tables or at the log's beginning, reads
   * in the consumer group `group`, and stores under the lock.
   */
  readonly loaderOf: (store: Store, topic: Topic, group: string, lock: Pick<PassLock, 'shared'>) => Loader
  readonly folding: Folding
  readonly passLock: PassLock
  readonly steps: RebuildSteps
  readonly reservedBytes: ReservedBytes
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

/** Returns the projections of a rebuild, by the statements that fill its tables. */
export function unitOf(record: RebuildRecord): readonly Projection[] {
  return record.unit.map((name) => projectionOf(record.definitions[name] ?? ''))
}

/** Returns the topic whose event table a rebuild loads from the log; undefined if it loads none. */
export function reloadedTopic(record: RebuildRecord): Topic | undefined {
  return record.isFromLog ? unitOf(record)[0]?.from : undefined
}

/** Returns the owners of a rebuild's tables. */
export function ownersIn(record: RebuildRecord): Owner[] {
  const topic = reloadedTopic(record)
  return [...(topic === undefined ? [] : [eventOwner(topic)]), ...unitOf(record).map(ownerOf)]
}

/** Returns the tables and checkpoints of a rebuild that answers do not read, by the names in statements. */
export function waitingNames(record: RebuildRecord): TableNames {
  const owned = ownersIn(record).flatMap((owner) => [...namesOf(owner, record.generations[owner.owner] ?? record.id)])
  return new Map([...owned, ...Object.entries(record.tables), ...Object.entries(record.helpers)])
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
