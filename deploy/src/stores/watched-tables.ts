import type { ClickHouse, ClickHouseError, Lane } from '@gamenet/engines'
import { LANE_NAMES } from '@gamenet/engines'
import { detachDamagedBookkeeping, storeOver } from '@gamenet/projector'
import { Mutex } from '@gamenet/schemas'
import { isOfDamage, tableOfDamage } from './engine-failures.js'

/** What statements that meet damage start; until it is set, only bookkeeping is repaired. */
export type DamageWatch = {
  /** Called with the engine's names of the tables that a statement read or wrote. */
  onData: (tables: readonly string[]) => void
  /** Called when damaged parts of bookkeeping were detached, before the statement is repeated. */
  onBookkeeping: () => Promise<void>
}

/**
 * The tables, with every statement watched: damage that one meets is reported. If it is in bookkeeping, the damaged
 * parts are detached and the statement is repeated with what is left: nothing starts without these tables.
 */
export function watchedTables(clickhouse: ClickHouse): {
  readonly clickhouse: ClickHouse
  readonly damageWatch: DamageWatch
} {
  const watch: DamageWatch = { onData: () => undefined, onBookkeeping: async () => undefined }
  const store = storeOver(clickhouse.rebuild)
  // A part can be detached once; several statements may meet it.
  const mutex = new Mutex()
  /** Returns false if a table with data is damaged; otherwise the statement can be repeated without damaged parts. */
  const isRepaired = async (error: ClickHouseError, tables: readonly string[]): Promise<boolean> => {
    const named = tableOfDamage(error)
    const met = named === undefined ? tables : [named]
    const data = met.filter((table) => table.includes('__'))
    if (data.length > 0) watch.onData(data)
    if (named?.includes('__')) return false
    await mutex.run(async () => {
      if (await detachDamagedBookkeeping(store)) await watch.onBookkeeping()
    })
    return true
  }
  const watching =
    <Input extends unknown[], Result>(run: (...input: Input) => Promise<Result>) =>
    async (...input: Input): Promise<Result> => {
      try {
        return await run(...input)
      } catch (error) {
        const [sql, parameters] = input as unknown as [string, unknown]
        if (!isOfDamage(error) || !(await isRepaired(error, tablesOf(sql, parameters)))) throw error
        return await run(...input)
      }
    }
  const lanes = LANE_NAMES.map((name) => {
    const { rows, json, stream, execute, insert, ...others } = clickhouse[name]
    const lane: Lane = {
      ...others,
      rows: watching(rows),
      json: watching(json),
      stream: watching(stream),
      execute: watching(execute),
      insert: watching(insert)
    }
    return [name, lane] as const
  })
  const watched = Object.fromEntries(lanes) as Record<(typeof LANE_NAMES)[number], Lane>
  return { clickhouse: { ...clickhouse, ...watched }, damageWatch: watch }
}

/** Returns the engine's names of the tables that a statement names, as parameters or in its text. */
function tablesOf(sql: string, parameters: unknown): string[] {
  const written = sql.match(/\b\w+__\d+\b/g) ?? []
  if (typeof parameters !== 'object' || parameters === null || Array.isArray(parameters)) return written
  const bound = Object.entries(parameters).filter(([name]) => sql.includes(`{${name}: Identifier}`))
  return [...written, ...bound.map(([, value]) => String(value))]
}
