import {
  type Backoff,
  type Logger,
  loadCheckpoint,
  type PartitionExtent,
  pause,
  projectionCheckpoint,
  type StalledPartition,
  type Topic,
  topics
} from '@gamenet/schemas'
import { Registry } from 'prom-client'
import { deadLetterCounter } from './dead-letters/dead-letter-counter.js'
import { type Folding, foldInThread } from './folding/folding.js'
import { DamagedTables } from './generations/damaged-tables.js'
import { Generations, storeAt } from './generations/generations.js'
import { LOCAL_PASS_LOCK, type PassLock } from './generations/pass-lock.js'
import { createLoader, type Loader, type ReadingSide, type Share } from './load/loader.js'
import { type LagSeconds, type LogState, projectorMetrics } from './load/projector-metrics.js'
import { keysUnknown, type SealKeys } from './load/seal-key-cache.js'
import { type StallReport, stalledPartitions, stallReports } from './load/stalled-partitions.js'
import { type CatchUpWatch, nextPass, type Target, waitForTargets } from './project/caught-up.js'
import { type Division, type Parts, partsOf, UNDIVIDED } from './project/division.js'
import { LagClock } from './project/lag-clock.js'
import { lagOf } from './project/plan.js'
import { answeredExtents, placed, type TopicProgress, topicProgress } from './project/progress.js'
import { ProjectionRunner, type ProjectionState } from './project/run-projections.js'
import { projections } from './projections/projections.js'
import type { ImportUndos, Rebuilds } from './rebuild/contract.js'
import type { ReservedBytes } from './rebuild/free-space.js'
import { registerRebuildGauge } from './rebuild/rebuild-gauge.js'
import { RebuildOperations } from './rebuild/rebuild-operations.js'
import { Checkpoints, type Progress } from './store/checkpoint.js'
import { keepingPointers, readPointers } from './store/generation.js'
import { type Store, storeOver } from './store/operation.js'
import type { Projection } from './store/projection.js'
import type { Tables } from './store/tables.js'

/** A share of one topic's partitions, read completely by its own `group`. */
export type ReloadShare = { readonly topic: string; readonly group: string; readonly share: Share }

export type ProjectorOptions = {
  /** Separate connections, so that none waits for another; all on migrated tables. */
  readonly tables: { readonly loader: Tables; readonly projections: Tables; readonly rebuild: Tables }
  /**
   * Starts the reader of the log: a worker thread that calls `runLoaderWorker`. All topics, or for a reload a share of
   * one topic's partitions.
   */
  readonly startReading: (only?: ReloadShare) => Promise<ReadingSide>
  /** Number of reading sides of a reload, each with its share of the partitions. Default: 1. */
  readonly reloadReaders?: number
  /**
   * Returns the seal keys of these people; deleted ones are missing. A rejection delays only the topics about people,
   * and is retried.
   */
  readonly sealKeys: (people: readonly number[]) => Promise<SealKeys>
  /**
   * Returns the erased ones of these people. Loading drops only their events. Default: all.
   */
  readonly erasedPeople?: (people: readonly number[]) => Promise<ReadonlySet<number>>
  /** The damaged tables, which are rebuilt. Default: none. */
  readonly damaged?: DamagedTables
  /**
   * Whether an operator has accepted that PostgreSQL lacks keys of people: then their new events are dropped, and
   * nothing about people is loaded again by itself.
   */
  readonly areKeysLost?: () => Promise<boolean>
  /** Executes folds. Default: a separate thread. Closed at `stop`. */
  readonly folding?: Folding
  /** Default: those of this program; other ones need the same names. */
  readonly projections?: readonly Projection[]
  readonly registry: Registry
  readonly logger: Logger
  /** True if other processes work on the same tables. */
  readonly isShared?: boolean
  /** Cross-process lock between passes and work that needs unchanging tables; set when several projectors may run. */
  readonly passLock?: PassLock
  /** Divides the passes of this program among its projectors; set likewise. Without it, each runs all. */
  readonly division?: (parts: Parts) => Division
  /** Cross-process lock between steps of rebuilds and work that waits for them; set likewise. */
  readonly rebuildLock?: PassLock
  /**
   * Bytes to keep free on the disk of the tables: a rebuild that would use them is refused, and a running one is
   * paused.
   */
  readonly reservedBytes?: ReservedBytes
  /** Returns a failure of a rebuild as it is reported; it may name a way out. */
  readonly explain?: (error: unknown) => Promise<unknown>
  /**
   * Longest duration of a statement of answers, in ms: the former tables are dropped that long after a swap. Default:
   * 60,000.
   */
  readonly longestAnswerMs?: number
  /** Longest wait of a swap for passes, in ms; then nothing is swapped. Default: 60,000. */
  readonly catchUpMs?: number
  /** Called after each stored change, so that answers in this process read newer data at once. */
  readonly onChange: () => void
  /** Delays of failed steps; for tests. */
  readonly backoff?: Backoff
}

