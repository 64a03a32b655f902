import { equal } from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { isDeepStrictEqual } from 'node:util'
import { Worker } from 'node:worker_threads'
import { openEmbeddedLog, readLogApart } from '@gamenet/engines/log'
import {
  encodeEvent,
  instantOf,
  type LogMessage,
  type LogRecord,
  packMessages,
  titleCountTopic
} from '@gamenet/schemas'
import fc from 'fast-check'
import { open } from 'lmdb'
import { type Test, test } from 'tap'
import { asAppended, message, messages, readAll } from './log-contract.js'

const engines = new URL('../src/log.js', import.meta.url).href
const contract = new URL('./log-contract.js', import.meta.url).href

function openLog(t: Test, options: Parameters<typeof openEmbeddedLog>[0]): ReturnType<typeof openEmbeddedLog> {
  const log = openEmbeddedLog(options)
  t.teardown(() => log.close())
  return log
}

function scrapeOf200(minute: number): LogMessage[] {
  return Array.from({ length: 200 }, (_, i) => {
    const titleId = (0x4d53_0000 + ((i * 7919) % 65_536)).toString(16)
    const observedAt = instantOf(Date.UTC(2026, 0, 1) + minute * 60_000)
    const online = (i * 31 + minute * 17) % 977
    return encodeEvent(
      titleCountTopic,
      { titleId, observedAt, online, sessions: online >> 4, lobbyPlayers: online >> 2 },
      { source: '/scrape/network' }
    )
  })
}

async function killed(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}

void test('acknowledged appends survive a kill of the process', async (t) => {
  const path = t.testdir()
  const program = `
    import { openEmbeddedLog } from ${JSON.stringify(engines)}
    import { message } from ${JSON.stringify(contract)}
    const log = openEmbeddedLog({ path: ${JSON.stringify(path)} })
    for (let n = 0; ; n += 1) {
      await log.append('thing', [message(n * 2), message(n * 2 + 1)])
      process.stdout.write(n + '\\n')
    }`
  let held = 0
  for (let round = 0; round < 3; round += 1) {
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit']
    })
    let answered = 0
    for await (const line of createInterface({ input: child.stdout })) {
      answered = Number(line) + 1
      if (answered >= 20 + round * 7) break
    }
    await killed(child)
    const log = openLog(t, { path })
    const [extent] = await log.extents('thing')
    const next = extent?.next ?? 0
    t.ok(next - held >= answered * 2, `${next - held} records are there, ${answered * 2} were answered`)
    t.equal(next % 2, 0, 'an append is there as a whole')
    const read = await readAll(log, 'thing', next - held, () => held)
    t.same((read.get(0) ?? []).map(asAppended), messages(next - held))
    held = next
    await log.close()
  }
})

void test('a worker thread that opens the same directory reads new appends too', async (t) => {
  const path = t.testdir()
  const log = openLog(t, { path })
  await log.append('thing', messages(5))
  const worker = new Worker(
    `
    const { parentPort } = require('node:worker_threads')
    const enough = new AbortController()
    import(${JSON.stringify(engines)}).then(async ({ openEmbeddedLog }) => {
      const log = openEmbeddedLog({ path: ${JSON.stringify(path)} })
      let total = 0
      parentPort.on('message', () => enough.abort())
      await log.consume({
        topics: ['thing'],
        startAt: async () => 0,
        deliver: async ({ records }) => {
          total += records.length
          parentPort.postMessage({ total, last: records.at(-1) })
        },
        signal: enough.signal
      })
      const extents = await log.extents('thing')
      await log.close()
      parentPort.postMessage({ extents })
      parentPort.close()
    })`,
    { eval: true }
  )
  const said: { total?: number; last?: { value: string }; extents?: unknown }[] = []
  let hear = (): void => {}
  worker.on('message', (message) => {
    said.push(message)
    hear()
  })
  const until = async (isSaid: () => boolean): Promise<void> => {
    while (!isSaid()) {
      await new Promise<void>((resolve) => {
        hear = resolve
      })
    }
  }
  await until(() => said.at(-1)?.total === 5)
  for (let round = 1; round <= 20; round += 1) {
    await log.append('thing', messages(5, round * 5))
    await until(() => said.at(-1)?.total === 5 + round * 5)
    t.equal(said.at(-1)?.last?.value, message(round * 5 + 4).value)
  }
  worker.postMessage('stop')
  await until(() => said.at(-1)?.extents !== undefined)
  t.same(said.at(-1)?.extents, await log.extents('thing'))
  await log.append('thing', messages(1))
  t.pass('the log goes on after the worker closed its own')
})

