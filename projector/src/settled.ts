import { loadCheckpoint, projectionCheckpoint, topics } from '@gamenet/schemas'
import { pause, reasonOf } from './backoff.js'
import { Checkpoints, type Progress } from './checkpoint.js'
import { describedHalts, haltsOf } from './halts.js'
import type { Loader } from './loader/loader.js'
import { projections } from './projections.js'
import type { ProjectionRunner } from './run-projections.js'
import type { Tables } from './tables.js'

/** A place in a topic's log: everything below `next`. */
export type Target = Progress & { readonly topic: string }

/** What is watched until it has come far enough. */
export type Watch = {
  readonly runner: ProjectionRunner
  readonly loader: Loader
  readonly loaderTrouble: () => string | null
  /** Called after each pass of the runner. */
  readonly watchers: Set<() => void>
  readonly standstillMs: number
  readonly signal: AbortSignal
}

const ASK_AGAIN_MS = 100

/**
 * The end of every partition of the log now. A log that cannot be asked is asked again until `standstillMs`; one that
 * does not have what is to be loaded next is refused.
 */
export async function headsOf(watch: Watch, tables: Tables): Promise<Target[]> {
  // Read before the log is asked: what is loaded meanwhile must not look like more than there is.
  const loaded = await Checkpoints.read(tables)
  const extents = await askUntilStandstill(watch)
  const halts = await describedHalts(tables, haltsOf(extents, loaded))
  if (halts.length > 0) throw new Error(`${halts.map(({ reason }) => reason).join('; ')}.`)
  // What retention has taken away, or nobody wrote, will never be read.
  return extents.filter(({ first, next }) => first < next)
}

async function askUntilStandstill({ loader, standstillMs, signal }: Watch) {
  const begun = performance.now()
  for (;;) {
    signal.throwIfAborted()
    try {
      const ofTopics = await Promise.all(
        topics.map(async ({ name }) => (await loader.extents(name)).map((each) => ({ topic: name, ...each })))
      )
      return ofTopics.flat()
    } catch (error) {
      if (performance.now() - begun > standstillMs) {
        throw new Error(`The log cannot be asked how far it reaches: ${reasonOf(error)}`, { cause: error })
      }
      await pause(ASK_AGAIN_MS, signal)
    }
  }
}

/** Resolves when every target is loaded and taken by every projection of its topic. */
export async function waitUntilSettled(watch: Watch, targets: readonly Target[]): Promise<void> {
  const { runner, watchers, standstillMs, signal } = watch
  let reached = -1
  let movedAt = performance.now()
  for (;;) {
    signal.throwIfAborted()
    const missing = missingOf(watch, targets)
    if (missing.length === 0) return
    const now = reachedIn(watch, targets)
    if (now > reached || runner.isInPass) movedAt = performance.now()
    reached = Math.max(now, reached)
    if (performance.now() - movedAt > standstillMs) {
      throw new Error(`Not everything can be read, and nothing moves: ${missing.join('; ')}.`)
    }
    await nextPass(watchers, Math.min(standstillMs, 1000), signal)
  }
}

/** Resolves after the next pass, or after `mostMs` when passes fail to come. */
function nextPass(watchers: Set<() => void>, mostMs: number, signal: AbortSignal): Promise<void> {
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

/** A sentence for everything that is behind a target. */
function missingOf({ runner, loaderTrouble }: Watch, targets: readonly Target[]): string[] {
  const { checkpoints } = runner
  const missing: string[] = []
  for (const { topic, epoch, partition, next } of targets) {
    const at = `${topic}, epoch ${epoch}, partition ${partition}`
    const loaded = checkpoints.next(loadCheckpoint(topic), epoch, partition)
    if (loaded < next) {
      const trouble = loaderTrouble()
      missing.push(`${at} is loaded to ${loaded} of ${next}${trouble === null ? '' : ` (${trouble})`}`)
    }
    for (const { name, from } of projections) {
      const taken = checkpoints.next(projectionCheckpoint(name), epoch, partition)
      if (from.name !== topic || taken >= Math.min(loaded, next)) continue
      const { state, reason } = runner.state(name)
      missing.push(`projection ${name} (${reason ?? state}) has taken ${taken} of ${next} of ${at}`)
    }
  }
  return missing
}

function reachedIn({ runner: { checkpoints } }: Watch, targets: readonly Target[]): number {
  let sum = 0
  for (const { topic, epoch, partition, next } of targets) {
    const names = projections.filter(({ from }) => from.name === topic).map(({ name }) => projectionCheckpoint(name))
    for (const name of [loadCheckpoint(topic), ...names])
      sum += Math.min(next, checkpoints.next(name, epoch, partition))
  }
  return sum
}
