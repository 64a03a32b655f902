import { type LoaderPort, type ReadingSide, runLoaderWorker, type Store } from '@gamenet/projector'
import {
  createLoader,
  DamagedTables,
  Generations,
  keepingPointers,
  type Loader,
  type LoaderOptions,
  ProjectionRunner,
  partsOf,
  projectorMetrics,
  RebuildOperations,
  readPointers,
  stepsEnded
} from '@gamenet/projector/internals'
import { foldInline } from '@gamenet/projector/testing'
import type { Topic } from '@gamenet/schemas'
import { Registry } from 'prom-client'
import { finishInterruptedUndos } from './imports.js'
import type { Place } from './place.js'
import type { Process, Running } from './process.js'
import { locksOf } from './rebuilding.js'
import { simulatedProjections, simulatedTopics } from './simulated.js'
import { storeIn } from './store.js'
import { newerOf } from './tables/newer-program.js'
import type { Life } from './virtual-time.js'
import type { World } from './world.js'

/** Share of reading threads that die without their process. */
const READING_DEATHS = 0.1
const READING_LIFE_MS = 30_000
/** Answers may take longer, and then meet a dropped table. */
export const LONGEST_ANSWER_MS = 3000
/** The consumer group of the loaders of the serving tables. */
const GROUP = 'loader'

export type RunningProjector = Running & {
  readonly rebuilds: RebuildOperations
  readonly runner: ProjectionRunner
  stepsEnded(): Promise<void>
}

/** Loader, projections and rebuilds, composed as in `createProjector`. */
export function runProjector(place: Place, process: Process, onChange: () => void): RunningProjector {
  const { world, postgres, bug, isShared } = place
  const logger = loggerOf(world)
  const stopping = new AbortController()
  const projections = bug.projections(place.isNewer ? newerOf(simulatedProjections) : simulatedProjections)
  const keeping = isShared ? (store: Store) => store : keepingPointers()
  const stores = {
    loader: bug.loaderStore(keeping(storeIn(world, place.tables))),
    runner: bug.runnerStore(keeping(storeIn(world, place.tables))),
    rebuild: bug.rebuildStore(keeping(storeIn(world, place.tables)))
  }
  const locks = locksOf(place)
  const runner: ProjectionRunner = new ProjectionRunner({
    store: stores.runner,
    generations: new Generations(stores.runner, projections, () => false),
    passLock: locks.passes,
    division: locks.division(partsOf(projections)),
    ...{ folding: foldInline(), metrics: metricsOf(), logger },
    onChange,
    onPass: () => undefined,
    onPointers: (pointers) => loader.follow(pointers),
    isLoaderBusy: () => loader.isBusy(),
    isShared
  })
  const loaderOf = (store: Store, topics: readonly Topic[], group: string, live: Partial<LoaderOptions>): Loader =>
    createLoader({
      store,
      topics,
      startReading: async () => startReading(place, process, topics, group),
      sealKeys: (people) => postgres.sealKeys(people),
      metrics: metricsOf(),
      logger,
      onStored: () => undefined,
      ...live
    })
  const rebuilds: RebuildOperations = new RebuildOperations({
    store: stores.rebuild,
    projections,
    runner,
    loader: { whilePaused: (work) => loader.whilePaused(work), extents: (topic) => loader.extents(topic) },
    loaderOf: (store, topic, group) => loaderOf(store, [topic], group, {}),
    folding: foldInline(),
    passLock: locks.passes,
    rebuildLock: locks.rebuilds,
    reservedBytes: () => 1,
    // No simulated table is damaged.
    damaged: new DamagedTables(stores.rebuild, projections),
    areKeysLost: async () => false,
    logger,
    process: process.life.name,
    isShared,
    sizes: place.stepSizes,
    longestAnswerMs: LONGEST_ANSWER_MS,
    catchUpMs: place.conditions.catchUpMs,
    signal: stopping.signal
  })
  const loader = loaderOf(stores.loader, simulatedTopics, GROUP, {
    passLock: locks.passes,
    pointers: () => stores.loader.do(readPointers),
    onStored: () => runner.wake()
  })
  loader.start()
  runner.start()
  rebuilds.open()
  finishInterruptedUndos(place, { rebuilds }).catch((error: Error) =>
    world.note(`cannot finish undos: ${error.message}`)
  )
  return {
    rebuilds,
    runner,
    stepsEnded: () => stepsEnded({ loader, runner, rebuilds }),
    stop: async () => {
      stopping.abort(new Error('The projector was stopped.'))
      await loader.stop()
      await runner.stop()
      await rebuilds.closed()
    }
  }
}

function metricsOf() {
  return projectorMetrics(new Registry(), {
    logState: async () => ({ lag: new Map(), stalled: [] }),
    deadLetters: async () => new Map()
  })
}

function startReading(place: Place, of: Process, topics: readonly Topic[], group: string): ReadingSide {
  const { world, log, bug } = place
  const { time, chance } = world
  const main = of.life
  const thread = of.thread('reading')
  const [storing, reading] = channel(world, main, thread)
  const reader = bug.reader({
    extents: (topic) => log.extents(topic),
    commit: (topic, position) => log.commit(topic, position),
    consume: (options) => log.consume(options, group)
  })
  let die: (error: Error) => void = () => undefined
  const died = new Promise<void>((_, reject) => {
    die = reject
  })
  died.catch(() => undefined)
  const ended = Promise.race([died, new Promise<void>((resolve) => begin(resolve))])
  if (place.areReadingsMortal && chance.happens(READING_DEATHS)) {
    time.after(main, chance.below(READING_LIFE_MS), () => {
      if (thread.isOver || !place.areReadingsMortal) return
      thread.isOver = true
      world.note('its reading thread dies')
      log.noticeDeath(thread)
      die(new Error('the thread ran out of memory'))
    })
  }
  return {
    port: storing,
    ended,
    close: async () => {
      thread.isOver = true
      log.noticeDeath(thread)
    }
  }

  function begin(resolve: () => void): void {
    time.after(thread, 0, () => {
      void runLoaderWorker({ port: reading, reader, topics }).then(() => time.after(main, 0, resolve))
    })
  }
}

/** The two ends of a channel between threads; messages arrive in order, each as a task of the other thread. */
function channel(world: World, main: Life, thread: Life): [LoaderPort, LoaderPort] {
  const listeners: [((message: unknown) => void)[], ((message: unknown) => void)[]] = [[], []]
  const end = (own: 0 | 1, other: Life): LoaderPort => {
    return {
      postMessage: (message) => {
        world.time.after(other, 0, () => {
          for (const listener of listeners[own === 0 ? 1 : 0]) listener(message)
        })
      },
      on: (_, listener) => listeners[own].push(listener)
    }
  }
  return [end(0, thread), end(1, main)]
}

export function loggerOf(world: World) {
  const plain = (_: string, value: unknown) => (value instanceof Error ? value.message : value)
  const write = (details: object, message: string) => world.note(`says: ${message} ${JSON.stringify(details, plain)}`)
  return { info: write, warn: write, error: write }
}
