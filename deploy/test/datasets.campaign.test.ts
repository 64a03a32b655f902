import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { kafkaBrokerMissing, sharedKafka } from '@gamenet/engines/testing'
import { instantOf } from '@gamenet/schemas'
import { type Test, test } from 'tap'
import { startQuietService } from './boards-service.js'
import { provesRecordedTimes, recordedTimes } from './real-input/boards.js'
import { provesCounts } from './real-input/counts.js'
import { provesRecordedMatches, recordedSnapshots } from './real-input/matches.js'
import { provesSameBytes } from './service/dataset-proofs.js'
import { type Environment, gamenetJson } from './service/gamenet.js'

/* Files of closed months have the same bytes after everything was computed from the log again. The short form is datasets.test.ts. */

const PROJECTIONS = [
  'network-count',
  'title-count',
  'title',
  'leaderboard',
  'leaderboard-entry',
  'match-list',
  'scrape'
]
const YEAR_MS = Date.UTC(2024, 0, 1)
const HOUR_MS = 3_600_000

test('on embedded engines', (t) => proves(t, {}))

test('on Kafka', async (t) => {
  const missing = await kafkaBrokerMissing()
  if (missing !== undefined) throw new Error(missing)
  const { address } = await sharedKafka(t)
  await proves(t, { KAFKA_BROKERS: address, KAFKA_TOPIC_PREFIX: `${randomUUID()}.`, KAFKA_PARTITIONS: '3' })
})

async function proves(t: Test, engines: Environment): Promise<void> {
  const service = await startQuietService(t, undefined, engines)
  const { environment, directory, running } = service
  await provesCounts(t, service, { isWhole: true })
  const [times, matches] = [await recordedTimes(t), await recordedSnapshots(t)]
  if (times === undefined || matches === undefined) throw new Error('the recorded data is missing')
  await provesRecordedTimes(t, service, times)
  await provesRecordedMatches(t, service, matches)
  const titles = Array.from({ length: 12 }, (_, n) => (0x4d530000 + n).toString(16))
  const counts = titles.flatMap((id, title) =>
    Array.from(
      { length: 366 * 24 },
      (_, n) => `${id},${instantOf(YEAR_MS + n * HOUR_MS)},${(n * 7919 * (title + 1)) % 997}`
    )
  )
  for (const [topic, heading, rows] of [
    ['title', 'titleId,name,observedAt', titles.map((id) => `${id},Title ${id},2024-01-01T00:00:00Z`)],
    ['title-count', 'titleId,observedAt,online', counts]
  ] as const) {
    const file = join(directory, `${topic}.csv`)
    await writeFile(file, [heading, ...rows].join('\n'))
    await gamenetJson(environment, ['import', topic, file])
  }
  await service.settled()
  await provesSameBytes(t, environment, running, PROJECTIONS)
}
