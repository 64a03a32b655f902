import { type ClickHouse, openChdb } from '@gamenet/engines'
import { migrate } from '@gamenet/projector'
import type { Test } from 'tap'
import { baseName, plain as oneLine } from '../../proof/simulate/statement-names.js'
import type { Played } from '../../proof/simulate/store.js'
import { TABLES } from '../../proof/simulate/table-definitions.js'

type Tables = ClickHouse['control']

/** chDB with migrated tables. */
export async function openTables(t: Test): Promise<Tables> {
  const engine = await openChdb({ path: t.testdir() })
  t.teardown(() => engine.close())
  await migrate(engine.control)
  return engine.control
}

/** Does on the engine what a simulation did to its tables; gives how many answers were compared. Throws at one that differs. */
export async function playAgain(tables: Tables, played: readonly Played[]): Promise<number> {
  for (const table of new Set([...Object.keys(TABLES), ...played.flatMap((each) => tablesIn(each))])) {
    const isMade = baseName(table) !== table
    await tables.execute(isMade ? `DROP TABLE IF EXISTS ${table}` : `TRUNCATE TABLE ${table}`)
  }
  const known = new Set<string>()
  let compared = 0
  for (const each of played) {
    if (each.kind === 'insert') {
      known.clear()
      if (each.lines !== '') await tables.insert(each.table, each.columns, new TextEncoder().encode(each.lines))
    } else if (each.kind === 'execute') {
      known.clear()
      await tables.execute(each.sql, each.parameters)
    } else {
      // Pollers repeat their queries.
      const question = each.sql + JSON.stringify(each.parameters)
      if (known.has(question)) continue
      known.add(question)
      const found = textOf(await tables.rows(each.sql, each.parameters))
      const expected = textOf(each.answer)
      compared += 1
      if (found !== expected) throw new Error(`${each.sql}\nchDB answers\n${found}\nthe simulator\n${expected}`)
    }
  }
  return compared
}

/** What was executed, and what was asked and found something, one line each. */
export function statementsOf(played: readonly Played[]): string[] {
  return played.flatMap((each) =>
    each.kind === 'execute' || (each.kind === 'rows' && each.answer.length > 0) ? [oneLine(each.sql)] : []
  )
}

function tablesIn(each: Played): string[] {
  if (each.kind === 'insert') return [each.table]
  if (each.kind === 'rows') return []
  return [...each.sql.matchAll(/\b(?:INTO|EXISTS|TABLE|VIEW) ([a-z]\w*)/g)].map(([, table = '']) => table)
}

/** Rows in any order; numbers as texts, since wide integers come as such; doubled rows count as the engine merges. */
function textOf(rows: readonly Readonly<Record<string, unknown>>[]): string {
  return rows
    .map((row) => JSON.stringify(plain(row)))
    .sort()
    .join('\n')
}

/** Doubled rows that the engine has merged count once there; its clock is another. */
const UNLIKE = new Set(['events', 'weight', 'parked_at_ms'])

function plain(value: unknown): unknown {
  if (typeof value === 'number') return String(value)
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return sorted(value.map(plain))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([name]) => !UNLIKE.has(name))
  return Object.fromEntries(entries.sort().map(([name, each]) => [name, plain(each)]))
}

/** Groups come in any order, and lists beside one another with them: each list is compared as a set. */
function sorted(values: readonly unknown[]): unknown[] {
  return values.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
}
