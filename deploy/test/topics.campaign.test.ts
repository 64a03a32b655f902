import { execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { kafkaBrokerMissing, sharedKafka, startClickHouseServer } from '@gamenet/engines/testing'
import { type Test, test } from 'tap'
import { gamenetJson, openGamenet, plainWrites, ROOT } from './service/gamenet.js'
import { surroundings } from './service/kafka-proofs.js'
import { samplesOf } from './service/page-samples.js'

const run = promisify(execFile)
const TITLE = '4d530064'
const LOOK_MS = 200

test('the consumers of the page of topics, in Python and in SQL, follow a service', async (t) => {
  const missing = await kafkaBrokerMissing()
  if (missing !== undefined) throw new Error(missing)
  const folder = process.env.CAMPAIGN_DIRECTORY ?? t.testdir()
  await mkdir(folder, { recursive: true })
  const kafka = await sharedKafka(t)
  const prefix = `${randomUUID()}.`
  const { upstream, environment } = await surroundings(t, kafka, prefix)
  const service = await openGamenet(t, {
    ...environment,
    ...(await plainWrites(t)),
    DATA_DIR: join(t.testdir(), 'data')
  })
  const scrape = async (online: number) => {
    const titles = [{ titleId: TITLE, name: 'Halo 2', subtitle: '', online, lobbies: null }]
    upstream.show({ registered: 9, online, titles })
    await gamenetJson({ OPERATOR_URL: service.operatorUrl }, ['scrape', 'all'])
  }
  const page = await readFile(new URL('docs/topics.md', ROOT), 'utf8')
  const example = (language: string) =>
    (samplesOf('docs/topics.md', page).find((sample) => sample.language === language)?.text ?? '')
      .replaceAll('kafka:9092', kafka.address)
      .replaceAll('gamenet.title-count', `${prefix}title-count`)

  await scrape(40)
  const python = await consumer(t, folder, example('python'))
  const front = await startClickHouseServer({ path: join(t.testdirName, 'tables') })
  t.teardown(() => front.kill())
  const sql = async (text: string) => {
    const answer = await fetch(front.url, { method: 'POST', body: text })
    if (!answer.ok) throw new Error(await answer.text())
    return (await answer.text()).trim()
  }
  for (const statement of example('sql').split(';').slice(0, -1)) await sql(statement)
  const newest = () => sql('SELECT titleId, online FROM title_counts ORDER BY observedAt DESC LIMIT 1 FORMAT CSV')
  for (const online of [40, 41]) {
    await scrape(online)
    while (python.newest() !== `${TITLE} ${online}`) await pause(LOOK_MS)
    t.pass(`Python: ${online}`)
    // ClickHouse writes what it has read every 7.5 s.
    while ((await newest()) !== `"${TITLE}",${online}`) await pause(LOOK_MS)
    t.pass(`SQL: ${online}`)
  }
  await sql('DROP TABLE title_counts_loader')
  await sql('DROP TABLE title_count_queue')
})

/** Runs the example in a virtual environment with its package; the last line that it printed. */
async function consumer(t: Test, folder: string, code: string): Promise<{ newest(): string }> {
  const bin = join(folder, 'venv/bin')
  await run('python3', ['-m', 'venv', 'venv'], { cwd: folder })
  await run(join(bin, 'pip'), ['install', '--quiet', 'confluent-kafka==2.12.2'], { cwd: folder })
  const child = spawn(join(bin, 'python'), ['-u', '-c', code], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill())
  let newest = ''
  createInterface({ input: child.stdout }).on('line', (line) => {
    newest = line
  })
  return { newest: () => newest }
}
