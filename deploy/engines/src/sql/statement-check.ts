import type { Lane, Parameters } from '../clickhouse/clickhouse.js'
import { allowedFunctions, type Lines } from './allowed-functions.js'
import { checkSelect } from './check-select.js'

/**
 * Returns a check of statements by a running engine: resolves with a statement as the engine's parser writes it if it is one
 * SELECT over these tables, and rejects with `StatementRefused` otherwise. The parameters need valid values.
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
  const functions = await allowedFunctions(plain)
  const names = await plain(
    `SELECT d.name FROM system.databases AS d UNION ALL SELECT t.name FROM system.tables AS t WHERE t.database = currentDatabase()`
  )
  const allowed = new Set(tables)
  const rules = { functions, tables: allowed, hidden: new Set(names.filter((name) => !allowed.has(name))) }
  return (statement, parameters) => checkSelect(lines(parameters), statement, rules)
}

const EXPLAIN = 'EXPLAIN AST '
