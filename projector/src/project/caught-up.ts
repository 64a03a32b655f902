import {
  errorMessage,
  loadCheckpoint,
  type PartitionExtent,
  pause,
  projectionCheckpoint,
  topics
} from '@gamenet/schemas'
import { storeAt } from '../generations/generations.js'
import type { LogReader } from '../load/log.js'
import { stalledPartitions, stallReports } from '../load/stalled-partitions.js'
import { projections } from '../projections/projections.js'
import { Checkpoints, type Progress } from '../store/checkpoint.js'
import type { Store } from '../store/operation.js'

/** A position in a topic's log: everything below `next`. */
export type Target = Progress & { readonly topic: string }

/** What is watched until it has reached the targets: the parts of a projector, or the checkpoints that others store. */
export type CatchUpWatch = {
  readonly store: Store
  extents(topic: string): Promise<readonly PartitionExtent[]>
  checkpoints(): Promise<Checkpoints>
  /** Resolves after the next pass, if the process knows of it, or after `mostMs`. */
  nextPass(mostMs: number): Promise<void>
  /** Whether a pass runs: progress that no checkpoint shows yet. */
  isInPass(): boolean
  /** Why the loader, or this projection, stands still; null if it is not known. */
  troubleOf(projection?: string): string | null
  readonly standstillMs: number
  readonly signal: AbortSignal
}

const ASK_AGAIN_MS = 100
/** Interval of reads of stored checkpoints. */
const STORED_CHECK_MS = 200
/** Time limit for the log after the wait was aborted. */
const ENDS_MS = 2000

/**
 * Returns the current end of every partition of the log. Retries an unavailable log, see {@link logExtents}; throws if
 * the log lacks the events to be loaded next.
 */
async function targetsAtLogEnd(store: Store, ...asking: Parameters<typeof logExtents>): Promise<Target[]> {
  // Read before the log: events that are loaded meanwhile must not exceed the extents.
  const loaded = await Checkpoints.read(store)
  const ends = await logExtents(...asking)
  const stalled = await stallReports(store, stalledPartitions(ends, loaded))
  if (stalled.length > 0) throw new Error(`${stalled.map(({ reason }) => reason).join('; ')}.`)
  // An empty partition is never read: it never had an event, or retention has deleted all.
  return ends.filter(({ first, next }) => first < next)
}

/**
 * Returns the extents of every topic. Retries until `signal` aborts or for `mostMs`, but for at least two seconds; then
 * rejects with a sentence.
 */
async function logExtents(
  extents: (topic: string) => Promise<readonly PartitionExtent[]>,
  { signal, mostMs = Number.POSITIVE_INFINITY }: { readonly signal: AbortSignal; readonly mostMs?: number }
): Promise<(PartitionExtent & { readonly topic: string })[]> {
  const begun = performance.now()
  let isAsking = false
  let reason = 'it has not answered'
  const ask = async () => {
    isAsking = true
    try {
      const ofTopics = topics.map(async ({ name }) => (await extents(name)).map((each) => ({ topic: name, ...each })))
      return (await Promise.all(ofTopics)).flat()
    } catch (error) {
      reason = errorMessage(error)
      return undefined
    } finally {
      isAsking = false
    }
  }
  for (let answer = ask(); ; ) {
    // A request to an unavailable log takes its time.
    const ends = await Promise.race([answer, pause(ASK_AGAIN_MS)])
    if (ends !== undefined) return ends
    if (isStopped(signal)) throw signal.reason
    const waitedMs = performance.now() - begun
    if (waitedMs >= ENDS_MS && (signal.aborted || waitedMs > mostMs)) {
      throw new Error(`The end of the log cannot be read: ${reason}`)
    }
    if (isAsking) continue
    await pause(ASK_AGAIN_MS)
    answer = ask()
  }
}

/** Returns whether a signal was aborted by a caller, not by its timeout. */
function isStopped(signal: AbortSignal): boolean {
  return signal.aborted && !(signal.reason instanceof DOMException && signal.reason.name === 'TimeoutError')
}

