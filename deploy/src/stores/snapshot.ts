import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { datasetPosition, datasets } from '@gamenet/api'
import type { ClickHouse } from '@gamenet/engines'
import { makeFolder } from '@gamenet/engines/files'
import { readSide, storeOver } from '@gamenet/projector'
import { errorCode, shownInstant } from '@gamenet/schemas'
import { isRunning } from '../data-directory/process-state.js'
import { datasetViews } from './dataset-views.js'
import { SHADOW, unfreeze } from './freeze.js'
import type { SqlSnapshot } from './snapshot-report.js'

/** Folder of snapshots in the engine's directory: hard links do not cross disks. */
const SNAPSHOTS = 'snapshots'

/**
 * Takes a snapshot of the datasets' tables: their parts as hard links, which merges and deletions do not change. The
 * position is read first, so every event before it is in the parts. @param folder the engine's data directory
 */
export async function takeSnapshot(tables: ClickHouse['control'], folder: string, pid: number): Promise<SqlSnapshot> {
  await removeSnapshots(folder)
  const name = `${pid}_${Date.now()}`
  const directory = join(folder, SNAPSHOTS, name)
  const takenAt = shownInstant(Date.now())
  const { serving: readServing, positions: read } = readSide(storeOver(tables))
  const serving = await readServing()
  const positions = await datasetPosition((asked) => read(serving, asked))
  const names = [...new Set(datasets.flatMap((dataset) => dataset.tables))]
  const bareName = new Map(names.map((name) => [serving.nameOf(name), name]))
  const rows = await tables.rows(
    `SELECT t.name AS table, t.data_paths[1] AS path, t.create_table_query AS definition FROM system.tables AS t
     WHERE t.database = currentDatabase() AND t.name IN {names: Array(String)}`,
    { names: [...bareName.keys()] }
  )
  const frozen = `sql${name}`
  const database = `snapshot_${name}`
  try {
    makeFolder(join(directory, 'parts'))
    for (const { table, path } of rows) {
      await tables.execute(`ALTER TABLE ${table} FREEZE WITH NAME '${frozen}'`)
      const links = join(folder, SHADOW, frozen, /store\/\w+\/[\w-]+/.exec(String(path))?.[0] ?? '')
      const parts = join(directory, 'parts', bareName.get(String(table)) ?? '')
      // A table without parts has no folder.
      await rename(links, parts).catch((error) =>
        errorCode(error) === 'ENOENT' ? mkdir(parts) : Promise.reject(error)
      )
    }
  } finally {
    await unfreeze(folder, frozen)
  }
  return {
    directory,
    database,
    takenAt,
    position: positions.map((each) => `${each.dataset}=${each.epoch}/${each.partition}/${each.next}`).join(' '),
    tables: rows.map(({ table, definition }) => {
      return { name: bareName.get(String(table)) ?? '', definition: String(definition) }
    }),
    views: datasetViews((table) => `${database}.${table}`)
  }
}

/** Removes the snapshots of ended processes. */
export async function removeSnapshots(folder: string): Promise<void> {
  for (const name of await readdir(join(folder, SNAPSHOTS)).catch(() => [])) {
    if (isRunning(Number.parseInt(name, 10))) continue
    await rm(join(folder, SNAPSHOTS, name), { recursive: true, force: true })
  }
}
