import {
  type ImportAdvanced,
  importRunTopic,
  instantOf,
  type NetworkCounted,
  networkCountTopic,
  type ScrapeRan,
  scrapeTopic,
  type TitleCounted,
  type TitleDescribed,
  titleCountTopic,
  titleTopic
} from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import type { LogReader, Tables } from '../src/index.js'
import { foldOf, type ReadModel, readModel, unreadable } from './fold.js'
import { MemoryLog } from './memory-log.js'
import { emptyTables, imported, message, openTables, projectorOn, runToHead } from './pipeline.js'

const RUNS = 24
const T0 = Date.UTC(2026, 2, 14, 22)
const HOUR = 3_600_000

/** Few instants in few hours of two days, so that everything collides; one of them is ten years earlier. */
const Instant = fc
  .constantFrom(0, 1, 60_000, HOUR, HOUR + 999, 3 * HOUR, 3 * HOUR + 1000, -87_600 * HOUR)
  .map((ms) => instantOf(T0 + ms))
const Count = fc.integer({ min: 0, max: 4 })
const TitleId = fc.constantFrom('4d530064', '4d530065', '00000001')
const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined })

const AnyEvent = fc.oneof(
  fc
    .record({ observedAt: Instant, registered: maybe(Count), online: maybe(Count), lobbies: maybe(Count) })
    .filter(({ registered, online, lobbies }) => [registered, online, lobbies].some((each) => each !== undefined))
    .map((event) => ({
      topic: networkCountTopic.name,
      key: 0,
      message: message(networkCountTopic, event as NetworkCounted)
    })),
  {
    arbitrary: fc
      .record({
        titleId: TitleId,
        observedAt: Instant,
        online: Count,
        sessions: maybe(Count),
        lobbyPlayers: maybe(Count),
        from: fc.constantFrom(message, imported)
      })
      .map(({ from, ...event }) => ({
        topic: titleCountTopic.name,
        key: Number.parseInt(event.titleId, 16),
        message: from(titleCountTopic, event as TitleCounted)
      })),
    weight: 3
  },
  fc
    .record({
      titleId: TitleId,
      observedAt: Instant,
      name: fc.constantFrom('A', 'ä', 'ﬁ'),
      title: maybe(fc.constantFrom('x', 'y')),
      releaseDate: maybe(fc.constantFrom('2001-01-01', '2002-02-02')),
      features: maybe(fc.constantFrom([], ['leaderboards' as const]))
    })
    .map((event) => ({
      topic: titleTopic.name,
      key: Number.parseInt(event.titleId, 16),
      message: message(titleTopic, event as TitleDescribed)
    })),
  fc
    .record({
      source: fc.constantFrom('network' as const, 'games' as const),
      observedAt: Instant,
      durationMs: Count,
      outcome: fc.constantFrom('succeeded' as const, 'failed' as const),
      published: Count,
      reason: maybe(fc.constant('why'))
    })
    .map((event) => ({
      topic: scrapeTopic.name,
      key: event.source.length,
      message: message(scrapeTopic, event as ScrapeRan)
    })),
  fc
    .record({
      importId: fc.constantFrom('a'.repeat(32), 'b'.repeat(32)),
      observedAt: Instant,
      topic: fc.constant('title-count'),
      file: fc.constant('f.csv'),
      rowsRead: Count,
      published: Count,
      rejected: Count,
      finished: fc.boolean()
    })
    .map((event) => ({
      topic: importRunTopic.name,
      key: event.importId.charCodeAt(0),
      message: message(importRunTopic, event as ImportAdvanced)
    }))
)

/** Appended to the log in one go: some events, some of them twice, some unreadable ones, to the old or the new epoch. */
const Appended = fc.record({
  epoch: fc.constantFrom(0, 1),
  events: fc.array(AnyEvent, { maxLength: 12 }),
  again: fc.array(fc.nat(11), { maxLength: 3 }),
  isSpoilt: fc.boolean()
})

/** A process's life: the n-th call dies, before or after it took effect, and every call after it. */
const Death = fc.record({ afterCalls: fc.integer({ min: 0, max: 45 }), isDone: fc.boolean() })

const Scenario = fc.record({
  rounds: fc.array(fc.record({ appended: fc.array(Appended, { minLength: 1, maxLength: 3 }), death: Death }), {
    minLength: 1,
    maxLength: 2
  }),
  batchRecords: fc.infiniteStream(fc.integer({ min: 1, max: 9 })),
  forget: fc.constantFrom('nothing', 'nothing', 'checkpoints')
})

