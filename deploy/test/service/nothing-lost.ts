import { randomInt } from 'node:crypto'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { kafkaBrokerMissing, postgresPrograms } from '@gamenet/engines/testing'
import { errorMessage } from '@gamenet/schemas'
import type { Test } from 'tap'
import { openFacts } from '../../proof/torture/facts.js'
import { REBUILT_NAMES } from '../../proof/torture/rebuilder.js'
import { type Engines, type Report, torture } from '../../proof/torture/torture.js'

const LINES_MAX = 30
const SEEDS = 2 ** 31

type Proof = {
  readonly engines: Engines
  readonly kills: number
  /** Projections that are also rebuilt and swapped in. */
  readonly rebuilt?: readonly string[]
  /** Factor of the pauses of users, readers and scrapers relative to full load. */
  readonly calm?: number
}

type Place = {
  readonly seed: number
  readonly directory: string
  /** Where the directory of a failed run is kept. */
  keep(): Promise<string>
}

/** Runs `npm run torture` with a seed; a failed run keeps its directory. */
export async function provesNothingLost(t: Test, proof: Proof & { readonly seed: number }): Promise<Report> {
  const directory = join(t.testdir({}), 'torture')
  const keep = async () => {
    // The directory of a test is removed after the run.
    const kept = await mkdtemp(join(tmpdir(), `gamenet-torture-test-${proof.engines}-`))
    await cp(directory, kept, { recursive: true })
    return kept
  }
  return await provesInDirectory(t, { ...proof, directory, keep })
}

/** Runs it with a random seed. An interrupted or failed run is resumed in the directory of the campaign. */
export async function provesInCampaign(t: Test, proof: Proof): Promise<void> {
  const directory = join(process.env.CAMPAIGN_DIRECTORY ?? t.testdir({}), 'torture')
  const { seed, counts } = openFacts(directory, randomInt(SEEDS), proof.engines)
  const kills = Math.max(0, proof.kills - counts.kills)
  await provesInDirectory(t, { ...proof, kills, seed, directory, keep: async () => directory })
}

async function provesInDirectory(
  t: Test,
  { engines, kills, rebuilt = [], calm = 1, seed, directory, keep }: Proof & Place
): Promise<Report> {
  const trace: string[] = []
  try {
    const note = (line: string) => trace.push(line)
    const report = await torture({ engines, kills, rebuilt, calm, seed, directory, note })
    const { counts, differences, seconds } = report
    if (differences.length > 0) throw new Error(differences.join('\n'))
    t.ok(counts.kills >= kills, `${counts.kills} kills`)
    for (const what of ['ratings', 'edits', 'imports', 'scrapes', 'answers'] as const)
      t.ok(counts[what] > 0, `${what} were completed`)
    t.comment(`${engines}, seed ${seed}: ${JSON.stringify(counts)} in ${Math.round(seconds)} s`)
    await rm(directory, { recursive: true, force: true })
    return report
  } catch (error) {
    const more = rebuilt.length === REBUILT_NAMES.length ? ' --rebuild-all' : ''
    const again = `npm run torture -- --engines ${engines} --kills ${kills}${more} --seed ${seed}`
    const reason = errorMessage(error)
    throw new Error(
      [reason, `Kept in ${await keep()}. Run it again: ${again}`, ...trace.slice(-LINES_MAX)].join('\n'),
      {
        cause: error
      }
    )
  }
}

/** Returns why no real engines can be started here, which is reported; with CI=true throws it. */
export async function realEnginesMissing(): Promise<string | undefined> {
  const missing =
    (await kafkaBrokerMissing()) ?? (postgresPrograms() === undefined ? 'PostgreSQL is not installed' : undefined)
  if (missing === undefined) return undefined
  if (process.env.CI === 'true') throw new Error(missing)
  console.error(`NOT TESTED: kills of processes and engines on a real Kafka; ${missing}.`)
  return missing
}
