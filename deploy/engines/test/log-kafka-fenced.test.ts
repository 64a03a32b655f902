import { randomUUID } from 'node:crypto'
import { openKafkaLog } from '@gamenet/engines/log'
import { kafkaBrokerMissing, startKafkaBroker } from '@gamenet/engines/testing'
import { pause } from '@gamenet/schemas'
import { test } from 'tap'
import { messages } from './log-contract.js'

/** Six absences of half a second: behind three, one of three runs did not meet a refusal. */
const REQUESTS_MS = 12_000
/** Between two requests of a client; the absences last for twenty. */
const PAUSE_MS = 25
const missing = await kafkaBrokerMissing()

test('while leaders come and go, requests and appends wait, and are not refused', async (t) => {
  if (missing !== undefined) {
    if (process.env.CI === 'true') t.fail(missing)
    else t.pass(`SKIPPED, NO LEADER CAME OR WENT: ${missing}`, { skip: missing })
    return
  }
  const broker = await startKafkaBroker({ fenced: true })
  t.teardown(() => broker.stop())
  const topicPrefix = `${randomUUID()}.`
  const open = () =>
    openKafkaLog({
      brokers: [broker.address],
      clientId: 'fenced',
      groupId: randomUUID(),
      epoch: 1,
      topicPrefix,
      partitions: 1,
      replicationFactor: 1
    })
  const log = open()
  t.teardown(() => log.close())
  await log.ensureTopics(['thing'])
  let appended = 0
  const begun = performance.now()
  const again = async (act: () => Promise<void>): Promise<void> => {
    while (performance.now() - begun < REQUESTS_MS) {
      await act()
      await pause(PAUSE_MS)
    }
  }
  const asks = async (): Promise<void> => {
    const extents = await log.extents('thing')
    if (extents.length !== 1) t.fail(`${extents.length} extents, expected 1`)
  }
  // One that was just opened has its questions of a beginner yet to ask.
  const begins = async (): Promise<void> => {
    const fresh = open()
    try {
      await fresh.append('thing', messages(1))
      appended += 1
    } finally {
      await fresh.close()
    }
  }
  await Promise.all([
    ...Array.from({ length: 6 }, () => again(asks)),
    ...Array.from({ length: 2 }, () => again(begins))
  ])
  const [extent] = await log.extents('thing')
  t.ok(appended > 0 && (extent?.next ?? 0) >= appended, 'what was answered is there')
})
