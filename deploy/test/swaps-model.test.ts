import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { ConsistentReads, type SwapCount, Swaps, SwapWatch } from '@gamenet/api'
import { type Announcement, type Operation, type Store, storeAnnouncement } from '@gamenet/projector'
import { Refusal } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { announceSwap } from '../src/wiring/swaps.js'

/*
 * Processes that answer out of several tables and out of what they keep in memory, and one that swaps the tables, on a time
 * that the test makes: every statement takes as long as the test says, before and behind the instant at which it happens.
 */

const POLL_MS = 250
/** A swap that took longer than readers wait for one would be taken for one that died. */
const SWAP_STATEMENT_MS_MAX = 300
const RUNS = 100
const TABLES = ['first', 'second', 'third'] as const

/** Time that passes when nothing else is left to do. */
class VirtualTime {
  #nowMs = 0
  readonly #waiting: { readonly atMs: number; readonly wake: () => void }[] = []

  now = (): number => this.#nowMs

  wait = (ms: number): Promise<void> =>
    new Promise((wake) => {
      this.#waiting.push({ atMs: this.#nowMs + ms, wake })
    })

  async run(): Promise<void> {
    for (;;) {
      await turn()
      const next = this.#waiting.reduce<number>((least, { atMs }, n) => {
        return least < 0 || atMs < (this.#waiting[least]?.atMs ?? 0) ? n : least
      }, -1)
      const [first] = next < 0 ? [] : this.#waiting.splice(next, 1)
      if (first === undefined) return
      this.#nowMs = Math.max(this.#nowMs, first.atMs)
      first.wake()
    }
  }
}

/** Tables with one generation each, their announced version, and the announced swaps. */
class ModelTables {
  readonly generations: Record<string, number> = Object.fromEntries(TABLES.map((table) => [table, 0]))
  version = 0
  readonly announced: Announcement[] = []
  readonly #time: VirtualTime
  readonly #latency: () => number

  constructor(time: VirtualTime, latency: () => number) {
    this.#time = time
    this.#latency = latency
  }

  async statement<Result>(act: () => Result, msMax = Number.POSITIVE_INFINITY): Promise<Result> {
    await this.#time.wait(Math.min(msMax, this.#latency()))
    const result = act()
    await this.#time.wait(Math.min(msMax, this.#latency()))
    return result
  }

  /** The newest announcement. */
  newest = (): Promise<Announcement | undefined> =>
    this.statement(() => {
      const order = ['announced', 'begun', 'ended']
      const byAge = (a: Announcement, b: Announcement) => b.id - a.id || order.indexOf(b.state) - order.indexOf(a.state)
      return this.announced.toSorted(byAge)[0]
    })

  /** What `announceSwap` does. */
  get store(): Store {
    const announce = (announcement: Announcement) =>
      this.statement(() => void this.announced.push(announcement), SWAP_STATEMENT_MS_MAX)
    const todo = (operation: unknown, [announcement]: readonly unknown[]): Promise<unknown> =>
      operation === storeAnnouncement ? announce(announcement as Announcement) : this.newest()
    return {
      do: <Input extends readonly unknown[], Result>(operation: Operation<Input, Result>, ...input: Input) =>
        todo(operation, input) as Promise<Result>,
      with: () => this.store
    }
  }
}

/** A process that answers: what it keeps of the first table is as new as the version that it has learnt. */
class Answering {
  version = 0
  readonly answers: (readonly number[])[] = []
  #kept = { version: 0, generation: 0 }
  readonly #tables: ModelTables
  apart: ConsistentReads | undefined

  constructor(tables: ModelTables) {
    this.#tables = tables
  }

  learn = async (): Promise<void> => {
    this.version = await this.#tables.statement(() => this.#tables.version)
  }

