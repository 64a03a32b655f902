import { type LoaderPort, projections, type ReadingSide, runLoaderWorker } from '@gamenet/projector'
import { createLoader, foldBeside, ProjectionRunner, projectorMetrics } from '@gamenet/projector/parts'
import { topics } from '@gamenet/schemas'
import { Registry } from 'prom-client'
import type { Place } from './place.js'
import type { Process, Running } from './process.js'
import { tablesOver } from './store.js'
import type { Life } from './virtual-time.js'
import type { World } from './world.js'

/** The projections that stand for all shapes: rows, a rollup, the newest, a list, states, boards by a fold, ratings. */
const SIMULATED: readonly string[] = [
  'title-count',
  'title-count-hour',
  'title-latest',
  'leaderboard',
  'leaderboard-history',
  'leaderboard-entry',
  'rating'
]
export const simulatedProjections = projections.filter(({ name }) => SIMULATED.includes(name))
export const simulatedTopics = topics.filter((topic) => simulatedProjections.some(({ from }) => from === topic))

/** Share of readings that die by themselves, as a worker thread may. */
const READING_DEATHS = 0.1
const READING_LIFE_MS = 30_000

/** Loader and projections, put together as `createProjector` does, of which only the parts are here. */
export function runProjector(place: Place, process: Process, onChange: () => void): Running {
  const { world, store, log, postgres, bug } = place
  const logger = loggerOf(world)
  const metrics = projectorMetrics(new Registry(), {
    standing: async () => ({ lag: new Map(), halts: [] }),
    parked: async () => new Map()
  })
  const tables = {
    loader: bug.loaderTables(tablesOver(world, store)),
    runner: bug.runnerTables(tablesOver(world, store))
  }
  const runner: ProjectionRunner = new ProjectionRunner({
    tables: tables.runner,
    serving: async () => bug.projections(simulatedProjections),
    folding: foldBeside(),
    metrics,
    logger,
    onChange,
    onPass: () => undefined,
    isLoaderBusy: () => loader.isBusy(),
    isShared: place.isShared
  })
  const loader = createLoader({
    tables: tables.loader,
    topics: simulatedTopics,
    startReading: async () => startReading(place, process),
    sealKeys: (people) => postgres.sealKeys(people),
    metrics,
    logger,
    onStored: () => runner.wake()
  })
  loader.start()
  runner.start()
  return {
    stop: async () => {
      await loader.stop()
      await runner.stop()
    }
  }

  function startReading({ world: { time, chance } }: Place, of: Process): ReadingSide {
    const main = of.life
    const thread = of.thread('reading')
    const [storing, reading] = channel(world, main, thread)
    const reader = bug.reader({
      extents: (topic) => log.extents(topic),
      commit: (topic, position) => log.commit(topic, position),
      consume: (options) => log.consume(options)
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
        void runLoaderWorker({ port: reading, reader, topics: simulatedTopics }).then(() =>
          time.after(main, 0, resolve)
        )
      })
    }
  }
}

/** Two ends between threads; what is posted arrives in order, as a turn of the other thread. */
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
  const tell = (details: object, message: string) => world.note(`says: ${message} ${JSON.stringify(details, plain)}`)
  return { info: tell, warn: tell, error: tell }
}