void test('the lock file is allocated when a log is opened, because a full disk would end the process', async (t) => {
  const path = t.testdir({})
  const lock = join(path, 'lock.mdb')
  const sizes: number[] = []
  for (let n = 0; n < 3; n += 1) {
    const log = openEmbeddedLog({ path })
    await log.append('thing', [message(n)])
    await log.close()
    const { size, blocks } = statSync(lock)
    t.ok(blocks * 512 >= size, 'it has no hole')
    sizes.push(size)
    truncateSync(lock)
    truncateSync(lock, size)
  }
  t.same(new Set(sizes).size, 1, 'LMDB does not enlarge it')
})

void test('an idle reader keeps no process alive', async (t) => {
  const program = `
    import { openEmbeddedLog } from ${JSON.stringify(engines)}
    const log = openEmbeddedLog({ path: ${JSON.stringify(t.testdir())} })
    log.consume({ topics: ['thing'], startAt: async () => 0, deliver: async () => {}, signal: new AbortController().signal })`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: 'inherit' })
  const [code] = await once(child, 'exit')
  t.equal(code, 0)
})

void test('an event of a scrape of 200 titles takes at most 40 bytes on disk', async (t) => {
  const path = t.testdir()
  const log = openLog(t, { path })
  for (let minute = 0; minute < 250; minute += 1) await log.append('title-count', scrapeOf200(minute))
  const bytes = statSync(join(path, 'data.mdb')).size / 50_000
  t.ok(bytes <= 40, `${bytes.toFixed(1)} bytes`)
})

void test('a directory of a newer format is refused', async (t) => {
  const path = t.testdir()
  await openEmbeddedLog({ path }).close()
  const root = open({ path, noSubdir: false, maxDbs: 4, overlappingSync: false, encoding: 'binary' })
  await root.openDB<string, string>({ name: 'meta', encoding: 'string' }).put('format', '2')
  await root.close()
  t.throws(() => openEmbeddedLog({ path }), /has format 2, this program reads 1/)
})

void test('a directory with other content is refused', async (t) => {
  const path = t.testdir({ 'data.mdb': 'x'.repeat(10_000) })
  t.throws(
    () => openEmbeddedLog({ path }),
    /data.mdb of the log at .* is damaged: its first page is damaged.*gamenet restore/
  )
  const other = t.testdir({ 'lock.mdb': {} })
  t.throws(
    () => openEmbeddedLog({ path: other }),
    /The log at .* cannot be opened: its file lock.mdb is a folder; move it/
  )
})

