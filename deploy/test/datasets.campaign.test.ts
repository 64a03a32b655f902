import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { kafkaBrokerMissing, sharedKafka } from '@gamenet/engines/testing'
import { instantOf } from '@gamenet/schemas'
import { type Test, test } from 'tap'
import { startQuietService } from './boards-service.js'
import { recordedTimes } from './real-input/boards.js'
import { provesSameBytes } from './service/dataset-proofs.js'
import { type Environment, gamenetJson } from './service/gamenet.js'
import { recordedFile, sharedFile } from './service/recorded.js'

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
const TITLES = Array.from({ length: 12 }, (_, n) => (0x4d530000 + n).toString(16))
const YEAR_MS = Date.UTC(2024, 0, 1)
/** Boards have a file for each month since their first change, made of their whole history. */
const BOARDS_SINCE = '2019'
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
  const importFile = (topic: string, ...args: string[]) => gamenetJson(environment, ['import', topic, ...args])
  const counts = await recordedFile(t, 'online-hourly-2017-2026.csv.gz')
  await importFile('network-count', counts, '--columns', 'observedAt=Timestamp,online=Peak Player Count')
  const lobbies = await sharedFile('lobby-snapshots-2024.jsonl.gz')
  const times = await recordedTimes(t)
  if (lobbies === undefined || times === undefined) throw new Error('../shared/data is missing')
  const columns = 'observedAt=ts,hostName=id,currentPlayers=players'
  await importFile('match-list', lobbies, '--columns', columns, '--set', `titleId=${TITLES[0]}`)
  for (const [topic, rows] of Object.entries(rowsOf(times))) {
    const file = join(directory, `${topic}.ndjson`)
    await writeFile(file, rows.map((row) => JSON.stringify(row)).join('\n'))
    await importFile(topic, file)
  }
  await service.caughtUp()
  await provesSameBytes(t, environment, running, PROJECTIONS)
}

function rowsOf(times: Awaited<ReturnType<typeof recordedTimes>> = []) {
  const boards = [...new Set(times.map(({ game, campaign, track }) => `${game} ${campaign} ${track}`))]
  return {
    title: TITLES.map((titleId) => ({ titleId, name: `Title ${titleId}`, observedAt: '2024-01-01T00:00:00Z' })),
    'title-count': TITLES.flatMap((titleId, title) =>
      Array.from({ length: 366 * 24 }, (_, n) => ({
        titleId,
        observedAt: instantOf(YEAR_MS + n * HOUR_MS),
        online: (n * 7919 * (title + 1)) % 997
      }))
    ),
    'leaderboard-entry': times
      .filter(({ time_ms, date = '' }) => time_ms !== undefined && date >= BOARDS_SINCE)
      .map(({ game, campaign, track, player, time_ms, date }) => ({
        titleId: TITLES[1],
        leaderboardId: boards.indexOf(`${game} ${campaign} ${track}`) + 1,
        playerName: player,
        changeType: 'updated',
        timeMs: time_ms,
        changedAt: date
      }))
  }
}
