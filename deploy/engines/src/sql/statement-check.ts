import type { Lane, Parameters } from '../clickhouse/clickhouse.js'
import { allowedFunctions, type FunctionRule, type Lines } from './allowed-functions.js'
import { checkSelect } from './check-select.js'

/**
 * Returns a check of statements by a running engine: resolves with a statement as the engine's parser writes it if it is one
 * SELECT over these tables whose answer follows from them, and rejects with `StatementRefused` otherwise. The parameters
 * need valid values.
 */
export async function openStatementCheck(
  lane: Pick<Lane, 'rows' | 'explain'>,
  tables: readonly string[]
): Promise<(statement: string, parameters: Parameters) => Promise<string>> {
  const lines =
    (parameters: Parameters): Lines =>
    async (text) => {
      if (text.startsWith(EXPLAIN)) return await lane.explain(text.slice(EXPLAIN.length), parameters)
      const rows = await lane.rows(text)
      return rows.flatMap((row) => Object.values(row).join('\t').split('\n'))
    }
  const plain = lines({})
  const refusalOf = await allowedFunctions(plain)
  const unstable = new Set(await plain(UNSTABLE))
  const functions: FunctionRule = (name) =>
    refusalOf(name) ??
    (unstable.has(name.toLowerCase())
      ? `The function ${name} changes the answer without a change of data; take the value as a parameter.`
      : undefined)
  const names = await plain(
    `SELECT d.name FROM system.databases AS d UNION ALL SELECT t.name FROM system.tables AS t WHERE t.database = currentDatabase()`
  )
  const allowed = new Set(tables)
  const rules = { functions, tables: allowed, hidden: new Set(names.filter((name) => !allowed.has(name))) }
  return (statement, parameters) => checkSelect(lines(parameters), statement, rules)
}

/** Functions such as `now` and `rand`, by the engine's own list. */
const UNSTABLE = `SELECT lower(f.name) FROM system.functions AS f LEFT JOIN system.functions AS t ON t.name = f.alias_to
  WHERE f.deterministic = 0 OR t.deterministic = 0`

const EXPLAIN = 'EXPLAIN AST '
