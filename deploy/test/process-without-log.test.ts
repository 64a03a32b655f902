import { join } from 'node:path'
import { freePort, postgresPrograms, sharedPostgres, startClickHouseServer } from '@gamenet/engines/testing'
import { test } from 'tap'
import { gamenet, startGamenet } from './service/gamenet.js'

const programs = postgresPrograms()
const missing = 'PostgreSQL is not installed (Debian: apt-get install postgresql)'
const skip = programs === undefined && process.env.CI !== 'true' ? missing : false

test("a process without the log's address refuses operations that need the log", {
  skip
}, async (t) => {
  if (programs === undefined) throw new Error(missing)
  const folder = t.testdir({ 'counts.ndjson': '{"observedAt":"2026-03-14T20:00:00Z","online":1}\n' })
  const front = await startClickHouseServer({ path: join(folder, 'tables'), port: await freePort() })
  t.teardown(() => front.kill())
  const postgres = await sharedPostgres(t)
  const environment = { DATA_DIR: join(folder, 'data'), CLICKHOUSE_URL: front.url, POSTGRES_URL: postgres.url }
  // Other work that waits in a process does not delay its stop.
  const NODE_OPTIONS = '--import=data:text/javascript,setInterval(()=>{},1000)'
  const api = await startGamenet({ ...environment, NODE_OPTIONS }, 'api')
  t.teardown(() => api.kill())
  const reach = { OPERATOR_URL: api.operatorUrl }
  for (const command of [
    ['erase', 'ann'],
    ['import', 'network-count', join(folder, 'counts.ndjson')],
    ['status', '--wait', '5'],
    ['verify']
  ]) {
    t.match(await gamenet(reach, command), { code: 2, stderr: /KAFKA_BROKERS.*ingest or projector/ }, command.join(' '))
  }
  t.match(await gamenet(reach, ['erase', '--list']), { code: 0, stdout: 'There are no erasures.\n' })
  t.equal(await api.stop(), 0)
})
