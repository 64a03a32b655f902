import { randomUUID } from 'node:crypto'
import { openClickHouseServer } from '../src/clickhouse/server.js'

// biome-ignore lint/style/noProcessEnv: a person who runs the tests names the replicas.
const given = process.env.CLICKHOUSE_REPLICAS

/** Addresses of replicas of one ClickHouse, from CLICKHOUSE_REPLICAS: comma-separated. */
export const replicaUrls = (): readonly string[] => (given ?? '').split(',').filter((url) => url !== '')

/** Says loudly that a file of tests needs replicas, and returns why it is skipped; false if there are some. */
export const replicasMissing = (): string | false => {
  if (replicaUrls().length >= 3) return false
  const reason = 'CLICKHOUSE_REPLICAS names no three addresses of replicas, separated by commas'
  console.error(`NOT TESTED: ClickHouse with replicas; ${reason}.`)
  return reason
}

/** Creates a database that replicates its tables, and returns its address on each replica. */
export const replicatedDatabase = async (
  t: { teardown(end: () => Promise<unknown>): void },
  urls = replicaUrls()
): Promise<readonly string[]> => {
  const name = `gamenet_${randomUUID().replaceAll('-', '')}`
  const servers = urls.map((url) => openClickHouseServer({ url }))
  t.teardown(async () => {
    for (const server of servers) {
      await server.control.execute(`DROP DATABASE IF EXISTS ${name}`).catch(() => undefined)
      await server.close()
    }
  })
  for (const server of servers)
    await server.control.execute(
      `CREATE DATABASE ${name} ENGINE = Replicated('/clickhouse/databases/${name}', '{shard}', '{replica}')`
    )
  return urls.map((url) => new URL(name, url).href)
}
