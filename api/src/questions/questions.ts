import { errorMessage, Refusal, ShownInstant } from '@gamenet/schemas'
import { z } from 'zod'
import { pascal } from '../answers/components.js'
import type { Endpoint } from '../answers/endpoint.js'
import { type Dataset, datasets } from '../datasets/datasets.js'
import type { StreamedTables } from '../read-tables.js'
import { lineAt, QuestionFault, type QuestionFile, readQuestionFile } from './question-file.js'

type Values = Readonly<Record<string, unknown>>

/** The dependencies of questions. */
export type QuestionNeeds = {
  readonly files: readonly { readonly file: string; readonly text: string }[]
  /** With the names of the tables that are read now. */
  readonly tables: StreamedTables
  /** Blanks out strings and comments. The engine refuses placeholders that it does not find. */
  codeOf(sql: string): string
}

/** Returns the endpoints of the questions without a fault, and every fault. Rejects if the engine is unavailable. */
export async function questionEndpoints(
  needs: QuestionNeeds
): Promise<{ readonly endpoints: readonly Endpoint[]; readonly faults: readonly QuestionFault[] }> {
  const faults: QuestionFault[] = []
  const endpoints: Endpoint[] = []
  for (const { file, text } of needs.files) {
    try {
      endpoints.push(await questionEndpoint(readQuestionFile(file, text, needs.codeOf), needs))
    } catch (error) {
      if (!(error instanceof QuestionFault)) throw error
      faults.push(error)
    }
  }
  return { endpoints, faults }
}

async function questionEndpoint(question: QuestionFile, needs: QuestionNeeds): Promise<Endpoint> {
  const { name, summary, description, parameters, limits } = question
  const taken = parameters.find((each) => datasets.some(({ tables }) => tables.includes(each.name)))
  if (taken !== undefined) {
    throw parameterFault(question, taken.name, 'has the name of a table; rename it')
  }
  const samples = samplesOf(question, 0)
  const statement = await parsedStatement(question, needs)
  const used = datasets.filter((dataset) => new RegExp(`\\b${tableOf(dataset)}\\b`).test(statement))
  const whole = overDatasets(used, statement)
  // A truncated answer would look complete.
  const sql = `${whole} WHERE throwIf(rowNumberInAllBlocks() >= ${limits.rows}, 'rows') = 0`
  await refuseZonesOfText(question, sql, needs)
  const columns = await columnsOf(question, sql, samples, needs)
  await refuseUnstable(question, whole, samples, needs)
  const row = z.object(Object.fromEntries(columns.map(({ name, schema }) => [name, schema])))
  const bound = (input: Values) =>
    Object.fromEntries(parameters.map((each) => [each.name, each.type.bind(input[each.name])]))
  const operation = pascal(`question_${name.replaceAll('-', '_')}`)
  const response = z.array(row).meta({ id: operation, description: summary })
  const shown = columns.map((column) => `${column.shown} AS \`${column.name}\``).join(', ')
  return {
    operationId: operation.charAt(0).toLowerCase() + operation.slice(1),
    path: `/api/questions/${name}`,
    tags: ['Questions'],
    summary,
    ...(description === undefined ? {} : { description }),
    input: z.object(Object.fromEntries(parameters.map((each) => [each.name, each.schema]))) as Endpoint['input'],
    resolve: (input) => input,
    reads: () => used.map(({ projection }) => ({ projection })),
    answer: async (input, { tables, signal }) => ({
      body: await tables
        .json(`SELECT ${shown} FROM (${sql}) AS t`, bound(input as Values), { signal, limits, isQuestion: true })
        .catch((error: unknown) => Promise.reject(failureOf(error, question)))
    }),
    table: {
      row,
      rows: (body) => body as object[],
      select: (input) => ({ sql, parameters: bound(input as Values), limits, isQuestion: true }),
      failure: (error) => failureOf(error, question)
    },
    response,
    refuses: ['answer_too_large']
  }
}