void test('a damaged file is refused, or returns the appended records, or reports where it is damaged', async (t) => {
  const path = t.testdir()
  const whole = openEmbeddedLog({ path })
  for (let n = 0; n < 60; n += 1) await whole.append(n % 3 === 0 ? 'large' : 'thing', messages(n % 3 === 0 ? 200 : 9))
  const expected = await Promise.all(['large', 'thing'].map((topic) => readTopic(whole, topic)))
  await whole.close()
  const bytes = readFileSync(join(path, 'data.mdb'))
  const outcomes = { refused: 0, harmless: 0, reported: 0 }
  const damages = fc.sample(fc.record({ at: fc.nat(bytes.length - 1), bit: fc.nat(7), isCut: fc.nat(9) }), {
    numRuns: 30,
    seed: 11
  })
  // Magic, page number and page size of the first meta page, version of the second.
  for (const at of [24, 48, 56, 4096 + 28]) damages.push({ at, bit: 1, isCut: 1 })
  const flipped = damages.map(({ at, bit, isCut }) => {
    const damaged = Buffer.from(bytes.subarray(0, isCut === 0 ? at : bytes.length))
    if (isCut !== 0) damaged.writeUInt8((damaged[at] ?? 0) ^ (1 << bit), at)
    return { at, damaged }
  })
  const zeroed = fc
    .sample(fc.record({ at: fc.nat(bytes.length - 1), bytes: fc.constantFrom(512, 1024, 2048, 4096) }), {
      numRuns: 30,
      seed: 12
    })
    .map((zeros) => {
      const at = zeros.at - (zeros.at % zeros.bytes)
      return { at, damaged: Buffer.from(bytes).fill(0, at, at + zeros.bytes) }
    })
  for (const { at, damaged } of [...flipped, ...zeroed]) {
    const copy = t.testdir({ 'data.mdb': damaged })
    let log: ReturnType<typeof openEmbeddedLog>
    try {
      await readLogApart(copy, 'values')
      log = openEmbeddedLog({ path: copy })
    } catch (error) {
      t.match(error, { message: /is damaged: .* Restore the newest backup/ }, `byte ${at}`)
      outcomes.refused += 1
      continue
    }
    try {
      const found = await Promise.all(['large', 'thing'].map((topic) => readTopic(log, topic)))
      t.ok(isDeepStrictEqual(found, expected), `byte ${at}`)
      outcomes.harmless += 1
    } catch (error) {
      t.match(error, { message: /is damaged: at .* Restore the newest backup/ }, `byte ${at}`)
      const faults = await log.check(
        async () => undefined,
        () => true
      )
      t.ok(faults.length > 0, `byte ${at}: a check finds it`)
      outcomes.reported += 1
    }
    await log.close()
  }
  t.ok(outcomes.refused > 4 && outcomes.harmless > 4 && outcomes.reported > 1, JSON.stringify(outcomes))
  t.comment(JSON.stringify(outcomes))
})

void test('a file that lacks pages at its end is refused, or has all records', async (t) => {
  const path = t.testdir()
  const whole = openEmbeddedLog({ path })
  const large = { ...message(1), value: JSON.stringify(randomBytes(40_000).toString('base64')) }
  for (const each of [[large], messages(3), messages(3)]) await whole.append('thing', each)
  const expected = await readTopic(whole, 'thing')
  await whole.close()
  const bytes = readFileSync(join(path, 'data.mdb'))
  const outcomes = { refused: 0, whole: 0 }
  for (let size = bytes.length - 4096; size > 8192; size -= 4096) {
    writeFileSync(join(path, 'data.mdb'), bytes.subarray(0, size))
    let log: ReturnType<typeof openEmbeddedLog>
    try {
      log = openEmbeddedLog({ path })
    } catch (error) {
      t.match(error, { message: /is damaged: .* Restore the newest backup/ }, `${size} bytes`)
      outcomes.refused += 1
      continue
    }
    t.same(await readTopic(log, 'thing'), expected, `${size} bytes`)
    outcomes.whole += 1
    await log.close()
  }
  t.ok(outcomes.refused > 4, JSON.stringify(outcomes))
  t.comment(JSON.stringify(outcomes))
})

void test('a file that lacks pages is refused before they are read, and the death of a process that reads it is reported', async (t) => {
  const path = t.testdir()
  const whole = openEmbeddedLog({ path })
  for (let n = 0; n < 60; n += 1) await whole.append('thing', messages(200))
  await whole.close()
  await readLogApart(path, 'values')
  const { size } = statSync(join(path, 'data.mdb'))
  for (const [bytes, says] of [
    [size / 2 - ((size / 2) % 4096), /is damaged: reading it ends in SIGBUS/],
    [size / 2 - ((size / 2) % 4096) - 1, /is damaged: it is truncated after/]
  ] as const) {
    truncateSync(join(path, 'data.mdb'), bytes)
    t.throws(() => openEmbeddedLog({ path }), says)
    await t.rejects(readLogApart(path, 'keys'), /is damaged: reading it ends in SIGBUS.*gamenet restore/)
  }
  const stop = new AbortController()
  stop.abort()
  await t.rejects(readLogApart(path, 'keys', stop.signal), { name: 'AbortError' })
})