export type TopicStatus = TopicProgress & {
  /** Events of the log that are not loaded; null while it is unavailable. */
  readonly lag: number | null
  /** Age of the oldest event that is not loaded. */
  readonly lagSeconds: number
  readonly deadLetters: number
}

export type ProjectionStatus = ProjectionState & {
  readonly projection: string
  readonly checkpoints: readonly Progress[]
  /** Loaded events that it has not consumed yet. */
  readonly lag: number
  /** Age of the oldest event, loaded or not, that it has not consumed. */
  readonly lagSeconds: number
}

export type ProjectorStatus = {
  readonly topics: readonly TopicStatus[]
  readonly projections: readonly ProjectionStatus[]
  /** Partitions that are stalled until an operator decides; the others continue. */
  readonly stalled: readonly StallReport[]
  /** Why loading is stalled at the moment, else null. */
  readonly loaderTrouble: string | null
}

export type Projector = {
  /** Starts loading and projecting. Returns at once; failures appear in `status` and are retried. */
  start(): void
  /** Ends both after the current statements. */
  stop(): Promise<void>
  status(): Promise<ProjectorStatus>
  /**
   * Notifies that events were stored behind the checkpoints, by {@link retryDeadLetters} or another process: they are
   * projected at once.
   */
  wakeForLate(): void
  /**
   * Resolves when everything that the log held at the call (or everything below `targets`) is loaded and projected.
   * Rejects with what is stalled after `standstillMs` (30,000) without progress or after the timeout of `signal`, with
   * the signal's reason if it was aborted otherwise, or at `stop`.
   */
  caughtUp(options?: {
    readonly targets?: readonly Target[]
    readonly standstillMs?: number
    readonly signal?: AbortSignal
  }): Promise<void>
  /**
   * Resolves when every running step that writes rows, live or of a rebuild in any process, has ended: later steps read
   * the current tables.
   */
  stepsEnded(): Promise<void>
  /** Runs a step that writes rows; {@link stepsEnded} and import undos wait for it. */
  inStep<Result>(step: () => Promise<Result>): Promise<Result>
  /** Rebuilds of read tables while the old ones serve. */
  readonly rebuilds: Rebuilds
  /** Undoes imports. */
  readonly importUndos: ImportUndos
}

const STANDSTILL_MS = 30_000
/** Interval between two observations of the log's heads: how much too high a lag in seconds can be. */
const OBSERVE_MS = 10_000
const TOPIC_NAMES = topics.map(({ name }) => name)

