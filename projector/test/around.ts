import type { Tables } from '../src/index.js'

/** Tables each call of which is run by `run`, which is told the statement, or the table that is inserted into. */
export function around(
  tables: Tables,
  run: <Result>(work: () => Promise<Result>, what: string) => Promise<Result>
): Tables {
  return {
    execute: (sql, parameters) => run(() => tables.execute(sql, parameters), sql),
    rows: (sql, parameters) => run(() => tables.rows(sql, parameters), sql),
    json: (sql, parameters) => run(() => tables.json(sql, parameters), sql),
    insert: (table, columns, body) => run(() => tables.insert(table, columns, body), table)
  }
}
