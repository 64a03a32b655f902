import type { Topic } from '@gamenet/schemas'
import type { LogReader, Projector, Tables } from '../src/index.js'
import { around } from './around.js'
import { projectorOn } from './pipeline.js'

export type Death = {
  /** The call that nothing comes back from. */
  readonly afterCalls: number
  /** Whether that call took effect before. */
  readonly isDone: boolean
  /** Whose calls count: those of the projections alone, or those of the loader and of the log too. */
  readonly calls: 'projections' | 'all'
  /** Whose schemas judge; those of this program unless given. */
  readonly topics?: readonly Topic[]
  /** Done beside the projector, on tables of the same life. */
  readonly beside?: (tables: Tables, projector: Projector) => Promise<void>
}

/** Runs a projector until all is read or the process dies in a call; true when it died. */
export async function liveUntilDeath(
  tables: { loader: Tables; projections: Tables },
  log: LogReader,
  { afterCalls, isDone, calls: mortals, topics, beside = async () => {} }: Death
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
    const settled = beside(lives.loader, projector).then(() => projector.caughtUp())
    return (await Promise.race([died, settled.then(() => 'settled')])) === 'died'
  } finally {
    await projector.stop()
  }
}
