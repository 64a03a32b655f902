import { FIRST_GENERATION } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { HOURS_HELD_BY_MINUTE } from '../src/answers/change-track.js'
import { DataVersions } from '../src/answers/data-versions.js'
import { type ChangeRow, servingAt, TestTables } from './support/test-app.js'

const MINUTE = 60_000
const HOUR = 3_600_000
const BLOCK = 1024 * HOUR
const START = Date.UTC(2026, 0, 1)
const END_OF_TIME = Date.UTC(2106, 0, 1)

const anyInstant = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: START - 60 * HOUR, max: START + 60 * HOUR }) },
  { weight: 2, arbitrary: fc.integer({ min: START - 4000 * HOUR, max: START }) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: START }) }
)
const anyLength = fc.oneof(
  fc.integer({ min: 1, max: 3 * MINUTE }),
  fc.integer({ min: 1, max: 5 * HOUR }),
  fc.integer({ min: 1, max: 4 * BLOCK }),
  fc.constant(END_OF_TIME)
)
const anyStretch = fc.oneof(
  {
    weight: 9,
    arbitrary: fc
      .tuple(anyInstant, anyLength)
      .map(([fromMs, length]) => ({ fromMs, toMs: Math.min(fromMs + length, END_OF_TIME) }))
  },
  { weight: 1, arbitrary: fc.constant({ fromMs: 0, toMs: END_OF_TIME }) }
)
const anyChanges = fc
  .array(fc.tuple(fc.constantFrom('a', 'b'), fc.constantFrom('*', 'x', 'y'), anyStretch), { maxLength: 30 })
  .map((all): ChangeRow[] =>
    all.map(([projection, key, stretch], at) => ({ projection, key, version: 1000 + at, ...stretch }))
  )
const anyDependency = fc.record(
  { projection: fc.constantFrom('a', 'b'), key: fc.constantFrom('x', 'z'), stretch: anyStretch },
  { requiredKeys: ['projection'] }
)

/** The newest of the changes that overlap, each widened to buckets of a given width. */
function plain(
  changes: readonly ChangeRow[],
  range: { projection: string; key?: string; stretch?: { fromMs: number; toMs: number } },
  width: number
): number {
  const { fromMs, toMs } = range.stretch ?? { fromMs: 0, toMs: END_OF_TIME }
  const first = Math.floor(fromMs / width) * width
  const last = Math.ceil(toMs / width) * width
  return Math.max(
    0,
    ...changes
      .filter(
        ({ projection, key }) =>
          projection === range.projection && (range.key === undefined || key === '*' || key === range.key)
      )
      .filter((change) => change.fromMs < last && change.toMs > first)
      .map(({ version }) => version)
  )
}

async function learnt(steps: readonly (readonly ChangeRow[])[]): Promise<DataVersions> {
  const tables = new TestTables()
  const versions = new DataVersions({ changes: tables.stored })
  for (const step of steps) {
    tables.changes.push(...step)
    await versions.refresh()
  }
  return versions
}

test('a version is never too old, and exact to the bucket in memory', async () => {
  await fc.assert(
    fc.asyncProperty(anyChanges, fc.array(anyDependency, { minLength: 1, maxLength: 20 }), async (changes, range) => {
      const versions = await learnt([changes])
      const horizon = Math.max(0, ...changes.map(({ fromMs }) => fromMs))
      const minutesFrom = (Math.floor(horizon / HOUR) - HOURS_HELD_BY_MINUTE + 1) * HOUR
      const blocksFrom = (Math.floor(horizon / BLOCK) - 2) * BLOCK
      for (const each of range) {
        const { stretch, ...rest } = each
        const version = versions.versionOf({ ...rest, ...stretch })
        if (version < plain(changes, each, 1)) throw new Error(`${version} is older than exact`)
        const width =
          (stretch?.fromMs ?? 0) >= minutesFrom ? MINUTE : (stretch?.fromMs ?? 0) >= blocksFrom ? HOUR : BLOCK
        if (version > plain(changes, each, width))
          throw new Error(`${version} is newer than a bucket of ${width} ms explains`)
      }
    }),
    { numRuns: 500, seed: 1 }
  )
})

test('the same changes give the same versions in any order, in any batches, and twice', async () => {
  const shuffled = anyChanges.chain((changes) =>
    fc.record({
      changes: fc.constant(changes),
      other: fc.shuffledSubarray(changes, { minLength: changes.length }),
      cut: fc.nat({ max: changes.length })
    })
  )
  await fc.assert(
    fc.asyncProperty(shuffled, fc.array(anyDependency, { minLength: 1 }), async ({ changes, other, cut }, range) => {
      const once = await learnt([changes])
      const inParts = await learnt([other.slice(0, cut), other.slice(cut), other])
      for (const { stretch, ...rest } of range) {
        const dependency = { ...rest, ...stretch }
        if (once.versionOf(dependency) !== inParts.versionOf(dependency)) throw new Error('the order made a difference')
      }
    }),
    { numRuns: 300, seed: 1 }
  )
})

