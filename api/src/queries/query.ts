import type { Parameters } from '@gamenet/schemas'
import { z } from 'zod'
import type { ReadTables } from '../read-tables.js'

/** A question to the read tables as a value: what it takes, its SQL, what a row of its answer is. */
export type Query<Params extends Parameters, Row> = {
  readonly params: z.ZodType<Params>
  readonly row: z.ZodType<Row>
  /** One SELECT. Values stand in it as `{name: Type}` only, columns are qualified. */
  readonly sql: string
}

/** Binds parameters, SQL and row to one value. */
export function query<Params extends Parameters, Row>(definition: Query<Params, Row>): Query<Params, Row> {
  return definition
}

type Options = { readonly signal?: AbortSignal }

/**
 * The rows of a query, each parsed: a column that was renamed or retyped fails with its name here, not as
 * `undefined` in a client.
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

/** The rows of a query as ready JSON bytes, for series that are too long to be parsed for nothing. */
export async function jsonOf<Params extends Parameters>(
  tables: ReadTables,
  question: Query<Params, unknown>,
  params: Params,
  options: Options = {}
): Promise<Uint8Array> {
  return await tables.json(question.sql, question.params.parse(params), options)
}
