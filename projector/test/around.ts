import type { Tables } from '../src/index.js'

/** Returns tables whose calls are wrapped by `run`, which gets the statement, or the table of an insert. */
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

/** The lines of a body as text; empty for a block. */
export function textOf(body: Parameters<Tables['insert']>[2]): string {
  return body instanceof Uint8Array ? Buffer.from(body).toString() : ''
}
