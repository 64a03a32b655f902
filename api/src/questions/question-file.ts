import type { z } from 'zod'
import { date, instant, integer, number, oneOf, text, timeZone } from '../request/parameters.js'

/*
 * question    a SELECT over the datasets in a file of the operator; the file's name is the endpoint's
 * header      the comment lines at its top: what it answers, its parameters, its limits
 */

/** A fault in a question's file, with the line that causes it. */
export class QuestionFault extends Error {
  constructor(
    readonly file: string,
    /** From 1. */
    readonly line: number,
    readonly reason: string
  ) {
    super(`${file}:${line}: ${reason}`)
  }
}

/** The file of a question, before the engine has checked its statement. */
export type QuestionFile = {
  readonly file: string
  readonly name: string
  /** The first line of the header, without a full stop. */
  readonly summary: string
  readonly description: string | undefined
  readonly parameters: readonly QuestionParameter[]
  readonly limits: QuestionLimits
  /** The whole text, so that the engine's line numbers are the file's, with types that the engine knows. */
  readonly text: string
  /** The text with blanks in place of strings, quoted names and comments. */
  readonly code: string
}

export type QuestionParameter = { readonly name: string; readonly schema: z.ZodType; readonly type: ParameterType }

export type QuestionLimits = { readonly seconds: number; readonly memoryBytes: number; readonly rows: number }

type ParameterType = {
  schema(): z.ZodType
  /** Valid values, as the engine reads them: the usual one, and one with which conditions take another branch. */
  readonly samples: readonly [string, string]
  /** Whether any text is a value. */
  readonly isText?: boolean
  /** The value for the engine. */
  bind(value: unknown): unknown
}

const MIB = 1024 * 1024
const LIMITS: QuestionLimits = { seconds: 10, memoryBytes: 256 * MIB, rows: 10_000 }
const LIMITS_MAX: QuestionLimits = { seconds: 30, memoryBytes: 512 * MIB, rows: 1_000_000 }
const NAME = /^([a-z][a-z0-9-]{0,63})\.sql$/
const PARAMETER_NAME = /^[a-z][A-Za-z0-9_]*$/

/** Reads a question's file. Throws a {@link QuestionFault}. `codeOf` blanks out strings and comments. */
export function readQuestionFile(file: string, text: string, codeOf: (sql: string) => string): QuestionFile {
  const name = NAME.exec(file)?.[1]
  if (name === undefined) {
    throw new QuestionFault(
      file,
      1,
      'the name is not lower-case letters, digits and hyphens that end with .sql; rename it'
    )
  }
  const header = headerOf(text)
  const code = codeOf(text)
  const found = [...code.matchAll(/\{\s*(\w+)\s*:\s*([^{}]*?)\s*\}/g)]
  const parameters = new Map<string, QuestionParameter>()
  for (const { index, 1: parameter = '' } of found) {
    // Types may have quoted names of zones, which `codeOf` blanks out.
    const type = /^\{\s*\w+\s*:\s*([^{}]*?)\s*\}/.exec(text.slice(index))?.[1] ?? ''
    parameters.set(parameter, parameterOf({ file, line: lineAt(text, index), name: parameter, type }))
  }
  const described: string[] = []
  let limits = LIMITS
  for (const [at, line] of header.entries()) {
    const [, about = '', meaning = ''] = /^(\w+):\s*(.*)$/.exec(line) ?? []
    const parameter = parameters.get(about)
    if (about === 'limits') limits = limitsOf(file, at + 1, meaning)
    else if (parameter !== undefined) {
      parameters.set(about, { ...parameter, schema: parameter.schema.describe(meaning) })
    } else if (meaning !== '' && PARAMETER_NAME.test(about)) {
      throw new QuestionFault(file, at + 1, `the header describes ${about}, which the statement does not have`)
    } else if (line !== '') described.push(line)
  }
  const [first] = described
  if (first === undefined) {
    throw new QuestionFault(
      file,
      1,
      'the file does not begin with a comment; write what it answers, such as -- Peaks of a title by month'
    )
  }
  const description = described.length === 1 ? undefined : described.join(' ')
  const summary = first.replace(/\.$/, '')
  const known = { text: withoutZones(text, code), code: withoutZones(code, code) }
  return { file, name, summary, description, parameters: [...parameters.values()], limits, ...known }
}

