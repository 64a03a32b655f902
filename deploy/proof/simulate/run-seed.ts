import { POSITION_TYPES, RowWriter, type StepSizes } from '@gamenet/projector/internals'
import { QUERIES } from './answer-queries.js'
import { bugOf } from './bugs.js'
import { Chance } from './chance.js'
import { conditionsOf } from './conditions.js'
import { erasureOf } from './erasure.js'
import { runIngest } from './ingest.js'
import { SimulatedLog } from './log.js'
import { Operator, type Projecting } from './operator.js'
import { DROPPED_MS, faultsIn, isCaughtUp, leftTables } from './oracle.js'
import type { Place } from './place.js'
import { Process, type Running } from './process.js'
import { runProjector } from './projector.js'
import { Promises } from './promises.js'
import { answer, answerIn, Follower, type Reading, runReader } from './reader.js'
import { simulatedTopics, TITLE_IDS, USERS } from './simulated.js'
import { type Played, Tables } from './store.js'
import { Subscriber } from './subscriber.js'
import { LAG_MS_MAX } from './tables/replica.js'
import { Upstream } from './upstream.js'
import { BEGIN_MS, type Life, WORLD } from './virtual-time.js'
import { ENGINES, World } from './world.js'
import { SimulatedPostgres } from './write-side.js'

