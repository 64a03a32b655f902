import type { Tables } from './tables.js'

/** Reads the engine of the database; `Replicated` has tables whose rows are on several servers. */
export async function readDatabaseEngine(tables: Pick<Tables, 'rows'>): Promise<string> {
  const [database] = await tables.rows(
    'SELECT d.engine AS engine FROM system.databases AS d WHERE d.name = currentDatabase()'
  )
  return String(database?.engine)
}

/**
 * Returns a list of the engine, such as `system.parts`, as FROM takes it: that of all replicas, if there are some. Each
 * server lists only what it has itself. One that is away is left out.
 */
export async function onEveryReplica(tables: Pick<Tables, 'rows'>, list: string): Promise<string> {
  const isReplicated = (await readDatabaseEngine(tables)) === 'Replicated'
  return isReplicated ? `clusterAllReplicas(currentDatabase(), ${list})` : list
}
