import type { LogBatch, LogMessage, LogRecord, PartitionExtent } from '@gamenet/schemas'
import fc from 'fast-check'
import { type Test, test } from 'tap'

/** What ingest and projector ask of a log, together. */
export type Log = {
  append(topic: string, messages: readonly LogMessage[]): Promise<void>
  extents(topic: string): Promise<readonly PartitionExtent[]>
  consume(options: {
    readonly topics: readonly string[]
    startAt(topic: string, epoch: number, partition: number): Promise<number>
    deliver(batch: LogBatch): Promise<void>
    readonly signal: AbortSignal
  }): Promise<void>
  commit(topic: string, position: { epoch: number; partition: number; next: number }): Promise<void>
  close(): Promise<void>
}

/** How the suite comes by logs of one engine. */
export type LogUnderTest = {
  readonly name: string
  /** A place where a log keeps its data; logs that are opened on the same place see the same topics. */
  place(t: Test): Promise<LogPlace>
  /** How many random cases a property is tried on. */
  readonly runs: number
}

export type LogPlace = {
  /** A log with these topics, closed when the test ends. */
  open(options: { partitions: number; epoch?: number; topics: readonly string[] }): Promise<Log>
}

const EPOCH = 3
const GIVE_UP_MS = 60_000

/** Message number `n`, shaped like an event. */
export function message(n: number, key = `key-${n % 7}`): LogMessage {
  const instant = `2026-01-01T00:${String(Math.floor(n / 60) % 60).padStart(2, '0')}:${String(n % 60).padStart(2, '0')}Z`
  return {
    key,
    headers: { ce_id: `thing/${key}@${instant}`, ce_time: instant, ce_type: 'gamenet.thing.v1' },
    value: JSON.stringify({ key, observedAt: instant, n })
  }
}

export function messages(count: number, from = 0): LogMessage[] {
  return Array.from({ length: count }, (_, i) => message(from + i))
}

/** A record as it was appended; bytes are read as UTF-8. */
export function asAppended({ key, headers, value }: LogRecord): LogMessage {
  const text = value === null || typeof value === 'string' ? value : Buffer.from(value).toString('utf8')
  return { key: key ?? '', headers, value: text ?? '' }
}

/** Reads until `count` records were delivered, each partition in order, and gives them by partition. */
export async function readAll(
  log: Log,
  topic: string,
  count: number,
  startAt: (partition: number) => number = () => 0
): Promise<Map<number, LogRecord[]>> {
  const read = new Map<number, LogRecord[]>()
  const enough = new AbortController()
  const late = setTimeout(() => enough.abort(), GIVE_UP_MS)
  let total = 0
  try {
    await log.consume({
      topics: [topic],
      startAt: async (_topic, _epoch, partition) => startAt(partition),
      deliver: async ({ partition, records }) => {
        read.set(partition, [...(read.get(partition) ?? []), ...records])
        total += records.length
        if (total >= count) enough.abort()
      },
      signal: enough.signal
    })
  } finally {
    clearTimeout(late)
  }
  return read
}

function all(read: Map<number, LogRecord[]>): LogMessage[] {
  return [...read.values()].flat().map(asAppended)
}

function held(extents: readonly PartitionExtent[]): number {
  return extents.reduce((sum, { first, next }) => sum + next - first, 0)
}