/** Creates a projector, log → event tables → read tables: the loader, the projections, and their status. */
export function createProjector(options: ProjectorOptions): Projector {
  const { logger, isShared = false, passLock = LOCAL_PASS_LOCK, projections: own = projections } = options
  const { projections: store, rebuild: rebuildStore, loader: loaderStore } = storesOf(options)
  const damaged = options.damaged ?? new DamagedTables(rebuildStore, own)
  const stopping = new AbortController()
  const watchers = new Set<() => void>()
  const countDeadLetters = deadLetterCounter(store, logger)
  const lagClock = new LagClock(Date.now())
  const metrics = projectorMetrics(options.registry, {
    logState: () => logStateOf(loader, () => runner.checkpoints, lagClock),
    deadLetters: countDeadLetters
  })
  registerRebuildGauge(options.registry, store, logger)
  const backoff = options.backoff === undefined ? {} : { backoff: options.backoff }
  const folding = options.folding ?? foldInThread()

  const runner: ProjectionRunner = new ProjectionRunner({
    store,
    generations: new Generations(store, own, (name) => damaged.has(name)),
    passLock,
    division: options.division?.(partsOf(own)) ?? UNDIVIDED,
    ...{ folding, metrics, logger },
    onChange: options.onChange,
    onPass: () => watchers.forEach((watch) => void watch()),
    onPointers: (pointers) => loader.follow(pointers),
    isLoaderBusy: () => loader.isBusy(),
    isShared,
    ...backoff
  })
  const rebuilds: RebuildOperations = new RebuildOperations({
    store: rebuildStore,
    projections: own,
    runner,
    loader: { whilePaused: (work) => loader.whilePaused(work), extents: (topic) => loader.extents(topic) },
    loaderOf: (...of) => loaderOf(options, ...of),
    // Separate, so that a live step does not wait for a rebuild's chunk.
    folding: options.folding ?? foldInThread(),
    passLock,
    rebuildLock: options.rebuildLock ?? LOCAL_PASS_LOCK,
    longestAnswerMs: options.longestAnswerMs,
    catchUpMs: options.catchUpMs,
    reservedBytes: options.reservedBytes ?? (() => 0),
    damaged,
    areKeysLost: options.areKeysLost ?? (async () => false),
    explain: options.explain,
    logger,
    isShared,
    signal: stopping.signal
  })
  const loader: Loader = createLoader({
    store: loaderStore,
    topics,
    startReading: () => options.startReading(),
    sealKeys: (people) => keysOrErasures(options, people),
    ...{ metrics, logger },
    onStored: () => runner.wake(),
    passLock,
    pointers: () => loaderStore.do(readPointers),
    ...backoff
  })
  return {
    start: () => startAll({ loader, runner, rebuilds, lagClock, signal: stopping.signal }),
    stop: async () => {
      stopping.abort(new Error('The projector was stopped.'))
      for (const part of [loader, runner]) await part.stop()
      await rebuilds.closed()
      await folding.close()
    },
    wakeForLate: () => runner.wakeForLate(),
    status: () => statusOf({ store, loader, runner, lagClock, countDeadLetters }),
    caughtUp: (asked = {}) => waitForRunner({ store, runner, watchers, loader, signal: stopping.signal }, asked),
    stepsEnded: () => stepsEnded({ loader, runner, rebuilds }),
    inStep: (step) => rebuilds.inStep(step),
    rebuilds,
    importUndos: rebuilds.importUndos
  }
}

/** Returns a store for each connection. They cache the pointers if no other process can write them. */
function storesOf({ tables: { loader, projections, rebuild }, isShared = false }: ProjectorOptions) {
  const keeping = isShared ? (store: Store) => store : keepingPointers()
  const over = (tables: Tables) => keeping(storeOver(tables))
  return { loader: over(loader), projections: over(projections), rebuild: over(rebuild) }
}

function startAll(parts: {
  readonly loader: Loader
  readonly runner: ProjectionRunner
  readonly rebuilds: RebuildOperations
  readonly lagClock: LagClock
  readonly signal: AbortSignal
}): void {
  parts.loader.start()
  parts.runner.start()
  parts.rebuilds.open()
  void observeHeads(parts.loader, parts.lagClock, parts.signal)
}