/** The outcome of one seed. */
export type Outcome = {
  readonly seed: number
  /** Empty if the seed passed. */
  readonly faults: readonly string[]
  readonly events: number
  readonly deaths: number
  /** Equal in two runs of a seed with the same course of events. */
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

const ACTIVE_MS = { least: 12_000, most: 40_000 }
const CAUGHT_UP_MS_MAX = 1_200_000
const CHECK_EVERY_MS = 500
/** Earlier requests may arrive for eight seconds; readers poll every two. */
const NOTIFIED_MS = 12_000
/** Time until a reader has polled the changes, while everything else is idle. */
const SEEN_MS = 2500
const SHORTEST_S = 4
/** Share of worlds of several processes whose tables have replicas. */
const REPLICATED_SHARE = 0.5
/** Lags have chances of their own: a world without replicas has the same course. */
const LAGS_SEED = 1_000_000_007
/** Share of worlds with an operator who rebuilds projections. */
const OPERATED_SHARE = 0.5
/** Latest start of a later program. */
const NEWER_MS_MAX = 20_000

/** Runs one world: 12 to 40 s of facts and faults, then a calm period, then the comparison. */
export async function runSeed(seed: number, options: SeedOptions = {}): Promise<Outcome> {
  const world = new World(seed, options.isTraced === true)
  if (options.isCalm === true) world.calm()
  const place = placeOf(world, seed, options)
  world.areEmbedded = !place.isShared
  const uninstall = world.time.install()
  const installation = new Installation(place, options.isCalm === true)
  const broken: string[] = []
  const onRejection = (error: unknown) => {
    broken.push(`unhandled failure: ${error instanceof Error ? error.stack : String(error)}`)
  }
  process.on('unhandledRejection', onRejection)
  try {
    installation.begin()
    // The first broken promise ends a world with a planted mistake.
    const isFound = () => options.bug !== undefined && place.promises.broken.length > 0
    await world.time.run(BEGIN_MS + world.chance.between(ACTIVE_MS.least, ACTIVE_MS.most), isFound)
    const faults = isFound() ? [] : await installation.settle()
    return {
      seed,
      faults: [...new Set([...broken, ...place.promises.broken, ...faults])],
      events: world.time.events,
      deaths: installation.deaths,
      fingerprint: `${world.time.events}/${world.time.nowMs}/${world.chance.state}`,
      trace: world.trace,
      played: place.tables.played ?? []
    }
  } finally {
    for (const each of installation.processes) each.die()
    uninstall()
    process.off('unhandledRejection', onRejection)
  }
}

function placeOf(world: World, seed: number, { bug: name, isPlayed = false }: SeedOptions): Place {
  const bug = bugOf(name)
  const machine = {
    nowMs: () => world.time.nowMs,
    isFull: () => world.isFull,
    runningInserts: () => [...world.inserts]
  }
  const lags = new Chance(seed + LAGS_SEED)
  const tables = new Tables({ isPlayed, definitions: bug.tables, machine, lags })
  tables.replicas.hasBarrier = bug.hasBarrier
  Object.assign(tables.folds, bug.folds)
  const titles = new RowWriter({ ...POSITION_TYPES, title_id: 'LowCardinality(String)' })
  for (const [n, titleId] of TITLE_IDS.entries())
    titles.add([0, 0, n, '', '', Date.parse('2026-03-14T20:00:00Z'), 0, titleId])
  tables.insertBlock('event_title__0', titles.take())
  const place: Place = {
    world,
    tables,
    promises: new Promises(tables),
    log: new SimulatedLog(
      world,
      simulatedTopics.map(({ name }) => name),
      world.chance.between(1, 3)
    ),
    postgres: new SimulatedPostgres(world, SHORTEST_S),
    upstream: new Upstream(world, TITLE_IDS),
    bug,
    conditions: conditionsOf(world.chance),
    acknowledged: new Set(),
    imports: new Map(),
    erasure: erasureOf(seed),
    isShared: world.chance.happens(0.6),
    isDivided: false,
    stepSizes: stepSizesOf(world),
    isNewer: false,
    areReadingsMortal: true,
    areLaterRead: false,
    isActive: true,
    isTrickling: false
  }
  place.isDivided = place.isShared && seed % 2 === 1 && name === undefined
  tables.replicas.areLagging = place.isShared && !isPlayed && lags.happens(REPLICATED_SHARE)
  return place
}

function stepSizesOf({ chance }: World): StepSizes {
  const least = chance.oneOf([3, 10, 1000])
  return {
    least,
    most: 8 * least,
    sliceOfFold: chance.oneOf([4, 1000]),
    sliceOfStatement: chance.oneOf([6, 1000]),
    catchUp: chance.oneOf([2, 1000])
  }
}

/** The processes of one installation, and their faults. */
class Installation {
  deaths = 0
  readonly processes: readonly Process[]
  readonly #place: Place
  readonly #follower = new Follower()
  readonly #subscriber = new Subscriber()
  readonly #isCalm: boolean
  readonly #disturbances: readonly (() => void)[]
  readonly #projectors: Projecting[] = []
  readonly #operator: Operator | undefined
  #reading: { process: Process; reading: Reading } | undefined

  constructor(place: Place, isCalm: boolean) {
    const { world } = place
    this.#place = place
    this.#isCalm = isCalm
    this.processes = place.isShared ? this.#several() : this.#single()
    this.#operator = world.chance.happens(OPERATED_SHARE) ? new Operator(place, this.#projectors) : undefined
    world.onDeath = (life) => this.#dieOf(life)
    this.#disturbances = this.#faultKinds().filter(() => world.chance.happens(0.6))
  }

  begin(): void {
    for (const each of this.processes) each.start()
    const { world, upstream, postgres, conditions } = this.#place
    const { chance } = world
    this.#often(2000, () => upstream.move(chance.oneOf(TITLE_IDS)))
    this.#often(conditions.ratingsEveryMs, () => {
      const stars = chance.between(1, 5)
      postgres.rate(chance.oneOf(USERS), chance.oneOf(USERS), stars).catch(() => undefined)
    })
    if (this.#operator !== undefined) {
      world.time.after(WORLD, 0, () => void this.#operator?.work((ms) => world.time.pause(WORLD, ms)))
      world.time.after(WORLD, chance.below(NEWER_MS_MAX), () => {
        this.#place.isNewer = chance.happens(0.5) && this.#place.isActive
      })
      const { erasure } = this.#place
      if (erasure !== undefined && erasure.before === undefined)
        world.time.after(WORLD, erasure.afterMs, () => void this.#operator?.erase())
    }
    if (!this.#isCalm) {
      this.#often(conditions.disturbedEveryMs, () => {
        if (this.#disturbances.length > 0) chance.oneOf(this.#disturbances as [() => void])()
      })
    }
  }

  /** Ends all faults, waits until all work has ended, and compares; again after each swap of tables. */
  async settle(): Promise<string[]> {
    const { world, postgres, conditions } = this.#place
    this.#place.isActive = false
    this.#place.areReadingsMortal = false
    world.calm()
    world.note('no faults from here on', WORLD)
    for (const each of this.processes) {
      each.jump(-each.skewMs)
      // The last processes of the earlier program are replaced.
      if (this.#place.isNewer) this.#kill(each)
      if (each.life.isOver) each.start()
    }
    const calmMs = world.time.nowMs
    await world.time.run(calmMs + NOTIFIED_MS)
    // The running processes have completed their work.
    postgres.endLeasesOf(calmMs)
    postgres.hastenAll()
    if (!(await this.#rest(() => postgres.boardsAtRest))) return this.#unsettled()
    // Pages may have been read just before the calm period, so they are visited once more.
    postgres.hastenAll()
    if (!(await this.#rest())) return this.#unsettled()
    const undone = await this.#operator?.undoAll((work) => this.#until(work))
    if (undone !== undefined) return [undone]
    const unerased = await this.#operator?.eraseBefore(undefined, (work) => this.#until(work))
    if (unerased !== undefined) return [unerased]
    const faults = await this.#compare('finally')
    if (faults.length > 0 || this.#operator === undefined) return faults
    this.#place.isTrickling = conditions.isTrickling
    for await (const done of this.#operator.end((work) => this.#until(work))) {
      if ('fault' in done) return [done.fault]
      const wrong = await this.#compare(done.swapped)
      if (wrong.length > 0) return wrong
      this.#place.isTrickling = conditions.isTrickling
    }
    await world.time.run(world.time.nowMs + DROPPED_MS)
    return leftTables(this.#place)
  }

  /** Runs until all published events are in the tables; returns false if that takes too long. */
  #rest(isResting = () => this.#isResting()): Promise<boolean> {
    const { time } = this.#place.world
    return time.run(time.nowMs + CAUGHT_UP_MS_MAX, this.#every(CHECK_EVERY_MS, isResting))
  }

  #isResting(): boolean {
    const { postgres } = this.#place
    return postgres.boardsAtRest && postgres.outbox.length === 0 && isCaughtUp(this.#place)
  }

  #unsettled(): string[] {
    const { log, postgres } = this.#place
    const behind = log.partitions.map(({ topic, partition, records }) => `${topic}/${partition} ${records.length}`)
    return [`it does not settle: ${postgres.outbox.length} in the outbox, heads ${behind.join(', ')}`]
  }

  async #compare(when: string): Promise<string[]> {
    const { world } = this.#place
    this.#place.isTrickling = false
    if (!(await this.#rest())) return this.#unsettled()
    const { replicas } = this.#place.tables
    const { areLagging } = replicas
    replicas.areLagging = false
    await world.time.run(world.time.nowMs + SEEN_MS + (areLagging ? LAG_MS_MAX : 0))
    if (!(await this.#rest())) return this.#unsettled()
    // A table that a pointer names may be missing.
    if (this.#place.promises.broken.length > 0) return [...this.#place.promises.broken]
    const found = [...(await this.#staleAnswers()), ...(await faultsIn(this.#place, this.#follower, this.#subscriber))]
    replicas.areLagging = areLagging
    return found.map((fault) => `${when}: ${fault}`)
  }

  /** Runs until work is done; returns undefined if that takes too long. */
  async #until<Result>(work: Promise<Result>): Promise<Result | undefined> {
    const { time } = this.#place.world
    let done: { readonly result: Result } | undefined
    work.then(
      (result) => {
        done = { result }
      },
      () => undefined
    )
    await time.run(time.nowMs + CAUGHT_UP_MS_MAX, () => done !== undefined)
    return done?.result
  }

  /** Compares the answers of a caching reader with the tables. */
  async #staleAnswers(): Promise<string[]> {
    const { world, tables } = this.#place
    const reader = this.#reading
    if (reader === undefined) return ['no process answers']
    const stale: string[] = []
    const ask = async () => {
      for (const query of QUERIES) {
        const given = await answer(this.#place, reader.reading, query)
        const expected = answerIn(tables, query)
        if (given !== expected) stale.push(`stale answer to ${query.name}: ${given}; the tables have ${expected}`)
      }
      await reader.reading.follow()
      return true
    }
    const answered = new Promise<boolean>((resolve, reject) => {
      world.time.after(reader.process.life, 0, () => ask().then(resolve, reject))
    }).catch((error: unknown) => stale.push(String(error)))
    if ((await this.#until(answered)) === undefined) stale.push('no answers')
    return stale
  }

  /** A single process with all roles. */
  #single(): Process[] {
    return [
      this.#process('service', (process) => {
        const reader = this.#startReader(process)
        const projector = this.#startProjector(process, () => {
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
    return [
      this.#process('projector-a', (process) => this.#startProjector(process, () => undefined)),
      this.#process('projector-b', (process) => this.#startProjector(process, () => undefined)),
      this.#process('ingest-a', (process) => runIngest(this.#place, process)),
      this.#process('ingest-b', (process) => runIngest(this.#place, process)),
      this.#process('api', (process) => this.#startReader(process))
    ]
  }

  #startProjector(process: Process, onChange: () => void): Running {
    const projector = runProjector(this.#place, process, onChange)
    const known = this.#projectors.find((each) => each.process === process)
    if (known === undefined) this.#projectors.push({ process, projector })
    else known.projector = projector
    return projector
  }

  #startReader(process: Process) {
    const reader = runReader(this.#place, process, { follower: this.#follower, subscriber: this.#subscriber })
    this.#reading = { process, reading: reader.reading }
    return reader
  }

  #process(name: string, start: (process: Process) => Running): Process {
    return new Process(this.#place.world, name, start)
  }

  /** Faults other than failing calls. */
  #faultKinds(): readonly (() => void)[] {
    const { world, log, postgres } = this.#place
    const { time, chance } = world
    const any = () => chance.oneOf(this.processes as [Process])
    const forAWhile = (what: string, begin: () => void, end: () => void) => {
      world.note(`${what}, for a while`, WORLD)
      begin()
      time.after(WORLD, chance.between(300, 8000), () => {
        world.note(`no longer: ${what}`, WORLD)
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
          `${engine} is unavailable`,
          () => world.away.add(engine),
          () => world.away.delete(engine)
        )
        if (engine === 'log') log.disconnect()
        if (engine === 'postgres')
          for (const lock of [postgres.passes, postgres.fills, postgres.topics]) lock.disconnect()
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
    const { world } = this.#place
    const process = this.processes.find((each) => each.owns(life))
    if (process === undefined || process.life.isOver) return
    this.deaths += 1
    this.#kill(process)
    world.time.after(WORLD, process.restMs(), () => {
      if (process.life.isOver) process.start()
    })
  }

  #kill(process: Process): void {
    const { log, postgres } = this.#place
    for (const dead of process.die()) {
      log.noticeDeath(dead)
      postgres.noticeDeath(dead)
    }
  }

  #often(ms: number, work: () => void): void {
    const { world } = this.#place
    world.time.after(WORLD, world.chance.below(2 * ms), () => {
      if (!this.#place.isActive) return
      work()
      this.#often(ms, work)
    })
  }

  /** Limits an expensive check to one per `ms` of virtual time. */
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