/** Returns a text with `String` for the type `TimeZone`, which the engine lacks. Blanks keep the columns. */
function withoutZones(text: string, code: string): string {
  const places = [...code.matchAll(/:\s*TimeZone(?=\s*\})/g)]
  return places.reduce((all, { index, 0: { length } }) => {
    return all.slice(0, index) + ':String'.padEnd(length) + all.slice(index + length)
  }, text)
}

/** Returns the line of a place in a text, from 1. */
export const lineAt = (text: string, index: number): number => text.slice(0, index).split('\n').length

/** Returns the comment lines at the top. */
function headerOf(text: string): string[] {
  const lines = text.split('\n')
  const end = lines.findIndex((line) => !line.startsWith('--'))
  return lines.slice(0, end === -1 ? undefined : end).map((line) => line.slice(2).trim())
}

function limitsOf(file: string, line: number, meaning: string): QuestionLimits {
  const limits = { ...LIMITS }
  for (const part of meaning.split(',').map((each) => each.trim())) {
    const [, digits = '', unit = ''] = /^(\d{1,9}) (s|MiB|rows)$/.exec(part) ?? []
    const field = UNITS[unit]
    if (field === undefined) {
      throw new QuestionFault(
        file,
        line,
        `limits has ${JSON.stringify(part)}; expected such as 10 s, 256 MiB, 10000 rows`
      )
    }
    const value = Number(digits) * (unit === 'MiB' ? MIB : 1)
    if (value < 1 || value > LIMITS_MAX[field]) {
      throw new QuestionFault(file, line, `limits has ${part}; at most 30 s, 512 MiB, 1000000 rows are possible`)
    }
    limits[field] = value
  }
  return limits
}

const UNITS: Readonly<Record<string, keyof QuestionLimits>> = { s: 'seconds', MiB: 'memoryBytes', rows: 'rows' }

function parameterOf(given: { file: string; line: number; name: string; type: string }): QuestionParameter {
  const { file, line, name, type } = given
  if (!PARAMETER_NAME.test(name) || name === 'format') {
    throw new QuestionFault(
      file,
      line,
      `the parameter ${name} is not a word such as titleId, or it is format; rename it`
    )
  }
  const known = TYPES[type.replace(/\s/g, '')]
  if (known === undefined) {
    const types = Object.keys(TYPES).filter((each) => !each.includes(`'`))
    throw new QuestionFault(
      file,
      line,
      `the parameter ${name} has the type ${type}; expected one of ${types.join(', ')}`
    )
  }
  return { name, schema: known.schema(), type: known }
}

const whole = (min: number, max: number): ParameterType => ({
  schema: () => integer({ min, max }),
  samples: ['0', '1'],
  bind: (value) => value
})
const plain = (schema: () => z.ZodType, first: string, second = first): ParameterType => ({
  ...{ schema, samples: [first, second] },
  bind: (value) => value
})
/** Bound as seconds since 1970, which do not depend on a time zone. */
const moment: ParameterType = {
  schema: () => instant(),
  samples: ['0000000000', '2000000000'],
  // The engine interprets fewer than ten digits differently.
  bind: (value) => String(Math.floor(Number(value) / 1000)).padStart(10, '0')
}
const exactMoment: ParameterType = { ...moment, bind: (value) => (Number(value) / 1000).toFixed(3).padStart(14, '0') }

/**
 * Text that names a file where a statement makes a time zone of it, or a type with a zone in quotes. The start finds
 * only those zones of text that are constants.
 */
const PATH_OF_ZONE = /(?:^|['$])(?:file:|\/)|\.\.\//i

const TYPES: Readonly<Record<string, ParameterType>> = {
  String: { ...plain(() => text({ example: 'x', isPath: PATH_OF_ZONE }), ''), isText: true },
  TimeZone: plain(timeZone, 'UTC'),
  UInt8: whole(0, 255),
  UInt16: whole(0, 65_535),
  UInt32: whole(0, 4_294_967_295),
  UInt64: whole(0, Number.MAX_SAFE_INTEGER),
  Int8: whole(-128, 127),
  Int16: whole(-32_768, 32_767),
  Int32: whole(-2_147_483_648, 2_147_483_647),
  Int64: whole(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
  Float64: plain(number, '0', '1'),
  Bool: plain(() => oneOf(['true', 'false']), 'false', 'true'),
  Date: plain(date, '1970-01-02', '2030-01-01'),
  DateTime: moment,
  "DateTime('UTC')": moment,
  'DateTime64(3)': exactMoment,
  "DateTime64(3,'UTC')": exactMoment
}
