import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { type Report, torture } from '../torture/torture.js'

/*
 * What `npm run torture` does, for as many kills as the time of a test run allows. Every run chooses its own seed;
 * what fails tells it, and keeps what it left behind.
 */
const KILLS = 30

async function tortured(t: Test): Promise<Report> {
  const seed = Math.floor(Math.random() * 2 ** 31)
  const trace: string[] = []
  const directory = join(tmpdir(), `gamenet-torture-test-${seed}`)
  try {
    const note = (line: string) => trace.push(line)
    const report = await torture({ engines: 'embedded', kills: KILLS, areAllRebuilt: true, seed, directory, note })
    if (report.differences.length > 0) throw new Error(report.differences.join('\n'))
    await rm(directory, { recursive: true, force: true })
    return report
  } catch (error) {
    const again = `npm run torture -- --kills ${KILLS} --seed ${seed}`
    t.comment([`Kept in ${directory}. The same again: ${again}`, ...trace].join('\n'))
    throw error
  }
}

test('a service of one process that is killed at any instant loses nothing and shows nothing wrong', async (t) => {
  const { counts, seconds } = await tortured(t)
  t.equal(counts.kills, KILLS)
  for (const what of ['ratings', 'edits', 'imports', 'scrapes', 'answers'] as const)
    t.ok(counts[what] > 0, `${what} came to their end`)
  t.comment(`${JSON.stringify(counts)} in ${Math.round(seconds)} s`)
})
