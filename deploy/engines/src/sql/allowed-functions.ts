import { stringLiteral } from '../clickhouse/parameters.js'

/** Runs every statement of a text and returns the last answer as lines. Parameters are bound to the connection. */
export type Lines = (text: string) => Promise<readonly string[]>

/** Returns why a statement may not call a function by this name; undefined if it may. */
export type FunctionRule = (name: string) => string | undefined

/**
 * Categories of `system.functions` whose functions compute only from their arguments. All others are refused: `Other` has
 * `file`, `sleep`, `getSetting` and `hostName`, for example.
 */
const CATEGORIES = [
  'Aggregate Functions',
  'Arithmetic',
  'Arrays',
  'Bit',
  'Comparison',
  'Conditional',
  'Dates and Times',
  'Distance',
  'Encoding',
  'Hash',
  'JSON',
  'Logical',
  'Map',
  'Mathematical',
  'Null',
  'Rounding',
  'String',
  'String Replacement',
  'String Search',
  'String Splitting',
  'Time Window',
  'Tuple',
  'Type Conversion',
  'URL',
  'UUID'
]

/** Functions of other categories, and parts of the grammar that the parser reports as functions. */
const OTHERS = [
  'bar',
  'caseWithExpression',
  'currentDatabase',
  'exists',
  'formatReadableDecimalSize',
  'formatReadableQuantity',
  'formatReadableSize',
  'formatReadableTimeDelta',
  'grouping',
  'identity',
  'lambda',
  'rand',
  'rand64',
  'randCanonical',
  'revision',
  'runningDifference',
  'timezone',
  'toColumnTypeName',
  'toTypeName',
  'transform',
  'untuple',
  'version',
  '_CAST'
]

/** Functions that call another function by name, read data in a format, reinterpret bytes or compile huge automata. */
const REFUSED =
  /^(arrayReduce|arrayFold|chdb|formatRow|groupFormat|multiFuzzy|multiMatch|reinterpret|flameGraph|aggThrow|nothing|estimateCompression|distinctDynamic|distinctJSON|nowInBlock|serverTime|sparseGrams|JSONMerge|timeSeries|ngramMinHash|wordShingle|ngramSimHash)/

/** Reads the list of functions from the engine and returns the rule that allows those listed here. */
export async function allowedFunctions(lines: Lines): Promise<FunctionRule> {
  const [others, categories] = [OTHERS, CATEGORIES].map((list) => list.map(stringLiteral).join(', '))
  const refused = stringLiteral(REFUSED.source)
  const functions = await lines(
    `SELECT f.is_aggregate, f.case_insensitive, f.name
     FROM system.functions AS f LEFT JOIN system.functions AS target ON target.name = f.alias_to
     WHERE f.origin = 'System' AND (f.name IN (${others}) OR f.alias_to IN (${others})
       OR (f.categories IN (${categories}) OR target.categories IN (${categories}))
         AND NOT match(f.name, ${refused}) AND NOT match(f.alias_to, ${refused}))`
  )
  const combinators = await lines('SELECT c.name FROM system.aggregate_function_combinators AS c')
  const plain = new Set(OTHERS)
  const aggregates = new Set<string>()
  for (const line of functions) {
    const [isAggregate, isCaseless, name = ''] = line.split('\t')
    const names = isAggregate === '1' ? aggregates : plain
    names.add(name)
    if (isCaseless === '1') names.add(name.toLowerCase())
  }
  const has = (names: ReadonlySet<string>, name: string) => names.has(name) || names.has(name.toLowerCase())
  const suffix = new RegExp(`(${combinators.join('|')})$`)
  const isAggregate = (name: string): boolean =>
    has(aggregates, name) || (suffix.test(name) && isAggregate(name.replace(suffix, '')))
  return (name) => (has(plain, name) || isAggregate(name) ? undefined : `The function ${name} is not allowed.`)
}
