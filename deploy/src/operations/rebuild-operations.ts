import {
  type Projector,
  RebuildRefused,
  type RebuildState,
  type RebuildStatus,
  type Rebuilds
} from '@gamenet/projector'
import { FailureError, UsageError } from '../config.js'
import type { DiskGuard } from '../disk/disk-guard.js'

/** None in a process that does not project. */
type Rebuilding = Pick<Projector, 'rebuilds'> | undefined

/** Refuses what would read or swap tables while rows of some are missing. */
export function requireRepaired(repairing: readonly string[]): void {
  if (repairing.length === 0) return
  throw new FailureError(
    `Rows of ${repairing.join(', ')} were lost and are not made again yet: nothing is rebuilt meanwhile. gamenet status tells how far that is.`
  )
}

/** Rebuilds as operators ask for them: what is refused is a sentence with an exit code. None is filled on a low disk. */
export function rebuildOperations(
  projector: Rebuilding,
  disk: Pick<DiskGuard, 'requireRoom'>,
  repairing: () => readonly string[]
): Rebuilds {
  const rebuilds = projector?.rebuilds
  const asked = async <Answer>(ask: (rebuilds: Rebuilds) => Promise<Answer>): Promise<Answer> => {
    if (rebuilds === undefined) {
      throw new UsageError('This process rebuilds nothing; ask one that projects (gamenet start or projector).')
    }
    try {
      return await ask(rebuilds)
    } catch (error) {
      if (!(error instanceof RebuildRefused)) throw error
      throw error.isUsage ? new UsageError(error.message) : new FailureError(error.message)
    }
  }
  const askedWhole: typeof asked = async (ask) => {
    requireRepaired(repairing())
    return await asked(ask)
  }
  return {
    plan: (projection, options) => asked((all) => all.plan(projection, options)),
    start: async (projection, options) => {
      await disk.requireRoom(0, `The rebuild of ${projection}`)
      return await askedWhole((all) => all.start(projection, options))
    },
    list: () => asked((all) => all.list()),
    pause: (projection) => asked((all) => all.pause(projection)),
    resume: async (projection) => {
      await disk.requireRoom(0, `The rebuild of ${projection}`)
      return await askedWhole((all) => all.resume(projection))
    },
    cancel: (projection) => asked((all) => all.cancel(projection)),
    verify: (projection) => askedWhole((all) => all.verify(projection)),
    swap: (projection, options) => askedWhole((all) => all.swap(projection, options)),
    rollback: (projection) => askedWhole((all) => all.rollback(projection)),
    drop: (projection) => asked((all) => all.drop(projection))
  }
}

/** Of these nothing is left but their names. */
const OVER: readonly RebuildState[] = ['cancelled', 'rolled-back', 'dropped']

/** The rebuilds that are under way or have tables left. */
export async function leftOf(projector: Rebuilding): Promise<RebuildStatus[]> {
  if (projector === undefined) return []
  return (await projector.rebuilds.list()).filter(({ state }) => !OVER.includes(state))
}
