import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { type Engines, torture } from '../../torture/torture.js'

const LINES_MAX = 30

/**
 * What `npm run torture` does, for as many kills as the time of a test run allows. Every run chooses its own seed; what fails
 * tells it, and keeps what it left behind.
 */
export async function provesNothingLost(
  t: Test,
  { engines, kills, areAllRebuilt }: { engines: Engines; kills: number; areAllRebuilt: boolean }
): Promise<void> {
  const seed = Math.floor(Math.random() * 2 ** 31)
  const trace: string[] = []
  const directory = join(tmpdir(), `gamenet-torture-test-${engines}-${seed}`)
  try {
    const note = (line: string) => trace.push(line)
    const report = await torture({ engines, kills, areAllRebuilt, seed, directory, note })
    const { counts, differences, seconds } = report
    if (differences.length > 0) throw new Error(differences.join('\n'))
    t.equal(counts.kills, kills)
    for (const what of ['ratings', 'edits', 'imports', 'scrapes', 'answers'] as const)
      t.ok(counts[what] > 0, `${what} came to their end`)
    t.comment(`${JSON.stringify(counts)} in ${Math.round(seconds)} s`)
    await rm(directory, { recursive: true, force: true })
  } catch (error) {
    const more = areAllRebuilt ? ' --rebuild-all' : ''
    const again = `npm run torture -- --engines ${engines} --kills ${kills}${more} --seed ${seed}`
    const told = error instanceof Error ? error.message : String(error)
    throw new Error([told, `Kept in ${directory}. The same again: ${again}`, ...trace.slice(-LINES_MAX)].join('\n'), {
      cause: error
    })
  }
}
