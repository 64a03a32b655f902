import { type Bug, bugOf } from './bugs.js'
import { runIngest } from './ingest.js'
import { SimulatedLog } from './log.js'
import { faultsIn, isCaughtUp } from './oracle.js'
import { type Place, TITLE_IDS, USERS } from './place.js'
import { Process, type Running } from './process.js'
import { runProjector, simulatedTopics } from './projector.js'
import { answer, answerText, Follower, QUESTIONS, type Reading, runReader } from './reader.js'
import { type Played, Store } from './store.js'
import { Upstream } from './upstream.js'
import { BEGIN_MS, type Life, WORLD } from './virtual-time.js'
import { ENGINES, World } from './world.js'
import { SimulatedPostgres } from './write-side.js'

/** What became of one seed. */
export type Outcome = {
  readonly seed: number
  /** What was not as it must be; none: the seed passed. */
  readonly faults: readonly string[]
  readonly events: number
  readonly deaths: number
  /** Equal in two runs of a seed: everything happened alike. */
  readonly fingerprint: string
  readonly trace: readonly string[]
  readonly played: readonly Played[]
}

export type SeedOptions = {
  readonly bug?: string
  readonly isTraced?: boolean
  readonly isPlayed?: boolean
  readonly isCalm?: boolean
}

const LIVELY_MS = { least: 12_000, most: 40_000 }
const SETTLED_MS_MAX = 1_200_000
const CHECK_EVERY_MS = 500
/** Readers ask every two seconds, and a question from before the calm may be on its way for eight. */
const HEARD_MS = 12_000
const SHORTEST_S = 4

/** Lives through one world: some minutes of facts and of everything that goes wrong, then calm, then the comparison. */
export async function runSeed(seed: number, options: SeedOptions = {}): Promise<Outcome> {
  const world = new World(seed, options.isTraced === true)
  if (options.isCalm === true) world.calm()
  const place = placeOf(world, bugOf(options.bug), options)
  const uninstall = world.time.install()
  const town = new Town(place, options.isCalm === true)
  const broken: string[] = []
  const onRejection = (error: unknown) => {
    broken.push(`nobody took a failure: ${error instanceof Error ? error.stack : String(error)}`)
  }
  process.on('unhandledRejection', onRejection)
  try {
    town.begin()
    await world.time.run(BEGIN_MS + world.chance.between(LIVELY_MS.least, LIVELY_MS.most))
    const faults = await town.settle()
    return {
      seed,
      faults: [...broken, ...faults],
      events: world.time.events,
      deaths: town.deaths,
      fingerprint: `${world.time.events}/${world.time.nowMs}/${world.chance.state}`,
      trace: world.trace,
      played: place.store.played ?? []
    }
  } finally {
    for (const each of town.processes) each.die()
    uninstall()
    process.off('unhandledRejection', onRejection)
  }
}

function placeOf(world: World, bug: Bug, { isPlayed = false }: SeedOptions): Place {
  const store = new Store({ isPlayed, definitions: bug.tables })
  Object.assign(store.folds, bug.folds)
  const titles = TITLE_IDS.map(
    (titleId, n) => `${JSON.stringify([0, 0, n, '', '', '2026-03-14 20:00:00.000', titleId])}\n`
  )
  const columns = ['epoch', 'partition', 'offset', 'source', 'import_id', 'observed_at', 'title_id']
  store.insertLines('event_title', columns, titles.join(''))
  return {
    world,
    store,
    log: new SimulatedLog(
      world,
      simulatedTopics.map(({ name }) => name),
      world.chance.between(1, 3)
    ),
    postgres: new SimulatedPostgres(world, SHORTEST_S),
    upstream: new Upstream(world, TITLE_IDS),
    bug,
    acknowledged: new Set(),
    isShared: world.chance.happens(0.6),
    areReadingsMortal: true,
    isLively: true
  }
}

/** The processes of one installation, and whatever happens to them. */
class Town {
  deaths = 0
  readonly processes: readonly Process[]
  readonly #place: Place
  readonly #follower = new Follower()
  readonly #isCalm: boolean
  readonly #disturbances: readonly (() => void)[]
  #reading: { process: Process; reading: Reading } | undefined

  constructor(place: Place, isCalm: boolean) {
    const { world } = place
    this.#place = place
    this.#isCalm = isCalm
    this.processes = place.isShared ? this.#several() : this.#alone()
    world.onDeath = (life) => this.#dieOf(life)
    this.#disturbances = this.#kinds().filter(() => world.chance.happens(0.6))
  }

