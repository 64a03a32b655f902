import { z } from 'zod'
import type { StreamFormat } from '../read-tables.js'
import { oneOf, parseInput } from './parameters.js'
import { weightsOf } from './weights.js'

/** A format of tables: its media type, other names of it, and the engine's name. */
export type FileFormat = {
  readonly type: string
  readonly accepts: readonly string[]
  readonly engine: StreamFormat
}

/** Formats of tables by name, which also ends the names of files. Of equally acceptable ones the first is sent. */
export const FILE_FORMATS = {
  csv: { type: 'text/csv; charset=utf-8; header=present', accepts: ['text/csv'], engine: 'TabSeparatedRawWithNames' },
  ndjson: {
    type: 'application/x-ndjson; charset=utf-8',
    accepts: ['application/x-ndjson', 'application/ndjson', 'application/jsonl'],
    engine: 'JSONEachRow'
  },
  parquet: {
    type: 'application/vnd.apache.parquet',
    accepts: ['application/vnd.apache.parquet', 'application/x-parquet'],
    engine: 'Parquet'
  },
  arrow: {
    type: 'application/vnd.apache.arrow.stream',
    accepts: ['application/vnd.apache.arrow.stream'],
    engine: 'ArrowStream'
  }
} as const satisfies Record<string, FileFormat>
export type FormatName = keyof typeof FILE_FORMATS

const NAMES = ['csv', 'ndjson', 'parquet', 'arrow'] as const satisfies readonly FormatName[]

/** The parameter of every endpoint with a table. */
export const FORMAT_PARAMETER = 'format'
export const formatParameter = oneOf(['json', ...NAMES])
  .optional()
  .describe('The format of the answer; it wins over the header `Accept`. Default: `json`.')

/**
 * Returns the requested file format, undefined for JSON. The parameter wins over `Accept`; an unknown one is refused.
 */
export function formatOf(given: unknown, accept: string | undefined): FormatName | undefined {
  if (given === undefined) return acceptedFormat(accept)
  const { format } = parseInput(z.object({ [FORMAT_PARAMETER]: formatParameter }), { [FORMAT_PARAMETER]: given })
  return format === 'json' ? undefined : format
}

/**
 * Returns the file format that an `Accept` prefers to JSON: a named one whose weight is higher than that of JSON by
 * name, and not lower than that of a range for everything. Browsers name none of them.
 */
export function acceptedFormat(accept: string | undefined): FormatName | undefined {
  if (accept === undefined || accept === '*/*') return undefined
  const weights = weightsOf(accept)
  const weightOf = (name: FormatName) =>
    Math.max(0, ...FILE_FORMATS[name].accepts.map((type) => weights.get(type) ?? 0))
  const [best] = [...NAMES].sort((a, b) => weightOf(b) - weightOf(a))
  if (best === undefined || weightOf(best) === 0) return undefined
  const json = weights.get('application/json')
  if (json !== undefined) return weightOf(best) > json ? best : undefined
  return weightOf(best) >= (weights.get('application/*') ?? weights.get('*/*') ?? 0) ? best : undefined
}
