import type { LogReader, Tables } from '../src/index.js'
import type { MemoryLog } from './memory-log.js'
import { projectorOn } from './pipeline.js'

/** When a process dies: at the n-th call of the world, before or after it took effect, and at every call after it. */
export type Death = { readonly afterCalls: number; readonly isDone: boolean }

/** Runs a projector until all is read or the process dies; true when it died. */
export async function liveUntilDeath(
  tables: { loader: Tables; projections: Tables },
  log: MemoryLog,
  { afterCalls, isDone }: Death
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
  const reader: LogReader = {
    extents: (topic) => log.extents(topic),
    commit: (topic, position) => call(() => log.commit(topic, position)),
    consume: (options) => log.consume({ ...options, deliver: (batch) => call(() => options.deliver(batch)) })
  }
  const projector = projectorOn({ loader: mortal(tables.loader), projections: mortal(tables.projections) }, reader)
  projector.start()
  try {
    return (await Promise.race([died, projector.settled().then(() => 'settled')])) === 'died'
  } finally {
    await projector.stop()
  }
}
