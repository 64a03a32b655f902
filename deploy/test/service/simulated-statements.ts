import { type ClickHouse, openChdb } from '@gamenet/engines'
import { until } from '@gamenet/engines/testing'
import { migrate, storeOver } from '@gamenet/projector'
import { deleteUserRows, readMutations, type UserTable } from '@gamenet/projector/erasure'
import { generationName } from '@gamenet/schemas'
import type { Test } from 'tap'
import type { Played } from '../../proof/simulate/store.js'
import { BOOKKEEPING, TABLES } from '../../proof/simulate/table-definitions.js'

type Tables = ClickHouse['control']
type StoreView = NonNullable<Parameters<typeof storeOver>[1]>

/** ClickHouse with migrated tables. */
export async function openTables(t: Test): Promise<Tables> {
  const engine = await openChdb({ path: t.testdir(), grants: 'GRANT ALL ON *.*' })
  t.teardown(() => engine.close())
  await migrate(engine.control)
  return engine.control
}

/**
 * Repeats the operations of a simulation on the engine; returns the number of compared answers. Throws at the first
 * difference.
 */
export async function playAgain(tables: Tables, played: readonly Played[]): Promise<number> {
  const made = await tables.rows(
    `SELECT t.name AS name FROM system.tables AS t WHERE t.database = currentDatabase() AND match(t.name, '__([1-9]|0_|sample)')`
  )
  for (const { name } of made) {
    const [bare = '', generation = ''] = String(name).split('__')
    // An earlier world may have dropped the first generation.
    if (/^\d+$/.test(generation) && bare in TABLES)
      await tables.execute(`CREATE TABLE IF NOT EXISTS ${generationName(bare, 0)} AS ${name}`)
    await tables.execute(`DROP TABLE ${name}`)
  }
  const first = Object.keys(TABLES).map((name) => generationName(name, 0))
  for (const table of [...Object.keys(BOOKKEEPING), ...first]) await tables.execute(`TRUNCATE TABLE ${table}`)
  const known = new Set<string>()
  let compared = 0
  for (const each of played) {
    if (each.kind === 'block') {
      known.clear()
      await tables.insert(each.table, each.block.columns, each.block)
    } else if (each.kind === 'insert' || each.kind === 'statement') {
      known.clear()
      await storeOver(tables, withoutSignal(each.view)).do(each.operation, ...each.input)
      // Deletions of the simulator are immediate.
      if (each.operation === deleteUserRows) await mutationsEnded(tables, each.input[0] as UserTable)
    } else if (each.kind === 'query' || !each.isOfMachine) {
      const question = questionOf(each)
      // Pollers repeat their queries.
      if (known.has(question)) continue
      known.add(question)
      const found =
        each.kind === 'query'
          ? await tables.rows(each.sql, each.parameters)
          : await storeOver(tables, withoutSignal(each.view)).do(each.operation, ...each.input)
      if (each.kind === 'query' && isCut(each, found as unknown[])) continue
      compared += 1
      const [here, there] = [found, each.answer].map((answer) =>
        textOf(each.kind === 'query' ? distinct(answer) : answer)
      )
      if (here !== there) throw new Error(`${question}\nClickHouse answers\n${here}\nthe simulator\n${there}`)
    }
  }
  return compared
}

/** The view of a call whose process may have stopped since. */
function withoutSignal({ signal: _, ...view }: StoreView): StoreView {
  return view
}

/** Whether a page of an event table may end elsewhere: it counts duplicates, which the engine may have merged. */
function isCut({ sql, parameters, answer }: Extract<Played, { kind: 'query' }>, found: readonly unknown[]): boolean {
  if (sql.includes(' FINAL')) return false
  return Math.max(found.length, answer.length) >= Number(parameters.limit)
}

function distinct(rows: unknown): unknown[] {
  return [...new Map((rows as unknown[]).map((row) => [JSON.stringify(row), row])).values()]
}

async function mutationsEnded(tables: Tables, { table }: UserTable): Promise<void> {
  await until(async () => (await storeOver(tables).do(readMutations, table)).unfinished === 0)
}

function questionOf(each: Exclude<Played, { kind: 'block' }>): string {
  if (each.kind === 'query') return each.sql + JSON.stringify(each.parameters)
  return each.operation.name + JSON.stringify([[...(each.view.names ?? [])], ...each.input.map(shortOf)])
}

/** Projections and their reads by their names. */
function shortOf(value: unknown): unknown {
  if (value instanceof Map) return [...value]
  const { name } = (value ?? {}) as { readonly name?: unknown }
  return typeof name === 'string' ? name : value
}

/** Normalizes an answer: values in any order, numbers as texts like wide integers, duplicates merged. */
function textOf(value: unknown): string {
  return JSON.stringify(plain(value))
}

/** Duplicates that the engine has merged count once there; its clock differs. */
const UNLIKE = new Set(['events', 'weight', 'storedAtMs'])

function plain(value: unknown): unknown {
  if (typeof value === 'number') return String(value)
  if (value instanceof Uint8Array) return textOfBytes(Buffer.from(value).toString())
  if (value instanceof Map || value instanceof Set) return sorted([...value].map(plain))
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return sorted(value.map(plain))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([name]) => !UNLIKE.has(name))
  return Object.fromEntries(entries.sort().map(([name, each]) => [name, plain(each)]))
}

/** Normalizes an array of rows, or a message. */
function textOfBytes(text: string): unknown {
  return text.startsWith('[') ? plain(JSON.parse(text)) : text
}

/** The order of groups is not defined, and so that of parallel lists: each list is compared as a set. */
function sorted(values: readonly unknown[]): unknown[] {
  return values.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
}