/*
 * A process that opens the log resets the newest transaction in the lock file, so that the next commit of another one
 * would overwrite newer pages.
 */
void test('a reading process leaves the lock file of an open log alone, and reads no page that is used again', async (t) => {
  const path = t.testdir()
  const now = { ms: 0 }
  const log = openEmbeddedLog({ path, retentionMs: 1, now: () => now.ms })
  await log.append('thing', messages(200))
  let isReading = true
  const appending = (async () => {
    while (isReading) {
      now.ms += 1
      await log.append(`topic-${now.ms % 40}`, messages(1 + (now.ms % 60)))
      await log.trim()
    }
  })()
  for (let n = 0; n < 8; n += 1) await log.readApart(n % 2 === 0 ? 'keys' : 'values')
  isReading = false
  await appending
  await log.close()
  const lock = Buffer.alloc(8272, 'not a lock')
  writeFileSync(join(path, 'lock.mdb'), lock)
  await readLogApart(path, 'keys')
  t.same(readFileSync(join(path, 'lock.mdb')), lock)
})

/** Returns all records of a topic. */
async function readTopic(log: ReturnType<typeof openEmbeddedLog>, topic: string) {
  const next = (await log.extents(topic)).reduce((sum, extent) => sum + extent.next, 0)
  return await readAll(log, topic, next)
}

void test('packed messages are stored like others, also where one batch does not hold them', async (t) => {
  for (const [partitions, sent] of [
    [1, messages(40)],
    [1, messages(9000)],
    [3, messages(40)]
  ] as const) {
    const log = openLog(t, { path: t.testdir(), partitions })
    await log.append('plain', sent)
    await log.appendPacked('packed', packMessages(sent))
    await log.appendPacked('packed', packMessages([]))
    const [packed, plain] = await Promise.all(
      ['packed', 'plain'].map(async (topic) => {
        const partitions = [...(await readTopic(log, topic))]
        // The two appends have different instants.
        return partitions.map(([n, records]) => [n, records.map(({ recordedAtMs: _, ...record }) => record)] as const)
      })
    )
    t.same(packed, plain)
    t.equal(packed?.flatMap(([, records]) => records).length, sent.length)
    await log.close()
  }
})

void test('other partitions in the same epoch are refused', async (t) => {
  const path = t.testdir()
  await openEmbeddedLog({ path, epoch: 2, partitions: 3 }).close()
  t.throws(
    () => openEmbeddedLog({ path, epoch: 2, partitions: 4 }),
    /has 3 partitions in epoch 2, requested were 4: raise the epoch/
  )
  t.throws(() => openEmbeddedLog({ path, epoch: 70_000 }), /epoch is 70000, expected a whole number from 0 to 65535/)
})

void test('after an increment of the epoch, older records are read before newer ones', async (t) => {
  const path = t.testdir()
  const before = openEmbeddedLog({ path, epoch: 1, partitions: 1 })
  await before.append('thing', messages(10))
  await before.close()
  const log = openLog(t, { path, epoch: 2, partitions: 2 })
  await log.append('thing', messages(10, 10))
  const read: string[] = []
  const enough = new AbortController()
  await log.consume({
    topics: ['thing'],
    startAt: async () => 0,
    deliver: async ({ epoch, records }) => {
      read.push(...records.map(({ value }) => `${epoch} ${JSON.parse(String(value)).n >= 10}`))
      if (read.length >= 20) enough.abort()
    },
    signal: enough.signal
  })
  t.same(read, [...Array(10).fill('1 false'), ...Array(10).fill('2 true')])
  t.same(
    (await log.extents('thing')).map(({ epoch }) => epoch),
    [1, 2, 2]
  )
})

void test('two draws of the next epoch are rarely equal, and after the last epoch a draw is refused', async (t) => {
  const path = t.testdir()
  const restores = 100
  for (let n = 0; n < restores; n += 1) await openEmbeddedLog({ path, epoch: 'next' }).close()
  const log = openEmbeddedLog({ path })
  t.ok(log.epoch > restores * 300 && log.epoch < 65_535, `${log.epoch}`)
  await log.close()
  await openEmbeddedLog({ path, epoch: 65_535 }).close()
  t.throws(() => openEmbeddedLog({ path, epoch: 'next' }), /epoch is 65536, expected a whole number from 0 to 65535/)
})

