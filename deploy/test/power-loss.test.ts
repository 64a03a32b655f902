import { readdir, readFile, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '@gamenet/engines/testing'
import { test } from 'tap'
import { status } from '../src/operate/status/operation.js'
import {
  type Environment,
  gamenetJson,
  openGamenet,
  operationsAt,
  type Running,
  startGamenet
} from './service/gamenet.js'

/*
 * Directories as a power failure can leave them, created by hand: a service starts on them and reports what it found.
 */

const DAYS = 40
const WINDOW = '/api/network-stats/daily-online?from=2025-01-01T00:00:00Z&to=2025-02-01T00:00:00Z'

test('a service whose tables lost all rows starts and restores them', async (t) => {
  const data = join(t.testdir({}), 'data')
  const file = join(data, '..', 'counts.csv')
  await writeFile(file, countsOf(DAYS))
  const environment: Environment = { DATA_DIR: data, UPSTREAM_URL: 'http://127.0.0.1:9', SCRAPE_NETWORK_SECONDS: '0' }
  const whole = await openGamenet(t, environment)
  await gamenetJson(environment, ['import', 'network-count', file])
  const before = await answerOf(whole)
  t.match(before, { status: 200 })
  await whole.stop()

  const folder = join(data, 'tables', 'store')
  let files = 0
  for (const path of await readdir(folder, { recursive: true })) {
    if (!path.endsWith('/data.bin')) continue
    await truncate(join(folder, path))
    files += 1
  }
  t.ok(files > 10, `${files} parts`)
  await writeFile(join(data, 'writes', 'postmaster.pid'), '')
  await writeFile(join(data, 'service.json'), '')

  const service = await startGamenet(environment)
  t.teardown(() => service.kill())
  const operations = operationsAt(service.operatorUrl)
  await until(
    async () => (await operations.run(status, {})).damage.length === 0,
    async () => {
      const { status, body } = await answerOf(service)
      if (status === 503) t.match(body, { error: /^The data for this request is damaged/ })
      else t.same({ status, body }, before, 'nothing wrong is answered')
    }
  )
  t.same(await answerOf(service), before)
  t.match(service.stderr(), /"table":"event_network_count","reason":"\d+ of its parts could not be read at a start"/)
  t.notMatch(await (await fetch(`${service.operatorUrl}/metrics`)).text(), /gamenet_damaged_tables\{[^}]*\} [1-9]/)
  t.equal(await service.stop(), 0)
  t.match(JSON.parse(await readFile(join(data, 'format.json'), 'utf8')), { format: Number })
})

async function answerOf({ apiUrl }: Pick<Running, 'apiUrl'>): Promise<{ status: number; body: unknown }> {
  const answer = await fetch(`${apiUrl}${WINDOW}`)
  return { status: answer.status, body: await answer.json() }
}

function countsOf(days: number): string {
  const lines = Array.from({ length: days * 24 }, (_, hour) => {
    return `${new Date(Date.UTC(2025, 0, 1, hour)).toISOString()},${1000 + hour}`
  })
  return `observedAt,online\n${lines.join('\n')}\n`
}