/** Returns the statement as the engine's parser writes it: one SELECT. Line numbers of its errors are the file's. */
async function parsedStatement(question: QuestionFile, needs: QuestionNeeds): Promise<string> {
  const sql = 'SELECT formatQuery({statement: String}) AS text'
  const [row] = await asked(sql, { statement: question.text }, question, needs)
  const statement = String(row?.text)
  if (/^(SELECT|WITH)\b|^\(/.test(statement)) return statement
  const what = `the statement begins with ${statement.split(/\s/, 1)}; only SELECT is allowed`
  throw new QuestionFault(question.file, lineOf(question), what)
}

/** Resolves with the rows of a statement, as the user of questions; rejects with a fault of the file. */
async function asked(
  sql: string,
  values: Values,
  question: QuestionFile,
  { tables }: Pick<QuestionNeeds, 'tables'>
): Promise<Readonly<Record<string, unknown>>[]> {
  const json = await tables
    .json(sql, values, { isQuestion: true })
    .catch((error: unknown) => Promise.reject(faultOf(error, question)))
  return JSON.parse(new TextDecoder().decode(json))
}

/** Refuses functions such as `now` and `rand`, by the engine's own list. */
async function refuseUnstable(
  question: QuestionFile,
  sql: string,
  samples: Values,
  needs: QuestionNeeds
): Promise<void> {
  const tree = await asked(`EXPLAIN QUERY TREE ${sql}`, samples, question, needs)
  const names = tree.flatMap((row) => /function_name: (\w+)/.exec(String(Object.values(row)))?.[1] ?? [])
  const unstable = `SELECT f.name AS name FROM system.functions AS f
    WHERE f.deterministic = 0 AND f.name IN {names: Array(String)} LIMIT 1`
  const [found] = await asked(unstable, { names: [...new Set(names)] }, question, needs)
  if (found === undefined) return
  const what = `the function ${found.name} changes the answer without a change of data; take the value as a parameter`
  throw new QuestionFault(question.file, lineOf(question, String(found.name)), what)
}

/** Returns the statement with the datasets as common table expressions. */
function overDatasets(used: readonly Dataset[], statement: string): string {
  const views = used.map((dataset) => `${tableOf(dataset)} AS (${dataset.select((table) => `{${table}: Identifier}`)})`)
  return `${views.length === 0 ? '' : `WITH ${views.join(', ')} `}SELECT * FROM (${statement}) AS q`
}

/** A word that names no zone and no type, and occurs in no statement. */
const NO_ZONE = 'no_such_zone_7f3a'

/**
 * Refuses a question whose text can reach a time zone or a type, which can have one: the engine opens the file that a
 * zone names (`file:/path`). Zones and types are constants, which it resolves before it reads rows.
 */
async function refuseZonesOfText(question: QuestionFile, sql: string, { tables }: QuestionNeeds): Promise<void> {
  for (const { name, type } of question.parameters) {
    for (const at of type.isText ? ([0, 1] as const) : []) {
      const values = { ...samplesOf(question, at), [name]: NO_ZONE }
      const failed = await asked(`DESCRIBE TABLE (${sql})`, values, question, { tables }).catch((error) => error)
      if (failed instanceof Refusal) throw failed
      const reason = failed instanceof QuestionFault ? failed.reason : ''
      if (!reason.includes(NO_ZONE) || !/time ?zone|data type/i.test(reason)) continue
      const what = `is text and reaches a time zone or a type, which can name a file; write {${name}: TimeZone}`
      throw parameterFault(question, name, what)
    }
  }
}

function samplesOf({ parameters }: QuestionFile, at: 0 | 1): Values {
  return Object.fromEntries(parameters.map(({ name, type }) => [name, type.samples[at]]))
}

function parameterFault({ file, text }: QuestionFile, name: string, what: string): QuestionFault {
  const line = lineAt(text, text.search(new RegExp(`\\{\\s*${name}\\s*:`)))
  return new QuestionFault(file, line, `the parameter ${name} ${what}`)
}

type QuestionColumn = { readonly name: string; readonly schema: z.ZodType; readonly shown: string }

async function columnsOf(
  question: QuestionFile,
  sql: string,
  samples: Values,
  needs: QuestionNeeds
): Promise<QuestionColumn[]> {
  const rows = await asked(`DESCRIBE TABLE (${sql})`, samples, question, needs)
  return z
    .array(z.object({ name: z.string(), type: z.string() }))
    .parse(rows)
    .map(({ name, type }) => {
      const base = type.replace(/^LowCardinality\((.*)\)$/, '$1').replace(/^Nullable\((.*)\)$/, '$1')
      const kind = KINDS.find(({ types }) => types.test(base))
      if (kind === undefined || !/^\w+$/.test(name)) {
        const line = lineOf(question, name)
        const what = `the column ${name} has the type ${type}; expected a plain name and a plain value,
          such as toString(…) AS name`
        throw new QuestionFault(question.file, line, what)
      }
      return { name, schema: base === type ? kind.schema : kind.schema.nullable(), shown: kind.shown(`t.\`${name}\``) }
    })
}

/** Types of columns: their schemas, and how JSON shows them. */
const KINDS: readonly { types: RegExp; schema: z.ZodType; shown(value: string): string }[] = [
  { types: /^U?Int(8|16|32)$/, schema: z.int(), shown: (value) => value },
  // As a number of JSON: exact below 2^53. Files need the type.
  { types: /^Int64$/, schema: z.int(), shown: (value) => `toFloat64(${value})` },
  { types: /^UInt64$/, schema: z.int().meta({ format: 'uint64' }), shown: (value) => `toFloat64(${value})` },
  { types: /^(Float|Decimal|BFloat)/, schema: z.number(), shown: (value) => `toFloat64(${value})` },
  { types: /^Bool$/, schema: z.boolean(), shown: (value) => value },
  { types: /^(String|FixedString|Enum|UUID)/, schema: z.string(), shown: (value) => `toString(${value})` },
  { types: /^Date(32)?$/, schema: z.iso.date(), shown: (value) => value },
  {
    types: /^DateTime/,
    schema: ShownInstant,
    shown: (value) => `concat(replaceOne(toString(toDateTime64(${value}, 3, 'UTC')), ' ', 'T'), 'Z')`
  }
]

/**
 * Returns the engine's reason with the file and the line: the line that it states, or the one with the name that it
 * mentions.
 */
function faultOf(error: unknown, question: QuestionFile): unknown {
  if (error instanceof Refusal) return error
  const message = errorMessage(error)
  const reason = reasonIn(error)
  const stated = /\(line (\d+), col \d+\)/.exec(message)?.[1]
  const named = /(?:function|identifier|table) [`']([\w.]+)|The (?:function|table|name) ([\w.]+)/i.exec(reason)
  const name = (named?.[1] ?? named?.[2])?.split('.').at(-1)
  return new QuestionFault(question.file, Number(stated ?? lineOf(question, name)), reason)
}

/** Returns the reason in an engine's error, without its place in the statement. */
function reasonIn(error: unknown): string {
  const said = errorMessage(error).replace(/^(?:.*?DB::Exception: |Code: \d+\. )/s, '')
  return said.replace(/(: In scope | \[in: |: [Ww]hile (?!converting)|\. \([A-Z_0-9]+\)| Look at https).*$/s, '').trim()
}

/** Returns the line of an alias or word of the statement, and the statement's first line if it has none. */
function lineOf({ text, code }: QuestionFile, word = ''): number {
  const patterns = /^\w+$/.test(word) ? [`\\bAS\\s+${word}\\b`, `\\b${word}\\b`] : []
  const places = patterns.map((pattern) => code.search(new RegExp(pattern, 'i')))
  const place = places.find((each) => each !== -1)
  return place === undefined ? text.split('\n').findIndex((line) => !line.startsWith('--')) + 1 : lineAt(text, place)
}

/** ClickHouse's codes: TIMEOUT_EXCEEDED, MEMORY_LIMIT_EXCEEDED, FUNCTION_THROW_IF_VALUE_IS_NON_ZERO. */
const OVER_LIMIT = new Set([159, 241, 395])
/**
 * ClickHouse's codes for values: CANNOT_PARSE_… (6, 25, 26, 27, 32, 38, 41, 72, 130, 376, 441, 457, 467, 675, 676), of
 * the wrong kind or form (36 BAD_ARGUMENTS, 43, 44, 48, 50, 53, 62, 70, 117 INCORRECT_DATA, 349, 427 regular
 * expressions, 691), or out of range (12, 69, 128, 131, 135, 153 division by zero, 190, 321, 353, 407, 440). The
 * engine has analysed the statement with other values at the start.
 */
const OF_VALUES = new Set([
  ...[6, 12, 25, 26, 27, 32, 36, 38, 41, 43, 44, 48, 50, 53, 62, 69, 70, 72, 117, 128, 130, 131, 135, 153, 190],
  ...[321, 349, 353, 376, 407, 427, 440, 441, 457, 467, 675, 676, 691]
])

/**
 * Returns the refusal of an answer that exceeds its limits, or that the engine cannot compute for these values; else
 * the error.
 */
function failureOf(error: unknown, { name, limits: { seconds, memoryBytes, rows } }: QuestionFile): unknown {
  const code = Number((error as { code?: unknown } | null)?.code)
  if (OVER_LIMIT.has(code)) {
    const limits = `${seconds} s, ${memoryBytes / (1024 * 1024)} MiB, ${rows} rows`
    const what = `the question ${name} exceeds its limits (${limits}); ask for less`
    return new Refusal('answer_too_large', [what], { cause: error })
  }
  if (!OF_VALUES.has(code)) return error
  const what = `The question ${name} has no answer for these values: ${reasonIn(error).slice(0, REASON_LENGTH_MAX)}`
  return new Refusal('request_invalid', [what.replace(/[.\s]+$/, '')], { cause: error })
}

const REASON_LENGTH_MAX = 300

const tableOf = ({ name }: Dataset): string => name.replaceAll('-', '_')
