import type { Parameters } from '@gamenet/schemas'
import { z } from 'zod'
import type { ReadTables } from '../read-tables.js'

/** A query of the read tables as a value: its parameters, its SQL, the type of its rows. */
export type Query<Params extends Parameters, Row> = {
  readonly params: z.ZodType<Params>
  readonly row: z.ZodType<Row>
  /** One SELECT. Values appear only as `{name: Type}`; columns are qualified. */
  readonly sql: string
}

/** Binds parameters, SQL and row to one value. */
export const query = <Params extends Parameters, Row>(definition: Query<Params, Row>): Query<Params, Row> => definition

/** Returns the condition that a column's instant is in a window, whose bounds are parameters in milliseconds. */
export function within(column: string, from: string, to: string): string {
  const at = (parameter: string) => `fromUnixTimestamp64Milli({${parameter}: Int64}, 'UTC')`
  return `(${column} >= ${at(from)} AND ${column} < ${at(to)})`
}

type Options = { readonly signal?: AbortSignal }

/**
 * Returns the validated rows of a query: a renamed or retyped column fails here with its name, not as `undefined` in a
 * client.
 */
export async function rowsOf<Params extends Parameters, Row>(
  tables: ReadTables,
  question: Query<Params, Row>,
  params: Params,
  options: Options = {}
): Promise<Row[]> {
  const rows = await tables.rows(question.sql, question.params.parse(params), options)
  return z.array(question.row).parse(rows)
}

/** Returns the rows of a query as JSON bytes, because parsing long series would be wasted work. */
export async function jsonOf<Params extends Parameters>(
  tables: ReadTables,
  question: Query<Params, unknown>,
  params: Params,
  options: Options = {}
): Promise<Uint8Array> {
  return await tables.json(question.sql, question.params.parse(params), options)
}

/** Returns a query with its parameters, for an engine that streams its rows. */
export function bind<Params extends Parameters>(question: Query<Params, unknown>, params: Params) {
  return { sql: question.sql, parameters: question.params.parse(params) }
}