test('a closed window keeps its version during the scrapes of each minute', async (t) => {
  const tables = new TestTables()
  const versions = new DataVersions({ changes: tables.stored })
  const closed = { projection: 'a', fromMs: START - 24 * HOUR, toMs: START + 30 * MINUTE }
  tables.changes.push({ projection: 'a', version: 1, fromMs: START, toMs: START + 1 })
  await versions.refresh()
  t.equal(versions.versionOf(closed), 1)
  for (let minute = 30; minute < 200; minute += 1) {
    const fromMs = START + minute * MINUTE
    tables.changes.push({ projection: 'a', version: 1000 + minute, fromMs, toMs: fromMs + 1 })
    await versions.refresh()
    t.equal(versions.versionOf(closed), 1)
    t.equal(versions.versionOf({ projection: 'a', fromMs: closed.fromMs, toMs: fromMs + MINUTE }), 1000 + minute)
  }
  tables.changes.push({ projection: 'a', version: 5000, fromMs: START + 5 * MINUTE, toMs: START + 6 * MINUTE })
  await versions.refresh()
  t.equal(versions.versionOf(closed), 5000, 'a late import into the window is noticed')
})

test('a change of one key keeps the versions of other keys', async (t) => {
  const versions = await learnt([
    [
      { projection: 'a', key: '*', version: 1, fromMs: START, toMs: START + HOUR },
      { projection: 'a', key: 'x', version: 2, fromMs: START, toMs: START + HOUR }
    ]
  ])
  t.equal(versions.versionOf({ projection: 'a', key: 'x' }), 2)
  t.equal(versions.versionOf({ projection: 'a', key: 'y' }), 1)
  t.equal(versions.versionOf({ projection: 'a' }), 2, 'a reader of all keys learns of each change')
  t.equal(versions.versionOf({ projection: 'b' }), 0)
})

test('ten thousand keys whose changes last to the end of time cost a few megabytes', async (t) => {
  const tables = new TestTables()
  const versions = new DataVersions({ changes: tables.stored })
  for (let at = 0; at < 10_000; at += 1) {
    tables.changes.push({ projection: 'a', key: `k${at}`, version: 1000 + at, fromMs: START + at, toMs: END_OF_TIME })
  }
  const bytesBefore = process.memoryUsage()
  await versions.refresh()
  const bytesAfter = process.memoryUsage()
  const grown = bytesAfter.heapUsed - bytesBefore.heapUsed + bytesAfter.arrayBuffers - bytesBefore.arrayBuffers
  t.ok(grown < 100_000_000, `grew by ${grown} bytes`)
  t.equal(versions.versionOf({ projection: 'a', key: 'k77' }), 1077)
})

test('a change that becomes visible after one with a higher version is read nevertheless', async (t) => {
  const tables = new TestTables()
  const versions = new DataVersions({ changes: tables.stored })
  const now = 1_772_000_000_000_000
  tables.changes.push({ projection: 'a', version: now, fromMs: START, toMs: START + HOUR })
  await versions.refresh()
  const { revision } = versions
  tables.changes.push({ projection: 'b', version: now - 30_000_000, fromMs: START, toMs: START + HOUR })
  await versions.refresh()
  t.equal(versions.versionOf({ projection: 'b' }), now - 30_000_000)
  t.ok(versions.revision > revision)
})

test('the revision stays the same while nothing changes', async (t) => {
  const tables = new TestTables()
  const versions = new DataVersions({ changes: tables.stored })
  await versions.refresh()
  const { revision } = versions
  await versions.refresh()
  t.equal(versions.revision, revision)
  tables.changes.push({ projection: 'a', version: 7, fromMs: START, toMs: START + HOUR })
  await versions.refresh()
  const after = versions.revision
  t.ok(after > revision)
  await versions.refresh()
  t.equal(versions.revision, after)
})

test('a refresh that is requested during another one sees changes since then', async (t) => {
  const tables = new TestTables()
  const versions = new DataVersions({ changes: tables.stored })
  const first = versions.refresh()
  tables.changes.push({ projection: 'a', version: 7, fromMs: START, toMs: START + HOUR })
  const second = versions.refresh()
  const third = versions.refresh()
  t.equal(second, third, 'waiting calls share one refresh')
  await Promise.all([first, second])
  t.equal(versions.versionOf({ projection: 'a' }), 7)
})

test('versions stay known while the tables are unavailable, and are marked as not current', async (t) => {
  const tables = new TestTables()
  const failures: unknown[] = []
  const versions = new DataVersions({ changes: tables.stored, onFailure: (error) => failures.push(error) })
  tables.changes.push({ projection: 'a', version: 7, fromMs: START, toMs: START + HOUR })
  t.equal(versions.isCurrent, false)
  await versions.refresh()
  t.equal(versions.isCurrent, true)
  tables.away = new Error('away')
  await t.rejects(versions.refresh(), /away/)
  t.equal(versions.isCurrent, false)
  t.equal(versions.versionOf({ projection: 'a' }), 7)
  await versions.start(60_000)
  t.same(failures, [tables.away])
  tables.away = undefined
  await versions.refresh()
  t.equal(versions.isCurrent, true)
  await versions.stop()
})

