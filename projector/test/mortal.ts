import type { Topic } from '@gamenet/schemas'
import type { LogReader, Projector, Tables } from '../src/index.js'
import { around } from './around.js'
import { projectorOn } from './pipeline.js'

export type Death = {
  /** The number of the call that never returns. */
  readonly afterCalls: number
  /** True if that call takes effect. */
  readonly isDone: boolean
  /** Which calls count: only those of the projections, or also those of the loader and of the log. */
  readonly calls: 'projections' | 'all'
  /** Topics whose schemas validate; by default those of this program. */
  readonly topics?: readonly Topic[]
  /** Runs concurrently with the projector, on tables that die with it. */
  readonly meanwhile?: (tables: Tables, projector: Projector) => Promise<void>
}

/** Runs a projector until it has caught up or dies in a call; returns true if it died. */
export async function liveUntilDeath(
  tables: { loader: Tables; projections: Tables },
  log: LogReader,
  { afterCalls, isDone, calls: mortals, topics, meanwhile = async () => {} }: Death
): Promise<boolean> {
  let calls = 0
  let die = () => {}
  const died = new Promise<'died'>((resolve) => {
    die = () => resolve('died')
  })
  const call = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    calls += 1
    if (calls === afterCalls && isDone) await work()
    if (calls >= afterCalls) {
      die()
      throw new Error('the process died')
    }
    return await work()
  }
  const mortal = (of: Tables) => around(of, call)
  const mortalReader: LogReader = {
    extents: (topic) => log.extents(topic),
    commit: (topic, position) => call(() => log.commit(topic, position)),
    consume: (options) => log.consume({ ...options, deliver: (batch) => call(() => options.deliver(batch)) })
  }
  const projections = mortal(tables.projections)
  const isAll = mortals === 'all'
  const lives = { loader: isAll ? mortal(tables.loader) : tables.loader, projections }
  const projector = projectorOn(lives, isAll ? mortalReader : log, topics === undefined ? {} : { topics })
  projector.start()
  try {
    const settled = meanwhile(lives.loader, projector).then(() => projector.caughtUp())
    return (await Promise.race([died, settled.then(() => 'settled')])) === 'died'
  } finally {
    await projector.stop()
  }
}
