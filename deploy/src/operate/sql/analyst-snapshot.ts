import { rm } from 'node:fs/promises'
import { type Analyst, type AnalystLimits, openAnalyst } from '@gamenet/engines/sql'
import type { SqlSnapshot } from '../../stores/snapshot-report.js'

/** The process that runs statements on a snapshot. */
export type SnapshotAnalyst = Analyst & Pick<SqlSnapshot, 'takenAt' | 'position'>

/** Starts the process; `close` removes the snapshot. */
export async function openSnapshot(
  { takenAt, position, ...setup }: SqlSnapshot,
  limits: AnalystLimits
): Promise<SnapshotAnalyst> {
  const remove = () => rm(setup.directory, { recursive: true, force: true })
  try {
    const analyst = await openAnalyst({ ...setup, limits })
    return { ...analyst, takenAt, position, close: () => analyst.close().finally(remove) }
  } catch (error) {
    await remove()
    throw error
  }
}