test('a failed refresh is repeated automatically', async (t) => {
  const tables = new TestTables()
  let isRetried: () => void = () => undefined
  const retried = new Promise<void>((resolve) => {
    isRetried = resolve
  })
  const versions = new DataVersions({ changes: tables.stored, onFailure: isRetried })
  t.teardown(() => versions.stop())
  tables.changes.push({ projection: 'a', version: 7, fromMs: START, toMs: START + HOUR })
  tables.away = new Error('away')
  await t.rejects(versions.refresh(), /away/)
  const holdOpen = setInterval(() => undefined, 1000)
  await retried
  tables.away = undefined
  while (!versions.isCurrent) await new Promise(setImmediate)
  clearInterval(holdOpen)
  t.equal(versions.versionOf({ projection: 'a' }), 7)
})

test('a notified change counts at once, only for its key, with any clocks', async (t) => {
  const tables = new TestTables()
  const ahead = (Date.now() + 3_600_000) * 1000
  tables.changes.push({ version: ahead, projection: 'rating', key: 'ann', fromMs: START, toMs: START + 1 })
  const versions = new DataVersions({ changes: tables.stored })
  await versions.refresh()
  const read = (key: string) => versions.versionOf({ projection: 'rating', key })
  const revision = versions.revision
  const before = [read('ann'), read('bob'), versions.versionOf({ projection: 'profile', key: 'ann' })]
  versions.recordWrite(['rating', 'ann'])
  t.ok(read('ann') > ahead, 'another clock may be ahead')
  t.ok(versions.revision > revision)
  t.same([read('bob'), versions.versionOf({ projection: 'profile', key: 'ann' })], before.slice(1))
  const once = read('ann')
  versions.recordWrite(['rating', 'ann'])
  t.ok(read('ann') > once)
  const late = { version: ahead + 1, projection: 'profile', key: 'ann', fromMs: START, toMs: START + 1 }
  tables.changes.push(late)
  await versions.refresh()
  t.equal(
    versions.versionOf({ projection: 'profile', key: 'ann' }),
    late.version,
    'changes in the table are still found'
  )
})

test('the tables that are read never go back, and the revision rises with them', async (t) => {
  const { stored } = new TestTables()
  const found = [servingAt(1, 1), servingAt(0, 2), servingAt(1, 1), servingAt(0, 2)]
  const versions = new DataVersions({ changes: stored, serving: async () => found.shift() ?? FIRST_GENERATION })
  const seen: [number, number][] = []
  for (let at = 0; at < 5; at += 1) {
    await versions.refresh()
    seen.push([versions.serving.counter, versions.revision])
  }
  t.same(
    seen,
    [1, 2, 2, 2, 2].map((counter) => [counter, counter])
  )
})

test('a change by a step after a swap is not known before the tables that have its rows', async (t) => {
  const tables = new TestTables()
  let serving = FIRST_GENERATION
  const since: typeof tables.stored.since = async (...given) => {
    serving = servingAt(1, 1)
    tables.changes.push({ version: 7, projection: 'profile', key: '*', fromMs: START, toMs: START + 1 })
    return await tables.stored.since(...given)
  }
  const versions = new DataVersions({ changes: { ...tables.stored, since }, serving: async () => serving })
  await versions.refresh()
  t.same([versions.versionOf({ projection: 'profile' }), versions.serving.counter], [7, 1])
})

test('no version is given before its rows have arrived, and they are awaited once', async (t) => {
  const tables = new TestTables()
  const awaited: unknown[] = []
  let serving = FIRST_GENERATION
  let isLate = false
  const versions = new DataVersions({
    changes: tables.stored,
    serving: async () => serving,
    arrived: async (_, projections) => {
      if (isLate) throw new Error('the replica lags')
      awaited.push(projections)
    }
  })
  t.teardown(() => versions.stop())
  const now = 1_772_000_000_000_000
  const change = (projection: string, version: number) =>
    tables.changes.push({ projection, version, fromMs: START, toMs: START + HOUR })
  change('a', now)
  await versions.refresh()
  await versions.refresh()
  t.same(awaited, ['all'], 'what was there before, once')
  change('b', now - 10)
  isLate = true
  await t.rejects(versions.refresh(), { message: 'the replica lags' })
  t.equal(versions.versionOf({ projection: 'b' }), 0)
  isLate = false
  await versions.refresh()
  t.equal(versions.versionOf({ projection: 'b' }), now - 10)
  serving = servingAt(1, 1)
  await versions.refresh()
  await versions.refresh()
  t.same(awaited.slice(1), [['b'], 'all'], 'a late change, and all after a swap')
})
