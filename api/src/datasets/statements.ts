import { z } from 'zod'
import type { Dataset, DatasetMonths } from './datasets.js'

/** A SELECT with its parameters. */
export type Statement = { readonly sql: string; readonly parameters: Readonly<Record<string, unknown>> }

/** A period as half-open milliseconds since 1970; undefined for the newest state. */
export type Span = { readonly fromMs: number; readonly toMs: number }

/** What a file contains, whatever its bytes. */
export const RowFacts = z.object({
  rows: z.coerce.number(),
  /** Milliseconds since 1970; null without rows, and for the newest state. */
  firstMs: z.coerce.number().nullable(),
  lastMs: z.coerce.number().nullable(),
  /** Does not depend on the order of rows. */
  rowsHash: z.string()
})
export type RowFacts = z.infer<typeof RowFacts>

const instant = (parameter: string) => `fromUnixTimestamp64Milli({${parameter}: Int64}, 'UTC')`

/** Selects the rows of a file, in an order that leaves nothing to chance: the same rows give the same bytes. */
export function fileStatement(dataset: Dataset, span: Span | undefined): Statement {
  const { columns, order } = dataset
  const names = columns.map(({ name }) => name)
  const sorted = [...order, ...names.filter((name) => !order.includes(name))]
  const { sql, parameters } = rowsOf(dataset, span)
  return {
    sql: `SELECT ${names.map((name) => `r.${name} AS ${name}`).join(', ')} ${sql} ORDER BY ${sorted.map((name) => `r.${name}`).join(', ')}`,
    parameters
  }
}

/** Selects the {@link RowFacts} of a file. */
export function factsStatement(dataset: Dataset, span: Span | undefined): Statement {
  const { columns, files } = dataset
  // A hash of NULL is NULL.
  const hashed = columns.map(({ name, type }) =>
    type.startsWith('Nullable') ? `ifNull(toString(r.${name}), '\\\\N')` : `r.${name}`
  )
  const bound = (name: 'min' | 'max') =>
    files === 'newest' ? 'NULL' : `if(count() = 0, NULL, toUnixTimestamp64Milli(${name}(r.${files.instant})))`
  const { sql, parameters } = rowsOf(dataset, span)
  return {
    sql: `SELECT count() AS rows, ${bound('min')} AS firstMs, ${bound('max')} AS lastMs,
      lower(concat(leftPad(hex(sum(cityHash64(${hashed.join(', ')}))), 16, '0'), leftPad(hex(groupBitXor(cityHash64(${hashed.join(', ')}))), 16, '0'))) AS rowsHash ${sql}`,
    parameters
  }
}

/** Selects the months of a span in which a dataset has rows, newest first. */
export function monthsStatement({ tables: [table = ''] }: Dataset, { stored }: DatasetMonths, span: Span): Statement {
  return {
    sql: `SELECT DISTINCT formatDateTime(toStartOfMonth(s.at), '%Y-%m') AS month
      FROM (SELECT ${stored} AS at FROM ${named(table)} AS t) AS s
      WHERE s.at >= ${instant('fromMs')} AND s.at < ${instant('toMs')} ORDER BY month DESC`,
    parameters: { ...span }
  }
}

function rowsOf({ select, files }: Dataset, span: Span | undefined): Statement {
  if (files === 'newest' || span === undefined) return { sql: `FROM (${select(named)}) AS r`, parameters: {} }
  if (files.of === 'state')
    return { sql: `FROM (${select(named, instant('toMs'))}) AS r`, parameters: { toMs: span.toMs } }
  return {
    sql: `FROM (${select(named)}) AS r WHERE r.${files.instant} >= ${instant('fromMs')} AND r.${files.instant} < ${instant('toMs')}`,
    parameters: { ...span }
  }
}

/** Names a table as statements of answers do. */
function named(table: string): string {
  return `{${table}: Identifier}`
}
