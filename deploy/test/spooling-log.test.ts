import { deepEqual } from 'node:assert/strict'
import { join } from 'node:path'
import { openEmbeddedLog, openSpool, type Spool } from '@gamenet/engines/log'
import { Failure, type LogMessage, leaderboardEntryTopic, scrapeTopic, titleCountTopic } from '@gamenet/schemas'
import fc from 'fast-check'
import { Registry } from 'prom-client'
import { type Test, test } from 'tap'
import { type SpoolingLog, spoolingLog } from '../src/stores/spooling-log.js'

const QUIET = { info: () => undefined, warn: () => undefined }
const TOPIC = titleCountTopic.name
const ROOM = 1024 * 1024

function message(n: number): LogMessage {
  return { key: `title-${n % 3}`, headers: { ce_id: `e${n}` }, value: JSON.stringify({ n }) }
}

/** A real log that can be unavailable: then it refuses, or stores messages and loses its answer. */
function fickleLog(t: Test, path: string) {
  const log = openEmbeddedLog({ path })
  t.teardown(() => log.close())
  const world = { isAway: false, losesAnswers: false }
  const taken: { topic: string; message: LogMessage }[] = []
  return {
    world,
    taken,
    log: {
      extents: (topic: string) => log.extents(topic),
      append: async (topic: string, messages: readonly LogMessage[]) => {
        if (world.isAway && !world.losesAnswers) throw new Failure('log_unreachable', 'the brokers are away')
        await log.append(topic, messages)
        for (const message of messages) taken.push({ topic, message })
        if (world.isAway) throw new Failure('log_unreachable', 'the brokers did not answer')
      }
    }
  }
}

function spooling(log: Parameters<typeof spoolingLog>[0]['log'], spool: Spool): SpoolingLog {
  return spoolingLog({ log, spool, registry: new Registry(), logger: QUIET, retry: { firstMs: 1, maxMs: 2 } })
}

async function drained(log: SpoolingLog): Promise<void> {
  while (log.status().messages > 0) await new Promise((resolve) => setImmediate(resolve))
}

test('messages that the log refuses wait on the disk and enter it in order, also after deaths of processes', async (t) => {
  const directory = t.testdir()
  let run = 0
  const step = fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({ kind: fc.constant('append' as const), count: fc.integer({ min: 1, max: 4 }) })
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('away' as const), losesAnswers: fc.boolean() }) },
    { weight: 2, arbitrary: fc.constant({ kind: 'back' as const }) },
    { weight: 1, arbitrary: fc.constant({ kind: 'restart' as const }) }
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
      run += 1
      const path = join(directory, `spool-${run}`)
      const { log, world, taken } = fickleLog(t, join(directory, `log-${run}`))
      let through = spooling(log, openSpool({ path, bytesMax: ROOM }))
      const acknowledged: string[] = []
      let n = 0
      for (const each of steps) {
        if (each.kind === 'away') Object.assign(world, { isAway: true, losesAnswers: each.losesAnswers })
        else if (each.kind === 'back') world.isAway = false
        else if (each.kind === 'restart') {
          await through.close()
          through = spooling(log, openSpool({ path, bytesMax: ROOM }))
        } else {
          const messages = Array.from({ length: each.count }, () => message(n++))
          await through.append(TOPIC, messages)
          acknowledged.push(...messages.map(({ value }) => value))
        }
      }
      world.isAway = false
      await drained(through)
      await through.close()
      // Duplicates are allowed, another order is not: the first occurrence of each message counts.
      deepEqual([...new Set(taken.map(({ message }) => message.value))], acknowledged)
    }),
    { numRuns: 25 }
  )
})

test('a newer message enters the log behind those of the spool, also while the log takes them slowly', async (t) => {
  const stored: string[] = []
  const [first, second] = [message(0), message(1)]
  let isAway = true
  let take = (): void => undefined
  const taking = new Promise<void>((resolve) => {
    take = resolve
  })
  const log = {
    extents: async () => [],
    append: async (_topic: string, messages: readonly LogMessage[]) => {
      if (isAway) {
        isAway = false
        throw new Failure('log_unreachable', 'the brokers are away')
      }
      if (messages.some(({ value }) => value === first.value)) await taking
      stored.push(...messages.map(({ value }) => value))
    }
  }
  const through = spooling(log, openSpool({ path: join(t.testdir(), 'spool'), bytesMax: ROOM }))
  await through.append(TOPIC, [first])
  await through.append(TOPIC, [second])
  take()
  await drained(through)
  t.same(stored, [first.value, second.value])
  await through.close()
})

test('while messages wait, the ends of their topics are unknown, and messages that must not wait are refused', async (t) => {
  const directory = t.testdir()
  const { log, world } = fickleLog(t, join(directory, 'log'))
  const through = spooling(log, openSpool({ path: join(directory, 'spool'), bytesMax: ROOM }))
  await through.append(TOPIC, [message(0)])
  t.match(through.status(), { messages: 0, reason: null, oldestAt: null })
  world.isAway = true
  await through.append(TOPIC, [message(1)])
  await through.append(scrapeTopic.name, [message(2)])
  t.match(through.status(), { messages: 2, reason: 'the brokers are away', oldestAt: /^20/ })
  await t.rejects(through.extents(TOPIC), { message: /2 messages wait in the spool/ })
  await t.rejects(through.append(leaderboardEntryTopic.name, [message(3)]), { message: 'the brokers are away' })
  t.same(await through.extents(leaderboardEntryTopic.name), [], 'of others the log itself is asked')
  world.isAway = false
  await drained(through)
  t.match(await through.extents(TOPIC), [{ next: 2 }])
  await through.close()
})

test('a full spool refuses with a sentence, keeps its messages, and accepts again when there is space', async (t) => {
  const directory = t.testdir()
  const { log, world } = fickleLog(t, join(directory, 'log'))
  const through = spooling(log, openSpool({ path: join(directory, 'spool'), bytesMax: 400 }))
  world.isAway = true
  let taken = 0
  const refusal = await (async () => {
    for (;;) await through.append(TOPIC, [message(taken)]).then(() => (taken += 1))
  })().catch((error: Error) => error)
  t.match(refusal, { message: /the spool at .* is full: \d+ of 400 bytes wait in it.*raise SPOOL_BYTES_MAX/ })
  t.ok(taken > 0)
  t.equal(through.status().messages, taken)
  t.ok(through.status().bytes <= 400)
  world.isAway = false
  await drained(through)
  await through.append(TOPIC, [message(taken)])
  t.match(await log.extents(TOPIC), [{ next: taken + 1 }])
  await through.close()
})

test('a service that ends keeps unacknowledged messages for the next one', async (t) => {
  const directory = t.testdir()
  const path = join(directory, 'spool')
  const { log } = fickleLog(t, join(directory, 'log'))
  const silent = { ...log, append: () => new Promise<void>(() => undefined) }
  const through = spooling(silent, openSpool({ path, bytesMax: ROOM }))
  const appending = through.append(TOPIC, [message(0)])
  through.hasten()
  await appending
  await through.close()
  const next = spooling(log, openSpool({ path, bytesMax: ROOM }))
  await drained(next)
  t.match(await next.extents(TOPIC), [{ next: 1 }])
  await next.close()
})