  begin(): void {
    for (const each of this.processes) each.start()
    const { world, upstream, postgres } = this.#place
    const { chance } = world
    this.#often(2000, () => upstream.move(chance.oneOf(TITLE_IDS)))
    this.#often(4000, () => {
      const stars = chance.between(1, 5)
      postgres.rate(chance.oneOf(USERS), chance.oneOf(USERS), stars).catch(() => undefined)
    })
    if (!this.#isCalm) {
      this.#often(6000, () => {
        if (this.#disturbances.length > 0) chance.oneOf(this.#disturbances as [() => void])()
      })
    }
  }

  /** Everything that went wrong ends; when all has come to rest, it is compared. */
  async settle(): Promise<string[]> {
    const { world, postgres, log } = this.#place
    this.#place.isLively = false
    this.#place.areReadingsMortal = false
    world.calm()
    world.note('all is calm from here on', WORLD)
    for (const each of this.processes) if (each.life.isOver) each.start()
    const endMs = world.time.nowMs + SETTLED_MS_MAX
    const boardsRest = this.#every(CHECK_EVERY_MS, () => postgres.boardsAtRest)
    const everythingRests = this.#every(
      CHECK_EVERY_MS,
      () => postgres.boardsAtRest && postgres.outbox.length === 0 && isCaughtUp(this.#place)
    )
    // Pages may have been read just before all was calm, so they are visited once more.
    for (const isOver of [boardsRest, everythingRests]) {
      postgres.hastenAll()
      if (!(await world.time.run(endMs, isOver))) {
        const behind = log.partitions.map(({ topic, partition, records }) => `${topic}/${partition} ${records.length}`)
        return [`it does not come to rest: ${postgres.outbox.length} in the outbox, heads ${behind.join(', ')}`]
      }
    }
    await world.time.run(world.time.nowMs + HEARD_MS)
    return [...(await this.#staleAnswers()), ...(await faultsIn(this.#place, this.#follower))]
  }

  /** What is answered now, by one who kept answers, and what the tables have. */
  async #staleAnswers(): Promise<string[]> {
    const { world, store } = this.#place
    const reader = this.#reading
    if (reader === undefined) return ['nobody answers']
    const stale: string[] = []
    let isDone = false
    const ask = async () => {
      for (const question of QUESTIONS) {
        const given = await answer(this.#place, reader.reading, question)
        const expected = answerText(question.find(store))
        if (given !== expected) stale.push(`stale answer to ${question.name}: ${given}; the tables have ${expected}`)
      }
      await reader.reading.follow()
    }
    world.time.after(reader.process.life, 0, () => {
      ask()
        .catch((error: unknown) => stale.push(String(error)))
        .finally(() => {
          isDone = true
        })
    })
    await world.time.run(world.time.nowMs + SETTLED_MS_MAX, () => isDone)
    return stale
  }

  /** One process does everything. */
  #alone(): Process[] {
    return [
      this.#process('service', (process) => {
        const reader = this.#startReader(process)
        const projector = runProjector(this.#place, process, () => {
          reader.reading.versions.refresh().catch(() => undefined)
        })
        const ingest = runIngest(this.#place, process)
        return {
          stop: async () => {
            await ingest.stop()
            await projector.stop()
            await reader.stop()
          }
        }
      })
    ]
  }

  #several(): Process[] {
    const projector = (process: Process) => runProjector(this.#place, process, () => undefined)
    return [
      this.#process('projector-a', projector),
      this.#process('projector-b', projector),
      this.#process('ingest-a', (process) => runIngest(this.#place, process)),
      this.#process('ingest-b', (process) => runIngest(this.#place, process)),
      this.#process('api', (process) => this.#startReader(process))
    ]
  }

  #startReader(process: Process) {
    const reader = runReader(this.#place, process, this.#follower)
    this.#reading = { process, reading: reader.reading }
    return reader
  }

  #process(name: string, start: (process: Process) => Running): Process {
    return new Process(this.#place.world, name, start)
  }

  /** What may happen beside calls that fail. */
  #kinds(): readonly (() => void)[] {
    const { world, log } = this.#place
    const { time, chance } = world
    const any = () => chance.oneOf(this.processes as [Process])
    const forAWhile = (what: string, begin: () => void, end: () => void) => {
      world.note(`${what}, for a while`, WORLD)
      begin()
      time.after(WORLD, chance.between(300, 8000), () => {
        world.note(`${what} no more`, WORLD)
        end()
      })
    }
    return [
      () => this.#dieOf(any().life),
      () => this.#dieOf(any().life),
      () => {
        const one = any()
        one.stop(() => this.#dieOf(one.life))
      },
      () => {
        const engine = chance.oneOf(ENGINES)
        forAWhile(
          `${engine} is away`,
          () => world.away.add(engine),
          () => world.away.delete(engine)
        )
        if (engine === 'log') log.disconnect()
      },
      () =>
        forAWhile(
          'the disk is full',
          () => (world.isFull = true),
          () => (world.isFull = false)
        ),
      () => log.rebalance(),
      () => log.disconnect(),
      () => any().jump((chance.happens(0.5) ? 1 : -1) * chance.oneOf([900, 30_000, 900_000]))
    ]
  }

  #dieOf(life: Life): void {
    const { world, log, postgres } = this.#place
    const process = this.processes.find((each) => each.owns(life))
    if (process === undefined || process.life.isOver) return
    this.deaths += 1
    for (const dead of process.die()) {
      log.noticeDeath(dead)
      postgres.noticeDeath(dead)
    }
    world.time.after(WORLD, process.restMs(), () => {
      if (process.life.isOver) process.start()
    })
  }

  #often(ms: number, work: () => void): void {
    const { world } = this.#place
    world.time.after(WORLD, world.chance.below(2 * ms), () => {
      if (!this.#place.isLively) return
      work()
      this.#often(ms, work)
    })
  }

  /** A check that costs something is made now and then. */
  #every(ms: number, check: () => boolean): () => boolean {
    const { time } = this.#place.world
    let nextMs = time.nowMs + ms
    return () => {
      if (time.nowMs < nextMs) return false
      nextMs = time.nowMs + ms
      return check()
    }
  }
}
