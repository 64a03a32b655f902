import { randomUUID } from 'node:crypto'
import { openClickHouseServer } from '../src/clickhouse/server.js'

const {
  CLICKHOUSE_REPLICAS: given,
  CLICKHOUSE_REPLICAS_KILL: kill,
  CLICKHOUSE_REPLICAS_START: start,
  CLICKHOUSE_KEEPER_KILL: keeperKill,
  CLICKHOUSE_KEEPER_START: keeperStart
  // biome-ignore lint/style/noProcessEnv: a person who runs the tests names the replicas.
} = process.env

/** Addresses of replicas of one ClickHouse, from CLICKHOUSE_REPLICAS: comma-separated. */
export const replicaUrls = (): readonly string[] => (given ?? '').split(',').filter((url) => url !== '')

/** Says loudly that a file of tests needs replicas, and returns why it is skipped; false if there are some. */
export const replicasMissing = (): string | false => {
  if (replicaUrls().length >= 3) return false
  const reason = 'CLICKHOUSE_REPLICAS names no three addresses of replicas, separated by commas'
  console.error(`NOT TESTED: ClickHouse with replicas; ${reason}.`)
  return reason
}

/** Commands that kill and start a replica, whose place in the list from 1 is appended, and those of their keeper. */
export type ReplicaCommands = {
  readonly kill: string
  readonly start: string
  readonly keeper: { readonly kill: string; readonly start: string } | undefined
}

/** Returns the commands that the environment names; throws if it lacks those of replicas. */
export const replicaCommands = (): ReplicaCommands => {
  if (kill === undefined || start === undefined)
    throw new Error('CLICKHOUSE_REPLICAS_KILL and CLICKHOUSE_REPLICAS_START name no commands')
  const hasKeeper = keeperKill !== undefined && keeperStart !== undefined
  return { kill, start, keeper: hasKeeper ? { kill: keeperKill, start: keeperStart } : undefined }
}

/** Says loudly that replicas are not killed, and returns why; false if they can be. */
export const killsMissing = (): string | false => {
  const missing = replicasMissing()
  if (missing !== false || (kill !== undefined && start !== undefined)) return missing
  const reason = 'CLICKHOUSE_REPLICAS_KILL and CLICKHOUSE_REPLICAS_START name no commands'
  console.error(`NOT TESTED: the death of ClickHouse replicas; ${reason}.`)
  return reason
}

/** Creates a database that replicates its tables unless it exists, and returns its address on each replica. */
export const createReplicated = async (name: string): Promise<readonly string[]> => {
  const urls = replicaUrls()
  for (const url of urls) {
    const server = openClickHouseServer({ url })
    await server.control.execute(
      `CREATE DATABASE IF NOT EXISTS ${name}
       ENGINE = Replicated('/clickhouse/databases/${name}', '{shard}', '{replica}')`
    )
    await server.close()
  }
  return urls.map((url) => new URL(name, url).href)
}

/** Creates a database for a test, and returns its address on each replica. */
export const replicatedDatabase = async (t: {
  teardown(end: () => Promise<unknown>): void
}): Promise<readonly string[]> => {
  const name = `gamenet_${randomUUID().replaceAll('-', '')}`
  t.teardown(async () => {
    for (const url of replicaUrls()) {
      const server = openClickHouseServer({ url })
      await server.control.execute(`DROP DATABASE IF EXISTS ${name}`).catch(() => undefined)
      await server.close()
    }
  })
  return await createReplicated(name)
}