test('any batches, doubled, reordered over partitions and cut by deaths, end as the plain fold of the events', {
  timeout: 180_000
}, async (t) => {
  const engine = await openTables(t)
  let deaths = 0
  const property = fc.asyncProperty(Scenario, async ({ rounds, batchRecords, forget }) => {
    await emptyTables(engine.control)
    const log = new MemoryLog(() => batchRecords.next().value ?? 1)
    let seen: { version: number; model: ReadModel } | undefined
    for (const { appended, death } of rounds) {
      for (const each of appended) append(log, each)
      if (await liveUntilDeath(engine, log, death)) deaths += 1
      const version = await newestVersion(engine.control)
      seen = { version, model: await readModel(engine.control) }
    }
    if (forget === 'checkpoints') await engine.control.execute('TRUNCATE TABLE checkpoint')
    await runToHead(engine, log)
    const expected = foldOf(log)
    const found = await readModel(engine.control)
    compare(found, expected)
    await everyChangeIsTold(engine.control, found, new Map(), 0)
    if (seen !== undefined) await everyChangeIsTold(engine.control, found, seen.model, seen.version)
    const parked = await engine.control.rows(
      'SELECT p.topic, p.epoch, p.partition, p.offset FROM parked_message AS p FINAL'
    )
    const places = parked.map((p) => `${p.topic}/${p.epoch}/${p.partition}/${p.offset}`).sort()
    if (places.join() !== unreadable(log).join()) throw new Error(`parked: ${places}; unreadable: ${unreadable(log)}`)
  })
  await fc.assert(property, { numRuns: RUNS, endOnFailure: true })
  t.ok(deaths > RUNS / 4, `${deaths} deaths`)
})

function append(
  log: MemoryLog,
  { epoch, events, again, isSpoilt }: typeof Appended extends fc.Arbitrary<infer A> ? A : never
) {
  const all = [...events, ...again.flatMap((n) => events[n] ?? [])]
  for (const { topic, key, message } of all) {
    const partition = key % (2 + epoch)
    if (isSpoilt) log.append(topic, [{ ...message, value: '{"no":"event"}' }], { epoch, partition })
    log.append(topic, [message], { epoch, partition })
  }
}

/** Runs a projector until all is read or the process dies; true when it died. */
async function liveUntilDeath(
  tables: { loader: Tables; projections: Tables },
  log: MemoryLog,
  { afterCalls, isDone }: { afterCalls: number; isDone: boolean }
): Promise<boolean> {
  let calls = 0
  let die = () => {}
  const died = new Promise<'died'>((resolve) => {
    die = () => resolve('died')
  })
  const call = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    calls += 1
    if (calls === afterCalls && isDone) await work()
    if (calls >= afterCalls) {
      die()
      throw new Error('the process died')
    }
    return await work()
  }
  const mortal = (of: Tables): Tables => ({
    execute: (sql, parameters) => call(() => of.execute(sql, parameters)),
    rows: (sql, parameters) => call(() => of.rows(sql, parameters)),
    insert: (table, columns, body) => call(() => of.insert(table, columns, body))
  })
  const reader: LogReader = {
    extents: (topic) => log.extents(topic),
    commit: (topic, position) => call(() => log.commit(topic, position)),
    consume: (options) => log.consume({ ...options, deliver: (batch) => call(() => options.deliver(batch)) })
  }
  const projector = projectorOn({ loader: mortal(tables.loader), projections: mortal(tables.projections) }, reader)
  projector.start()
  try {
    return (await Promise.race([died, projector.settled().then(() => 'settled')])) === 'died'
  } finally {
    await projector.stop()
  }
}

function compare(found: ReadModel, expected: ReadModel) {
  for (const [projection, rows] of expected) {
    const lines = (model: ReadonlyMap<string, { id: string; values: string }> | undefined) =>
      [...(model?.values() ?? [])].map(({ id, values }) => `${id} → ${values}`).sort()
    const [is, should] = [lines(found.get(projection)), lines(rows)]
    if (is.join('\n') !== should.join('\n')) {
      throw new Error(`${projection}\nfound\n  ${is.join('\n  ')}\nexpected\n  ${should.join('\n  ')}`)
    }
  }
}

/** A reader who knew `before` at `version` must hear of every row that is different now. */
async function everyChangeIsTold(tables: Tables, found: ReadModel, before: ReadModel, version: number) {
  const told = await tables.rows('SELECT d.* FROM data_change AS d WHERE d.version > {version: UInt64}', { version })
  for (const [projection, rows] of found) {
    for (const { id, key, ms, values } of rows.values()) {
      if (before.get(projection)?.get(id)?.values === values) continue
      const isTold = told.some(
        (each) =>
          each.projection === projection &&
          (each.key === '*' || each.key === key) &&
          Number(each.from_ms) <= ms &&
          ms < Number(each.to_ms)
      )
      if (!isTold) throw new Error(`nobody was told of ${projection} ${id} (since ${version})`)
    }
  }
}

async function newestVersion(tables: Tables): Promise<number> {
  const [row] = await tables.rows('SELECT max(d.version) AS version FROM data_change AS d')
  return Number(row?.version)
}