void test('the log continues in the newest epoch that it has', async (t) => {
  const path = t.testdir()
  const epochs: number[] = []
  for (const epoch of [1, 'next', 1, 'next'] as const) {
    const log = openEmbeddedLog({ path, epoch })
    epochs.push(log.epoch)
    await log.append('thing', messages(10))
    await log.close()
  }
  const [first = 0, second = 0, third = 0, fourth = 0] = epochs
  t.ok(first === 1 && second > first && third === second && fourth > third)
  t.same(
    (await openLog(t, { path }).extents('thing')).map(({ epoch, next }) => [epoch, next]),
    [
      [first, 10],
      [second, 20],
      [fourth, 10]
    ]
  )
})

void test('retention by age deletes whole old batches, keeps the newest, and moves the first offset', async (t) => {
  let nowMs = 1_000_000
  const log = openLog(t, { path: t.testdir(), retentionMs: 60_000, now: () => nowMs })
  for (let i = 0; i < 10; i += 1) {
    await log.append('thing', messages(10, i * 10))
    nowMs += 10_000
  }
  await log.trim()
  t.same(await log.extents('thing'), [{ epoch: 1, partition: 0, first: 40, next: 100 }])
  await t.rejects(
    readAll(log, 'thing', 1, () => 5),
    /offsets 5 to 39 of thing, epoch 1, partition 0 are no longer in the log/
  )
  const read = await readAll(log, 'thing', 60)
  t.same((read.get(0) ?? []).map(asAppended), messages(60, 40))
  nowMs += 10_000_000
  await log.trim()
  t.same(await log.extents('thing'), [{ epoch: 1, partition: 0, first: 90, next: 100 }])
})

void test('retention by size bounds a partition', async (t) => {
  const log = openLog(t, { path: t.testdir(), retentionBytes: 20_000 })
  const noise = (n: number): string =>
    Array.from({ length: 2000 }, (_, i) => ((i * 7919 + n * 104_729) % 9973).toString(36)).join('')
  for (let n = 0; n < 40; n += 1) await log.append('thing', [{ ...message(n), value: noise(n) }])
  await log.trim()
  const [extent] = await log.extents('thing')
  t.ok((extent?.first ?? 0) > 20, `the first offset is ${extent?.first}`)
  t.equal(extent?.next, 40)
})

void test('a failed write is reported and stores nothing, and later appends work', async (t) => {
  const path = t.testdir()
  const log = openLog(t, { path })
  await log.append('thing', messages(10))
  // The process may not grow a file beyond this size: the write fails as on a full disk.
  const program = `
    import { openEmbeddedLog } from ${JSON.stringify(engines)}
    import { message } from ${JSON.stringify(contract)}
    const log = openEmbeddedLog({ path: ${JSON.stringify(path)} })
    process.on('SIGXFSZ', () => {})
    const noise = () => Array.from({ length: 50000 }, () => Math.random().toString(36)).join('')
    const outcomes = []
    for (let n = 0; n < 3; n += 1) {
      outcomes.push(await log.append('thing', [{ key: 'k', headers: {}, value: noise() }]).then(() => 'written', (e) => e.message))
    }
    outcomes.push(await log.append('thing', [message(10)]).then(() => 'written', (e) => e.message))
    await log.close()
    console.log(JSON.stringify(outcomes))`
  await log.close()
  const shell = 'ulimit -f 400; exec "$0" --input-type=module -e "$1"'
  const child = spawn('bash', ['-c', shell, process.execPath, program], { stdio: ['ignore', 'pipe', 'ignore'] })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  const [code] = await once(child, 'exit')
  t.equal(code, 0, 'the process lives on')
  const outcomes: string[] = JSON.parse(output)
  t.match(outcomes[0], /^nothing was written to the log at .*: /)
  t.equal(outcomes.at(-1), 'written', 'a small append still fits')
  const reopened = openLog(t, { path })
  const read = await readAll(reopened, 'thing', 11)
  t.same((read.get(0) ?? []).map(asAppended), messages(11))
})