  async answer(reads: readonly number[]): Promise<void> {
    const made = await this.apart
      ?.read(async () => {
        const seen = [await this.#keptOfFirst()]
        for (const table of reads) seen.push(await this.#generation(TABLES[table] ?? 'first'))
        return seen
      })
      .catch((error: unknown) => {
        if (error instanceof Refusal) return []
        throw error
      })
    this.answers.push(made ?? [])
  }

  async #keptOfFirst(): Promise<number> {
    const { version } = this
    if (this.#kept.version < version) this.#kept = { version, generation: await this.#generation('first') }
    return this.#kept.generation
  }

  #generation(table: string): Promise<number> {
    return this.#tables.statement(() => this.#tables.generations[table] ?? -1)
  }
}

/** Brings all tables to a generation; where the process dies on the way, the rest is never done. */
async function swap(
  tables: ModelTables,
  generation: number,
  death?: { readonly before: number; readonly died: () => void }
): Promise<void> {
  for (const [n, table] of TABLES.entries()) {
    if (n === death?.before) {
      death.died()
      await new Promise(() => undefined)
    }
    await tables.statement(() => {
      tables.generations[table] = generation
    }, SWAP_STATEMENT_MS_MAX)
  }
  await tables.statement(() => {
    tables.version += 1
  }, SWAP_STATEMENT_MS_MAX)
}

type Query = { readonly process: number; readonly atMs: number; readonly reads: readonly number[] }
type World = {
  readonly asked: readonly Query[]
  readonly swapsAtMs: readonly number[]
  readonly latencies: readonly number[]
}

/** Statements usually take some ms; now and then one takes seconds, as in a process that stands still. */
const latency = fc.oneof({ weight: 20, arbitrary: fc.nat(20) }, { weight: 1, arbitrary: fc.nat(3000) })
const world: fc.Arbitrary<World> = fc.record({
  asked: fc.array(
    fc.record({ process: fc.nat(1), atMs: fc.nat(12_000), reads: fc.array(fc.nat(2), { minLength: 1, maxLength: 4 }) }),
    { minLength: 1, maxLength: 30 }
  ),
  swapsAtMs: fc.array(fc.nat(10_000), { minLength: 1, maxLength: 2 }),
  latencies: fc.array(latency, { minLength: 5, maxLength: 40 })
})

function modelWorld({ latencies }: World) {
  const time = new VirtualTime()
  let asked = 0
  const tables = new ModelTables(time, () => {
    asked += 1
    return latencies[asked % latencies.length] ?? 0
  })
  return { time, tables, processes: [new Answering(tables), new Answering(tables)] }
}

async function askAll(time: VirtualTime, processes: readonly Answering[], asked: readonly Query[]): Promise<void> {
  const all = asked.map(async ({ process, atMs, reads }) => {
    await time.wait(atMs)
    await processes[process]?.answer(reads)
  })
  await Promise.all(all)
}

const mixed = (processes: readonly Answering[]) =>
  processes.flatMap(({ answers }) => answers).filter((seen) => new Set(seen).size > 1)

test('no answer of the process that swaps tables sees both sides', async () => {
  await fc.assert(
    fc.asyncProperty(world, async (given) => {
      const { time, tables, processes } = modelWorld(given)
      const [answering] = processes
      if (answering === undefined) throw new Error('somebody is to answer')
      const swaps = new Swaps({ learn: answering.learn })
      answering.apart = new ConsistentReads(swaps)
      const operator = async () => {
        for (const [n, atMs] of given.swapsAtMs.toSorted((a, b) => a - b).entries()) {
          await time.wait(Math.max(0, atMs - time.now()))
          await swaps.around(['title'], () => swap(tables, n + 1))
        }
      }
      const all = Promise.all([operator(), askAll(time, [answering, answering], given.asked)])
      await time.run()
      await all
      assert.deepEqual(mixed(processes), [])
      assert.equal(answering.answers.length, given.asked.length)
    }),
    { numRuns: RUNS }
  )
})

test('no answer of any process sees both sides, however late it learns of a swap', async () => {
  await fc.assert(
    fc.asyncProperty(world, fc.option(fc.nat(2), { nil: undefined }), async (given, diesBefore) => {
      const { time, tables, processes } = modelWorld(given)
      const watches = processes.map((process) => {
        const watch = new SwapWatch({ newest: tables.newest, learn: process.learn, clock: time })
        process.apart = new ConsistentReads(watch)
        return watch
      })
      // One polls, one asks as it answers.
      watches[0]?.start(POLL_MS)
      const announce = (work: () => Promise<void>) => announceSwap(tables.store, ['title'], work, time.wait)
      const operator = async () => {
        for (const [n, atMs] of given.swapsAtMs.toSorted((a, b) => a - b).entries()) {
          await time.wait(Math.max(0, atMs - time.now()))
          if (n === 0 && diesBefore !== undefined) {
            // Another process ends what this one leaves.
            await new Promise<void>((died) => {
              void announce(() => swap(tables, 1, { before: diesBefore, died }))
            })
          }
          await announce(() => swap(tables, n + 1))
        }
      }
      const all = Promise.all([operator(), askAll(time, processes, given.asked)]).finally(() =>
        Promise.all(watches.map((watch) => watch.stop()))
      )
      await time.run()
      await all
      assert.deepEqual(mixed(processes), [])
    }),
    { numRuns: RUNS }
  )
})

test('without looking at swaps an answer does see both sides', async (t) => {
  const blind: SwapCount = { before: async () => 0, after: () => 0 }
  const given: World = { asked: [{ process: 0, atMs: 0, reads: [0, 1, 2] }], swapsAtMs: [], latencies: [10, 10] }
  const { time, tables, processes } = modelWorld(given)
  for (const process of processes) process.apart = new ConsistentReads(blind)
  const all = Promise.all([swap(tables, 1), askAll(time, processes, given.asked)])
  await time.run()
  await all
  t.not(mixed(processes).length, 0)
})