async function waitForRunner(
  of: Pick<Seen, 'store' | 'loader' | 'runner'> & { readonly watchers: Set<() => void>; readonly signal: AbortSignal },
  { targets, standstillMs = STANDSTILL_MS, signal: asked }: NonNullable<Parameters<Projector['caughtUp']>[0]>
): Promise<void> {
  const { store, loader, runner, watchers } = of
  const signal = asked === undefined ? of.signal : AbortSignal.any([asked, of.signal])
  const watch: CatchUpWatch = {
    store: await storeAt('reads', store, projections),
    extents: (topic) => loader.extents(topic),
    checkpoints: async () => runner.checkpoints,
    nextPass: (mostMs) => nextPass(watchers, mostMs, signal),
    isInPass: () => runner.isInPass,
    troubleOf: (projection) => {
      if (projection === undefined) return troubleOf(loader)
      const { state, reason } = runner.state(projection)
      return reason ?? state
    },
    standstillMs,
    signal
  }
  await waitForTargets(watch, targets)
}

/** Resolves when every running step that writes rows has ended: see {@link Projector}. */
export async function stepsEnded(of: {
  readonly loader: Pick<Loader, 'whilePaused'>
  readonly runner: ProjectionRunner
  readonly rebuilds: RebuildOperations
}): Promise<void> {
  await of.loader.whilePaused(() => of.runner.betweenPasses(async () => undefined))
  await of.rebuilds.stepsEnded()
}

const LOG_SILENT = 'the end of the log is unknown'

/** The parts of a projector that its status reads. */
type Seen = {
  readonly store: Store
  readonly loader: Loader
  readonly runner: ProjectionRunner
  readonly lagClock: LagClock
  /** Unreadable messages by topic. */
  readonly countDeadLetters: () => Promise<ReadonlyMap<string, number>>
}

async function statusOf(seen: Seen): Promise<ProjectorStatus> {
  const { store, loader, runner, countDeadLetters } = seen
  const before = runner.hasPassed
    ? runner.checkpoints
    : await Checkpoints.read(await storeAt('reads', store, projections))
  const [extents, deadLetters] = await Promise.all([answeredExtents(loader), countDeadLetters()])
  const checkpoints = runner.hasPassed ? runner.checkpoints : before
  const stalled = await stallReports(store, stallsOf(loader, extents, before))
  const lagSeconds = observedLag(seen.lagClock, extents, checkpoints)
  return {
    topics: topics.map(({ name }) => ({
      ...topicStatus(name, extents.get(name), checkpoints, deadLetters.get(name) ?? 0),
      lagSeconds: lagSeconds.topics.get(name) ?? 0
    })),
    projections: projections.map((each) => ({
      projection: each.name,
      ...runner.state(each.name),
      checkpoints: checkpoints.of(projectionCheckpoint(each.name)),
      lag: lagOf(each, checkpoints),
      lagSeconds: lagSeconds.projections.get(each.name) ?? 0
    })),
    stalled,
    loaderTrouble: troubleOf(loader) ?? stalled[0]?.reason ?? (extents.size < topics.length ? LOG_SILENT : null)
  }
}

/** Creates a separate loader of one topic; its rows are not counted in the metrics. */
function loaderOf(
  options: ProjectorOptions,
  store: Store,
  topic: Topic,
  group: string,
  passes: Pick<PassLock, 'shared'>
): Loader {
  return createLoader({
    store,
    topics: [topic],
    startReading: (share) => options.startReading({ topic: topic.name, group: `${group}-${share.index}`, share }),
    readers: options.reloadReaders,
    sealKeys: (people) => keysOrErasures(options, people),
    metrics: projectorMetrics(new Registry(), {
      logState: async () => ({ lag: new Map(), stalled: [] }),
      deadLetters: async () => new Map()
    }),
    logger: options.logger,
    onStored: () => {},
    passLock: passes
  })
}

