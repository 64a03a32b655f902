import { startDemoAuth } from '../../demo/auth/server.js'
import { createWorld } from '../../demo/network/world.js'
import { tortureEmbedded } from './embedded.js'
import { type Facts, openFacts } from './facts.js'
import { tortureSeveral } from './several-processes.js'
import type { Outcome } from './surroundings.js'
import { startSteppingUpstream } from './upstream.js'

/*
 * kill       the end of a process by SIGKILL
 * pause      a stop of a process by SIGSTOP, until SIGCONT
 * fact       what the harness knows: a page was shown, a request sent, a write acknowledged
 * difference a row that is missing in the tables or wrong
 */

/** `replicas`: on Kafka, with the ClickHouse replicas that CLICKHOUSE_REPLICAS names. */
export type Engines = 'embedded' | 'kafka' | 'replicas'

export type Report = Outcome & {
  readonly engines: Engines
  readonly seed: number
  readonly directory: string
  /** Sums of all runs of the directory. */
  readonly counts: Facts['counts']
  readonly struckBy: Readonly<Record<string, number>>
  readonly seconds: number
}

const NOON = Date.UTC(2026, 10, 21, 12)

/** Kills processes `kills` times, then compares. Rejects if a process does not start or ends by itself. */
export async function torture(options: {
  readonly engines: Engines
  readonly kills: number
  readonly rebuilt: readonly string[]
  readonly calm?: number
  readonly seed: number
  readonly directory: string
  readonly note: (sentence: string) => void
}): Promise<Report> {
  const { engines, directory, kills, rebuilt, calm = 1, note } = options
  const began = performance.now()
  const facts = openFacts(directory, options.seed, engines)
  const network = { url: 'http://network.example', world: createWorld(7), instantShown: () => NOON }
  const auth = await startDemoAuth({ network })
  const upstream = await startSteppingUpstream(facts)
  try {
    const surroundings = { directory, facts, kills, rebuilt, calm, auth, upstream, note }
    const { differences, startsMs } =
      engines === 'embedded'
        ? await tortureEmbedded(surroundings)
        : await tortureSeveral(surroundings, { onReplicas: engines === 'replicas' })
    const seconds = (performance.now() - began) / 1000
    facts.add({ fact: 'ran', seconds, differences: differences.length })
    const struckBy = Object.fromEntries([...facts.struckBy].sort())
    return { engines, seed: facts.seed, directory, differences, counts: facts.counts, struckBy, seconds, startsMs }
  } finally {
    await upstream.close()
    await auth.close()
  }
}