void test('the size of one message, and the name of a topic, are bounded', async (t) => {
  const log = openLog(t, { path: t.testdir() })
  await t.rejects(
    log.append('thing', [{ key: 'k', headers: {}, value: 'x'.repeat(17_000_000) }]),
    /the log accepts up to 16777216/
  )
  await t.rejects(log.append('no/topic', [message(1)]), /the topic "no\/topic" has an invalid name/)
  await log.append('thing', [message(1)])
  t.same((await log.extents('thing'))[0]?.next, 1)
})

void test('two readers of one log each get everything', async (t) => {
  const path = t.testdir()
  const log = openLog(t, { path })
  const other = openLog(t, { path })
  await log.append('thing', messages(500))
  const [one, two] = await Promise.all([readAll(log, 'thing', 500), readAll(other, 'thing', 500)])
  t.same((one.get(0) ?? []).map(asAppended), messages(500))
  t.same(two, one)
})

void test('a stored batch of this format is read', async (t) => {
  const { unpackBatch } = await import('../src/log/batch-codec.js')
  const { STORED_BATCH } = await import('./log-stored-batch.js')
  const stored = await unpackBatch(Buffer.from(STORED_BATCH, 'base64'), 0)
  const records = stored.slice(0, stored.count)
  t.same(records.map(asAppended), [
    ...scrapeOf200(0).slice(0, 3),
    message(1),
    { key: 'k', headers: {}, value: 'no JSON' }
  ])
})

void test('the checksum of a batch detects any changed byte, without decoding its records', async (t) => {
  const { checkBatch, packBatch, stampBatch, unpackBatch } = await import('../src/log/batch-codec.js')
  const batch = await packBatch(packMessages(messages(40)))
  stampBatch(batch, { appendedAtMs: 1_700_000_000_000, bytesBefore: 12_345 })
  checkBatch(batch)
  for (let at = 0; at < batch.length; at += 1) {
    const damaged = Buffer.from(batch)
    damaged[at] = (damaged[at] ?? 0) ^ (1 << (at % 8))
    t.throws(() => checkBatch(damaged), /checksum|format/, `byte ${at} of ${batch.length}`)
    await t.rejects(unpackBatch(damaged, 0))
  }
})

void test('a batch with any texts and headers is restored exactly', async () => {
  const { packBatch, unpackBatch } = await import('../src/log/batch-codec.js')
  const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('', 'same', '\ud800'))
  const name = fc.oneof(fc.constantFrom('ce_id', 'ce_importid', '__proto__', 'constructor'), fc.string())
  const headers = fc.array(fc.tuple(name, text), { maxLength: 4 }).map((pairs) => {
    const own: Record<string, string> = {}
    for (const [key, value] of pairs)
      Object.defineProperty(own, key, { value, enumerable: true, configurable: true, writable: true })
    return own
  })
  await fc.assert(
    fc.asyncProperty(fc.array(fc.record({ key: text, headers, value: text }), { maxLength: 20 }), async (sent) => {
      const stored = await unpackBatch(await packBatch(packMessages(sent)), 0)
      equal(JSON.stringify(stored.slice(0, stored.count).map(entriesOf)), JSON.stringify(sent.map(entriesOf)))
    }),
    { seed: 1, numRuns: 200 }
  )
})

function entriesOf({ key, headers, value }: Pick<LogRecord, 'key' | 'headers' | 'value'>) {
  return [key, Object.entries(headers).sort(([a], [b]) => (a < b ? -1 : 1)), value]
}

// A folder that cannot be created is a fault of the caller, and the error says so.
void test('a path that is a file is refused', async (t) => {
  const path = join(t.testdir(), 'file')
  writeFileSync(path, 'x')
  t.throws(() => openEmbeddedLog({ path }))
  rmSync(path)
  mkdirSync(path)
  await openEmbeddedLog({ path }).close()
})