/** Returns the keys of people. Throws {@link keysUnknown} if one is missing that was neither erased nor lost. */
async function keysOrErasures(
  { sealKeys, erasedPeople, areKeysLost }: Pick<ProjectorOptions, 'sealKeys' | 'erasedPeople' | 'areKeysLost'>,
  people: readonly number[]
): Promise<SealKeys> {
  const keys = await sealKeys(people)
  const missing = people.filter((person) => !keys.has(person))
  if (missing.length === 0 || erasedPeople === undefined || (await areKeysLost?.())) return keys
  const erased = await erasedPeople(missing)
  const unknown = missing.filter((person) => !erased.has(person))
  if (unknown.length > 0) throw keysUnknown(unknown)
  return keys
}

function troubleOf(loader: Loader): string | null {
  const { reading, storing } = loader.trouble()
  if (storing !== null) return `loading ${storing.topic}: ${storing.reason}`
  return reading === null ? null : `reading the log: ${reading}`
}

async function logStateOf(loader: Loader, checkpoints: () => Checkpoints, lagClock: LagClock): Promise<LogState> {
  // Read before the log: events that are loaded meanwhile must not exceed the extents.
  const before = checkpoints()
  const extents = await answeredExtents(loader)
  return {
    lag: new Map([...extents].map(([topic, partitions]) => [topic, lagIn(topic, partitions, checkpoints())])),
    lagSeconds: observedLag(lagClock, extents, checkpoints()),
    stalled: stallsOf(loader, extents, before)
  }
}

/** Observes the heads of the log at an interval, so that the lag is correct even if no metrics are collected. */
async function observeHeads(loader: Loader, lagClock: LagClock, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await pause(OBSERVE_MS, signal, { ref: false })
    if (!signal.aborted) lagClock.observe(Date.now(), TOPIC_NAMES, await answeredExtents(loader))
  }
}

/** Records the heads of the log, and returns the lag in seconds. */
function observedLag(lagClock: LagClock, extents: Extents, checkpoints: Checkpoints): LagSeconds {
  const nowMs = Date.now()
  lagClock.observe(nowMs, TOPIC_NAMES, extents)
  const seconds = (topic: string, reader: string) =>
    lagClock.secondsBehind(nowMs, topic, (epoch, partition) => checkpoints.next(reader, epoch, partition))
  return {
    topics: new Map(topics.map(({ name }) => [name, seconds(name, loadCheckpoint(name))])),
    projections: new Map(projections.map(({ name, from }) => [name, seconds(from.name, projectionCheckpoint(name))]))
  }
}

type Extents = ReadonlyMap<string, readonly PartitionExtent[]>

/**
 * Returns the partitions whose next offsets are missing in the log or in a damaged batch, or were until a recreated log
 * grew past them.
 */
function stallsOf(loader: Loader, extents: Extents, checkpoints: Checkpoints): StalledPartition[] {
  const met = loader.stalled().filter(({ topic, epoch, partition, wanted }) => {
    return checkpoints.next(loadCheckpoint(topic), epoch, partition) <= wanted
  })
  const all = [...met, ...stalledPartitions(placed(extents), checkpoints)]
  return [...new Map(all.map((each) => [`${each.topic}/${each.epoch}/${each.partition}`, each])).values()]
}

function lagIn(topic: string, extents: readonly PartitionExtent[], checkpoints: Checkpoints): number {
  const name = loadCheckpoint(topic)
  return extents.reduce((sum, { epoch, partition, first, next }) => {
    return sum + Math.max(0, next - Math.max(first, checkpoints.next(name, epoch, partition)))
  }, 0)
}

function topicStatus(
  topic: string,
  extents: readonly PartitionExtent[] | undefined,
  checkpoints: Checkpoints,
  deadLetters: number
): Omit<TopicStatus, 'lagSeconds'> {
  const lag = extents === undefined ? null : lagIn(topic, extents, checkpoints)
  return { ...topicProgress(topic, extents, checkpoints), lag, deadLetters }
}
