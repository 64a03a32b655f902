import type { ClickHouse } from '@gamenet/engines'
import { FailureError } from '../config.js'

/** Older servers lack lightweight deletes that wait for all parts, and settings that limit statements. */
const VERSION_MIN = [24, 8] as const

/** With fewer replicas no majority is left when one is away. */
const REPLICAS_WANTED = 3

type Found = {
  readonly engine: string
  readonly replicated: number
  readonly plain: number
  readonly shards: number
  readonly replicas: number
}

/**
 * Refuses a ClickHouse server that is too old, and one whose tables would not be the same on all addresses: a process
 * that uses another address would miss rows.
 */
export async function refuseUnsuitable(
  tables: Pick<ClickHouse['control'], 'rows'>,
  { addresses, warn }: { readonly addresses: number; warn(sentence: string): void }
): Promise<void> {
  const [row] = await tables.rows(
    `SELECT d.engine AS engine, version() AS version,
       countIf(t.engine LIKE 'Replicated%') AS replicated,
       countIf(t.engine LIKE '%MergeTree' AND NOT match(t.engine, '^(Replicated|Shared)')) AS plain
     FROM system.databases AS d LEFT JOIN system.tables AS t ON t.database = d.name
     WHERE d.name = currentDatabase() GROUP BY d.engine`
  )
  const [major = 0, minor = 0] = String(row?.version).split('.').map(Number)
  if (major < VERSION_MIN[0] || (major === VERSION_MIN[0] && minor < VERSION_MIN[1]))
    throw new FailureError(
      `The server of CLICKHOUSE_URL is ClickHouse ${row?.version}, and this program needs ${VERSION_MIN.join('.')} ` +
        `or newer: upgrade the server.`
    )
  const engine = String(row?.engine)
  const [members] =
    engine === 'Replicated'
      ? await tables.rows(
          `SELECT uniqExact(c.shard_num) AS shards, count() AS replicas FROM system.clusters AS c
           WHERE c.cluster = currentDatabase()`
        )
      : []
  const found = {
    engine,
    replicated: Number(row?.replicated ?? 0),
    plain: Number(row?.plain ?? 0),
    shards: Number(members?.shards ?? 1),
    replicas: Number(members?.replicas ?? 1)
  }
  const fault = faultOf(found, addresses)
  if (fault !== undefined) throw new FailureError(`The database of CLICKHOUSE_URL has the engine ${engine}, ${fault}`)
  if (found.replicas > 1 && found.replicas < REPLICAS_WANTED)
    warn(
      `The database of CLICKHOUSE_URL has ${found.replicas} replicas: while one is away, nothing is loaded, and ` +
        `answers go on. Add a third one.`
    )
}

function faultOf({ engine, replicated, plain, shards, replicas }: Found, addresses: number): string | undefined {
  if (engine === 'Shared') return undefined
  if (engine !== 'Replicated') {
    if (replicated > 0)
      return (
        `and tables (${replicated}) whose engines replicate each table by itself: a checkpoint could be there before ` +
        'its rows. Name a database of the engine Replicated, or one of the engine Atomic with plain tables.'
      )
    if (addresses > 1)
      return (
        `and CLICKHOUSE_URL lists ${addresses} addresses, each with rows of its own. List one, or replicas of a ` +
        'database of the engine Replicated.'
      )
    return undefined
  }
  if (shards > 1)
    return `with ${shards} shards, each with a part of the rows. Create it with one shard, of the same name on each.`
  if (plain > 0 && replicas > 1)
    return (
      `and tables (${plain}) whose engines do not replicate: each replica has rows of its own. Name a new database; ` +
      'the service creates its tables there.'
    )
  return undefined
}
