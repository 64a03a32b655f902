import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { kafkaBrokerMissing, postgresPrograms } from '@gamenet/engines/testing'
import { type Test, test } from 'tap'
import { type Report, torture } from '../torture/torture.js'

/*
 * What `npm run torture` does, for as many kills as the time of a test run allows. Every run chooses its own seed;
 * what fails tells it, and keeps what it left behind.
 */
const KILLS = { embedded: 30, kafka: 4 }

const missing =
  (await kafkaBrokerMissing()) ?? (postgresPrograms() === undefined ? 'PostgreSQL is not installed' : undefined)
if (missing !== undefined && process.env.CI === 'true') throw new Error(missing)
if (missing !== undefined) console.error(`NOT TESTED: kills of processes and engines on a real Kafka; ${missing}.`)

async function tortured(t: Test, engines: Report['engines']): Promise<Report> {
  const kills = KILLS[engines]
  const seed = Math.floor(Math.random() * 2 ** 31)
  const trace: string[] = []
  const directory = join(tmpdir(), `gamenet-torture-test-${seed}`)
  try {
    const report = await torture({ engines, kills, seed, directory, note: (line) => trace.push(line) })
    if (report.differences.length > 0) throw new Error(report.differences.join('\n'))
    await rm(directory, { recursive: true, force: true })
    return report
  } catch (error) {
    const again = `npm run torture -- --engines ${engines} --kills ${kills} --seed ${seed}`
    t.comment([`Kept in ${directory}. The same again: ${again}`, ...trace].join('\n'))
    throw error
  }
}

function provesLoad(t: Test, { engines, counts, seconds }: Report): void {
  t.equal(counts.kills, KILLS[engines])
  for (const what of ['ratings', 'edits', 'imports', 'scrapes', 'answers'] as const)
    t.ok(counts[what] > 0, `${what} came to their end`)
  t.comment(`${JSON.stringify(counts)} in ${Math.round(seconds)} s`)
}

test('a service of one process that is killed at any instant loses nothing and shows nothing wrong', async (t) => {
  provesLoad(t, await tortured(t, 'embedded'))
})

test(
  'several processes that share Kafka, PostgreSQL and ClickHouse, all of which are killed, lose nothing either',
  missing === undefined ? {} : { skip: missing },
  async (t) => {
    provesLoad(t, await tortured(t, 'kafka'))
  }
)
