import fc from 'fast-check'
import { test } from 'tap'
import { projections } from '../src/index.js'
import { AnyBoardEvent, AnyEvent, append, appendedOf, compare } from './any-event.js'
import { foldOf, readModel } from './fold.js'
import { MemoryLog } from './memory-log.js'
import { emptyTables, openTables, projectorOn } from './pipeline.js'

const RUNS = { all: 6, boards: 4 }

/** Projections of the topics that are appended. */
const Rebuilt = fc.constantFrom(
  ...['network-count', 'title-count', 'title-count-hour', 'title', 'title-latest', 'leaderboard-history'],
  ...['leaderboard-entry', 'player-entry', 'entry-time', 'leaderboard']
)

test('a rebuild of any projection at any time equals what serves, and serves on after swap and rollback', async (t) => {
  const engine = await openTables(t)
  for (const [event, epochs, numRuns] of [
    [AnyEvent, [0, 1], RUNS.all],
    [AnyBoardEvent, [0], RUNS.boards]
  ] as const) {
    const property = fc.asyncProperty(
      fc.array(fc.array(appendedOf(event, epochs), { maxLength: 3 }), { minLength: 5, maxLength: 5 }),
      fc.infiniteStream(fc.integer({ min: 1, max: 9 })),
      Rebuilt,
      fc.boolean(),
      async (rounds, batchRecords, name, isFromLog) => {
        await emptyTables(engine.control)
        const log = new MemoryLog(() => batchRecords.next().value ?? 1)
        const projector = projectorOn(engine, log)
        const next = async (n: number) => {
          for (const each of rounds[n] ?? []) append(log, each)
          await projector.settled()
          compare(await readModel(engine.control), foldOf(log), epochs.length > 1)
        }
        projector.start()
        try {
          await next(0)
          await projector.rebuilds.start(name, { isFromLog })
          await next(1)
          await untilFilled(projector.rebuilds)
          await next(2)
          const report = await projector.rebuilds.verify(name)
          if (!report.isEqual) throw new Error(`differs: ${JSON.stringify(report, null, 1)}`)
          await next(3)
          await projector.rebuilds.swap(name)
          compare(await readModel(engine.control), foldOf(log), epochs.length > 1)
          await next(4)
          await projector.rebuilds.rollback(name)
          compare(await readModel(engine.control), foldOf(log), epochs.length > 1)
        } finally {
          await projector.stop()
        }
      }
    )
    await fc.assert(property, { numRuns, endOnFailure: true })
  }
  t.ok(projections.length > 0)
})

async function untilFilled(rebuilds: { list(): Promise<{ state: string; reason: string | null }[]> }) {
  for (;;) {
    const [newest] = await rebuilds.list()
    if (newest?.state === 'filled') return
    if (newest?.state !== 'filling') throw new Error(`${newest?.state}: ${newest?.reason}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