/** Every promise that both engines give, tested on one of them. */
export function testLog(engine: LogUnderTest): void {
  const it = (title: string, body: (t: Test, place: LogPlace) => Promise<void>): void => {
    void test(`${engine.name}: ${title}`, async (t) => body(t, await engine.place(t)))
  }

  it('a record tells when the log took it', async (t, place) => {
    const log = await place.open({ partitions: 1, topics: ['thing'] })
    const beforeMs = Date.now()
    await log.append('thing', messages(2))
    const afterMs = Date.now()
    for (const { recordedAtMs = 0 } of (await readAll(log, 'thing', 2)).get(0) ?? [])
      t.ok(recordedAtMs >= beforeMs && recordedAtMs <= afterMs, `${beforeMs} <= ${recordedAtMs} <= ${afterMs}`)
  })

  it('another log on the same place reads the appended records', async (t, place) => {
    const log = await place.open({ partitions: 1, topics: ['thing'] })
    await log.append('thing', messages(250))
    await log.close()
    const reopened = await place.open({ partitions: 1, topics: ['thing'] })
    t.same(all(await readAll(reopened, 'thing', 250)), messages(250))
  })

  it('offsets are consecutive, positions carry the epoch, and extents tell the head', async (t, place) => {
    const log = await place.open({ partitions: 1, epoch: EPOCH, topics: ['thing'] })
    await log.append('thing', messages(10))
    await log.append('thing', messages(5, 10))
    t.same(await log.extents('thing'), [{ epoch: EPOCH, partition: 0, first: 0, next: 15 }])
    const epochs: number[] = []
    const offsets: number[] = []
    const enough = new AbortController()
    await log.consume({
      topics: ['thing'],
      startAt: async (_topic, epoch) => {
        epochs.push(epoch)
        return 0
      },
      deliver: async (batch) => {
        epochs.push(batch.epoch)
        offsets.push(...batch.records.map(({ offset }) => offset))
        if (offsets.length >= 15) enough.abort()
      },
      signal: enough.signal
    })
    t.same(offsets, [...Array(15).keys()])
    t.same(new Set(epochs), new Set([EPOCH]))
  })

  it('a topic that does not exist has no extents', async (t, place) => {
    const log = await place.open({ partitions: 2, topics: [] })
    t.same(await log.extents('nothing'), [])
  })

  it('an empty append writes nothing', async (t, place) => {
    const log = await place.open({ partitions: 1, topics: ['thing'] })
    await log.append('thing', [])
    t.equal(held(await log.extents('thing')), 0)
  })

  it('all extents of all partitions together hold every message, and a key stays in one partition', async (t, place) => {
    const log = await place.open({ partitions: 4, topics: ['thing'] })
    const sent = Array.from({ length: 400 }, (_, i) => message(i, `key-${i % 40}`))
    await log.append('thing', sent.slice(0, 200))
    await log.append('thing', sent.slice(200))
    const extents = await log.extents('thing')
    t.same(
      extents.map(({ partition }) => partition),
      [0, 1, 2, 3]
    )
    t.equal(held(extents), 400)
    t.ok(extents.filter(({ next }) => next > 0).length > 1, 'keys are spread over partitions')
    const read = await readAll(log, 'thing', 400)
    const partitions = new Map<string, Set<number>>()
    for (const [partition, records] of read) {
      for (const { key } of records) partitions.set(key ?? '', (partitions.get(key ?? '') ?? new Set()).add(partition))
    }
    t.equal(partitions.size, 40)
    t.ok([...partitions.values()].every((of) => of.size === 1))
  })

  it('appends that run at the same time keep the order of their calls, key by key', async (t, place) => {
    const log = await place.open({ partitions: 3, topics: ['thing'] })
    const calls = Array.from({ length: 60 }, (_, call) =>
      Array.from({ length: (call * 7) % 23 }, (_, i) => message(call * 100 + i, `key-${(call + i) % 5}`))
    )
    await Promise.all(calls.map((call) => log.append('thing', call)))
    const sent = calls.flat()
    const read = all(await readAll(log, 'thing', sent.length))
    for (let k = 0; k < 5; k += 1) {
      const key = `key-${k}`
      t.same(
        read.filter((m) => m.key === key),
        sent.filter((m) => m.key === key)
      )
    }
  })

  it('reading begins at any position, in the middle of an append too', async (t, place) => {
    const log = await place.open({ partitions: 1, topics: ['thing'] })
    const sent = messages(30)
    for (const [from, to] of [
      [0, 1],
      [1, 12],
      [12, 30]
    ] as const)
      await log.append('thing', sent.slice(from, to))
    for (const start of [0, 1, 5, 12, 29]) {
      const read = await readAll(log, 'thing', 30 - start, () => start)
      t.same(all(read), sent.slice(start), `from ${start}`)
      t.equal(read.get(0)?.[0]?.offset, start)
    }
  })

  it('a position beyond the head is refused with a sentence', async (t, place) => {
    const log = await place.open({ partitions: 1, topics: ['thing'] })
    await log.append('thing', messages(3))
    await t.rejects(
      readAll(log, 'thing', 1, () => 10),
      /ends before offset 3, expected 10/
    )
  })

  it('a reader at the head gets what is appended later', async (t, place) => {
    const log = await place.open({ partitions: 2, topics: ['thing'] })
    await log.append('thing', messages(3))
    const read: LogMessage[] = []
    const enough = new AbortController()
    let appended: Promise<void> | undefined
    await log.consume({
      topics: ['thing'],
      startAt: async () => 0,
      deliver: async ({ records }) => {
        read.push(...records.map(asAppended))
        if (read.length >= 3) appended ??= log.append('thing', messages(4, 3))
        if (read.length >= 7) enough.abort()
      },
      signal: enough.signal
    })
    await appended
    t.same(new Set(read.map(({ value }) => value)), new Set(messages(7).map(({ value }) => value)))
  })

  it('the next batch of a partition waits until the one before is dealt with', async (t, place) => {
    const log = await place.open({ partitions: 2, topics: ['thing'] })
    for (let i = 0; i < 10; i += 1) await log.append('thing', messages(20, i * 20))
    const inHand = new Map<number, number>()
    let most = 0
    let total = 0
    const enough = new AbortController()
    await log.consume({
      topics: ['thing'],
      startAt: async () => 0,
      deliver: async ({ partition, records }) => {
        inHand.set(partition, (inHand.get(partition) ?? 0) + 1)
        most = Math.max(most, inHand.get(partition) ?? 0)
        await new Promise((resolve) => setImmediate(resolve))
        await log.append('thing', [message(9999, 'late')])
        inHand.set(partition, (inHand.get(partition) ?? 0) - 1)
        total += records.length
        if (total >= 200) enough.abort()
      },
      signal: enough.signal
    })
    t.equal(most, 1)
  })

  it('an error of deliver ends the reading with that error', async (t, place) => {
    const log = await place.open({ partitions: 1, topics: ['thing'] })
    await log.append('thing', messages(3))
    const reading = log.consume({
      topics: ['thing'],
      startAt: async () => 0,
      deliver: async () => {
        throw new Error('the tables are away')
      },
      signal: new AbortController().signal
    })
    await t.rejects(reading, { message: 'the tables are away' })
  })

  it('an abort lets the delivery under way finish, and nothing is delivered after it', async (t, place) => {
    const log = await place.open({ partitions: 1, topics: ['thing'] })
    await log.append('thing', messages(3))
    const enough = new AbortController()
    let isFinished = false
    let deliveries = 0
    await log.consume({
      topics: ['thing'],
      startAt: async () => 0,
      deliver: async () => {
        deliveries += 1
        enough.abort()
        await log.append('thing', messages(3, 3))
        isFinished = true
      },
      signal: enough.signal
    })
    t.ok(isFinished)
    t.equal(deliveries, 1)
  })

  it('a reading that was aborted before it began ends at once', async (t, place) => {
    const log = await place.open({ partitions: 1, topics: ['thing'] })
    await log.consume({
      topics: ['thing'],
      startAt: async () => 0,
      deliver: async () => {
        t.fail('nothing is to be delivered')
      },
      signal: AbortSignal.abort()
    })
  })

  it('a second reading goes on where the first one says, whatever was committed', async (t, place) => {
    const log = await place.open({ partitions: 1, epoch: EPOCH, topics: ['thing'] })
    await log.append('thing', messages(20))
    const enough = new AbortController()
    await log.consume({
      topics: ['thing'],
      startAt: async () => 0,
      deliver: async ({ records }) => {
        await log.commit('thing', { epoch: EPOCH, partition: 0, next: (records.at(-1)?.offset ?? 0) + 1 })
        enough.abort()
      },
      signal: enough.signal
    })
    t.same(all(await readAll(log, 'thing', 13, () => 7)), messages(20).slice(7))
  })

  it('many topics are read in one reading', async (t, place) => {
    const topics = Array.from({ length: 25 }, (_, i) => `topic-${i}`)
    const log = await place.open({ partitions: 1, topics })
    await Promise.all(topics.map((topic, i) => log.append(topic, messages(i + 1))))
    const counts = new Map<string, number>()
    const enough = new AbortController()
    let total = 0
    await log.consume({
      topics,
      startAt: async () => 0,
      deliver: async ({ topic, records }) => {
        counts.set(topic, (counts.get(topic) ?? 0) + records.length)
        total += records.length
        if (total >= 325) enough.abort()
      },
      signal: enough.signal
    })
    t.same([...counts].sort(), topics.map((topic, i) => [topic, i + 1] as const).sort())
  })

  it('a message of a megabyte, and one after it, come back', async (t, place) => {
    const log = await place.open({ partitions: 1, topics: ['thing'] })
    let noise = 1
    const value = Array.from({ length: 1_048_576 }, () => {
      noise = (Math.imul(noise, 1_103_515_245) + 12_345) >>> 0
      return String.fromCharCode(33 + ((noise >>> 16) % 90))
    }).join('')
    await log.append('thing', [{ key: 'big', headers: {}, value }, message(1)])
    const read = all(await readAll(log, 'thing', 2))
    t.ok(read[0]?.value === value)
    t.same(read[1], message(1))
  })

  it('keys, headers and values of any text come back exactly', async (t, place) => {
    const log = await place.open({ partitions: 1, topics: ['thing'] })
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 30 }),
      fc.json({ maxDepth: 2 }),
      fc.constantFrom('', '\0', '"', '{"a":"\\"b"}', '00012', '9007199254740993', '1e5', '-0', '2026-01-01T00:00:00Z'),
      fc.constantFrom(
        '2026-01-01T00:00:00.000Z',
        '2026-02-30T00:00:00Z',
        '4d530064',
        '4D530064',
        '👩‍🚀',
        '{',
        '[1,2',
        '{"t":1.50}'
      ),
      fc
        .tuple(fc.constantFrom('2026-01-01T', '2024-02-30T'), fc.nat(25), fc.nat(61), fc.nat(61))
        .map(([day, ...clock]) => `${day}${clock.map((n) => String(n).padStart(2, '0')).join(':')}Z`),
      fc.nat().map((n) => JSON.stringify({ titleId: '4d530064', observedAt: '2026-01-01T00:00:00Z', online: n }))
    )
    const headerName = fc.oneof(
      fc.constantFrom('ce_id', 'ce_time', 'content-type', '__proto__', 'constructor', '7', 'Ünïcode'),
      fc.string({ minLength: 1, maxLength: 8 })
    )
    const headers = fc.array(fc.tuple(headerName, text), { maxLength: 4 }).map((pairs) => {
      return Object.defineProperties(
        {} as Record<string, string>,
        Object.fromEntries(
          pairs.map(([name, value]) => [name, { value, enumerable: true, configurable: true, writable: true }])
        )
      )
    })
    const batch = fc.array(fc.record({ key: text, headers, value: text }, { noNullPrototype: true }), {
      minLength: 1,
      maxLength: 40
    })
    let start = 0
    await fc.assert(
      fc.asyncProperty(batch, async (sent) => {
        await log.append('thing', sent)
        const from = start
        start += sent.length
        t.strictSame(all(await readAll(log, 'thing', sent.length, () => from)), sent)
      }),
      { numRuns: engine.runs }
    )
  })

  it('after close everything is refused with a sentence', async (t, place) => {
    const log = await place.open({ partitions: 1, topics: ['thing'] })
    await log.append('thing', messages(1))
    await log.close()
    await log.close()
    await t.rejects(log.append('thing', messages(1)), /is closed/)
    await t.rejects(log.extents('thing'), /is closed/)
  })

  it('close ends a reading that is under way', async (t, place) => {
    const log = await place.open({ partitions: 1, topics: ['thing'] })
    await log.append('thing', messages(1))
    let closed: Promise<void> | undefined
    await log.consume({
      topics: ['thing'],
      startAt: async () => 0,
      deliver: async () => {
        closed = log.close()
      },
      signal: new AbortController().signal
    })
    await closed
    t.pass('the reading ended')
  })
}