/**
 * Resolves when everything that the log holds at the call (or everything below `targets`) is loaded, and consumed by
 * every projection of its topic. Rejects with a sentence about what lags.
 */
export async function waitForTargets(watch: CatchUpWatch, targets?: readonly Target[]): Promise<void> {
  const { store, standstillMs, signal } = watch
  const end = { signal, mostMs: standstillMs }
  const wanted = targets ?? (await targetsAtLogEnd(store, (topic) => watch.extents(topic), end))
  let reached = -1
  let movedAt = performance.now()
  for (;;) {
    if (isStopped(signal)) throw signal.reason
    const checkpoints = await watch.checkpoints()
    const missing = missingOf(watch, wanted, checkpoints)
    if (missing.length === 0) return
    if (signal.aborted) throw new Error(`The tables have not caught up: ${missing.join('; ')}.`)
    const now = reachedIn(checkpoints, wanted)
    if (now > reached || watch.isInPass()) movedAt = performance.now()
    reached = Math.max(now, reached)
    if (performance.now() - movedAt > standstillMs) {
      throw new Error(`The tables have not caught up, and there is no progress: ${missing.join('; ')}.`)
    }
    await watch.nextPass(Math.min(standstillMs, 1000))
  }
}

/** {@link waitForTargets} by the stored checkpoints, for processes without a projector. */
export async function waitForCheckpoints(
  { store, log }: { readonly store: Store; readonly log: Pick<LogReader, 'extents'> },
  signal: AbortSignal,
  targets?: readonly Target[]
): Promise<void> {
  const served = () => storeAt('reads', store, projections)
  const watch: CatchUpWatch = {
    store: await served(),
    extents: (topic) => log.extents(topic),
    checkpoints: async () => await Checkpoints.read(await served()),
    nextPass: () => pause(STORED_CHECK_MS, signal),
    isInPass: () => false,
    troubleOf: () => null,
    standstillMs: Number.POSITIVE_INFINITY,
    signal
  }
  await waitForTargets(watch, targets)
}

/** Resolves after the next pass, which calls the watchers, or after `mostMs` without one. */
export function nextPass(watchers: Set<() => void>, mostMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      watchers.delete(done)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, mostMs + 1)
    watchers.add(done)
    signal.addEventListener('abort', done, { once: true })
  })
}

/** Returns a sentence for everything that lags behind a target. */
function missingOf(watch: CatchUpWatch, targets: readonly Target[], checkpoints: Checkpoints): string[] {
  const because = (projection?: string) => {
    const trouble = watch.troubleOf(projection)
    return trouble === null ? '' : ` (${trouble})`
  }
  const missing: string[] = []
  for (const { topic, epoch, partition, next } of targets) {
    const at = `${topic}, epoch ${epoch}, partition ${partition}`
    const loaded = checkpoints.next(loadCheckpoint(topic), epoch, partition)
    if (loaded < next) missing.push(`${at} is loaded to ${loaded} of ${next}${because()}`)
    for (const { name, from } of projections) {
      const taken = checkpoints.next(projectionCheckpoint(name), epoch, partition)
      if (from.name !== topic || taken >= Math.min(loaded, next)) continue
      missing.push(`projection ${name}${because(name)} has consumed ${taken} of ${next} of ${at}`)
    }
  }
  return missing
}

/** Returns the sum of the positions of all checkpoints of the targets; it rises with any progress. */
function reachedIn(checkpoints: Checkpoints, targets: readonly Target[]): number {
  let sum = 0
  for (const { topic, epoch, partition, next } of targets) {
    for (const name of checkpointNames(topic)) sum += Math.min(next, checkpoints.next(name, epoch, partition))
  }
  return sum
}

/** Returns the checkpoints of the loader and of every projection of a topic. */
function checkpointNames(topic: string): string[] {
  const readers = projections.filter(({ from }) => from.name === topic)
  return [loadCheckpoint(topic), ...readers.map(({ name }) => projectionCheckpoint(name))]
}
