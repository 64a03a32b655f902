import { rm } from 'node:fs/promises'
import { datasets } from '@gamenet/api'
import { type Analyst, type AnalystLimits, openAnalyst } from '@gamenet/engines'
import type { SqlSnapshot } from './snapshot-report.js'

/** The process that runs statements on a snapshot. */
export type SnapshotAnalyst = Analyst & Pick<SqlSnapshot, 'takenAt' | 'position'>

/** Starts the process; `close` removes the snapshot. */
export async function openSnapshot(snapshot: SqlSnapshot, limits: AnalystLimits): Promise<SnapshotAnalyst> {
  const { directory, tables, takenAt, position } = snapshot
  const remove = () => rm(directory, { recursive: true, force: true })
  const views = datasets.map((dataset) => ({
    name: viewName(dataset.name),
    select: dataset.select((table) => `stored.${table}`)
  }))
  try {
    const analyst = await openAnalyst({ directory, tables, views, limits })
    return { ...analyst, takenAt, position, close: () => analyst.close().finally(remove) }
  } catch (error) {
    await remove()
    throw error
  }
}

/** `title-count` is `title_count` in statements. */
export function viewName(dataset: string): string {
  return dataset.replaceAll('-', '_')
}
