import type { LogReader, Tables } from '../src/index.js'
import { projectorOn } from './pipeline.js'

export type Death = {
  /** The call that nothing comes back from. */
  readonly afterCalls: number
  /** Whether that call took effect before. */
  readonly isDone: boolean
  /** Whose calls count: those of the projections alone, or those of the loader and of the log too. */
  readonly calls: 'projections' | 'all'
}

/** Runs a projector until all is read or the process dies in a call; true when it died. */
export async function liveUntilDeath(
  tables: { loader: Tables; projections: Tables },
  log: LogReader,
  { afterCalls, isDone, calls: mortals }: Death
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
  const mortal = (of: Tables): Tables => ({
    execute: (sql, parameters) => call(() => of.execute(sql, parameters)),
    rows: (sql, parameters) => call(() => of.rows(sql, parameters)),
    json: (sql, parameters) => call(() => of.json(sql, parameters)),
    insert: (table, columns, body) => call(() => of.insert(table, columns, body))
  })
  const mortalReader: LogReader = {
    extents: (topic) => log.extents(topic),
    commit: (topic, position) => call(() => log.commit(topic, position)),
    consume: (options) => log.consume({ ...options, deliver: (batch) => call(() => options.deliver(batch)) })
  }
  const projections = mortal(tables.projections)
  const projector =
    mortals === 'all'
      ? projectorOn({ loader: mortal(tables.loader), projections }, mortalReader)
      : projectorOn({ loader: tables.loader, projections }, log)
  projector.start()
  try {
    return (await Promise.race([died, projector.settled().then(() => 'settled')])) === 'died'
  } finally {
    await projector.stop()
  }
}
