import { errorMessage } from '@gamenet/schemas/errors'
import { ClickHouseError } from '../clickhouse/clickhouse.js'
import { stringLiteral } from '../clickhouse/parameters.js'
import type { FunctionRule, Lines } from './allowed-functions.js'
import { type SyntaxNode, syntaxTree } from './syntax-tree.js'

/** A statement that may not run. The message says what was found and what is allowed. */
export class StatementRefused extends Error {}

export type SelectRules = {
  readonly functions: FunctionRule
  /** Allowed tables, as statements name them: `title_count`, `catalog.tables`. */
  readonly tables: ReadonlySet<string>
  /**
   * Names of databases, and of tables of the current database that are not allowed. Any other plain name of a table is a common
   * table expression, or unknown.
   */
  readonly hidden: ReadonlySet<string>
}

/** The largest statement, in UTF-16 units; the engine parses 256 KiB. */
export const STATEMENT_LENGTH_MAX = 65_536

/**
 * Returns the statement as the engine's parser writes it, if it is one SELECT over allowed tables that calls allowed functions;
 * throws {@link StatementRefused} otherwise. Run the returned text, never the given one: the check is about the former.
 *
 * The engine parses the statement as a literal first, because a connection of chDB runs every statement of a text. Everything
 * that is not listed here is refused: SETTINGS, FORMAT, INTO OUTFILE and APPLY are nodes of other types.
 */
export async function checkSelect(lines: Lines, statement: string, rules: SelectRules): Promise<string> {
  if (statement.length > STATEMENT_LENGTH_MAX)
    throw new StatementRefused(
      `The statement has ${statement.length} characters; at most ${STATEMENT_LENGTH_MAX} are allowed.`
    )
  if (statement.includes('\0')) throw new StatementRefused('The statement contains a zero byte; remove it.')
  const text = (await parsed(lines(`SELECT formatQuery(${stringLiteral(statement)})`))).join('\n').trim()
  if (!/^(SELECT|WITH)\b|^\(/.test(text))
    throw new StatementRefused(`The statement begins with ${text.split(/\s/, 1)}; only SELECT is allowed.`)
  if (IDENTIFIER_PARAMETER.test(text))
    throw new StatementRefused('A parameter of the type Identifier is not allowed; write the name into the statement.')
  const tree = syntaxTree(await parsed(lines(`EXPLAIN AST ${text}`)))
  if (tree === undefined)
    throw new StatementRefused('A quoted name in the statement contains a line break; give it a plain name.')
  if (tree.type !== 'SelectWithUnionQuery')
    throw new StatementRefused(`The statement is a ${tree.type}; only SELECT is allowed.`)
  checkNode(tree, rules)
  return text
}

const IDENTIFIER_PARAMETER = /\{\s*\w+\s*:\s*Identifier\s*\}/i

async function parsed(answer: Promise<readonly string[]>): Promise<readonly string[]> {
  try {
    return await answer
  } catch (error) {
    if (!(error instanceof ClickHouseError)) throw error
    const reason = errorMessage(error)
      .replace(/^.*?DB::Exception: /s, '')
      .replace(/(: In scope SELECT|: While processing|\(SYNTAX_ERROR\)| \[in: ).*$/s, '')
    throw new StatementRefused(`ClickHouse cannot read the statement: ${reason.slice(0, REASON_LENGTH_MAX).trim()}`)
  }
}

const REASON_LENGTH_MAX = 500

function checkNode(node: SyntaxNode, rules: SelectRules): void {
  const { type, children } = node
  if (!TYPES.has(type)) throw new StatementRefused(`${NAMES[type] ?? type} is not allowed in a statement.`)
  NODE_CHECKS[type]?.(node, rules)
  for (const child of children) checkNode(child, rules)
}

const NAMES: Readonly<Record<string, string>> = {
  Set: 'SETTINGS',
  ColumnsApplyTransformer: 'APPLY',
  Explain: 'EXPLAIN'
}

const TYPES = new Set([
  'ArrayJoin',
  'Asterisk',
  'ColumnsExceptTransformer',
  'ColumnsListMatcher',
  'ColumnsRegexpMatcher',
  'ColumnsReplaceTransformer',
  'ColumnsReplaceTransformer::Replacement',
  'ColumnsTransformerList',
  'ExpressionList',
  'Function',
  'Identifier',
  'InterpolateElement',
  'Literal',
  'OrderByElement',
  'QualifiedAsterisk',
  'QualifiedColumnsListMatcher',
  'QualifiedColumnsRegexpMatcher',
  'SampleRatio',
  'SelectIntersectExceptQuery',
  'SelectQuery',
  'SelectWithUnionQuery',
  'Subquery',
  'TableExpression',
  'TableIdentifier',
  'TableJoin',
  'TablesInSelectQuery',
  'TablesInSelectQueryElement',
  'WindowDefinition',
  'WindowListElement',
  'WithElement'
])

type NodeCheck = (node: SyntaxNode, rules: SelectRules) => void

const NODE_CHECKS: Readonly<Record<string, NodeCheck>> = {
  // FORMAT and INTO OUTFILE are further children.
  SelectWithUnionQuery: ({ children }) => {
    if (children.length === 1 && children[0]?.type === 'ExpressionList') return
    throw new StatementRefused('FORMAT and INTO OUTFILE are not allowed in a statement; use the option for the format.')
  },
  TableExpression: ({ children }) => {
    for (const { type, text } of children) {
      if (type === 'Function' && nameOf(text) !== TABLE_FUNCTION)
        throw new StatementRefused(`The table function ${nameOf(text)} is not allowed; only ${TABLE_FUNCTION} is.`)
    }
  },
  TableIdentifier: ({ text }, rules) => checkTable(nameOf(text), rules),
  Identifier: ({ text }, { hidden, tables, functions }) => {
    const name = nameOf(text)
    const [first = '', second] = name.split('.')
    // `WITH secret AS a SELECT 1 IN a` reads the table `secret`.
    const isAliased = second !== undefined || text.includes(' (alias ')
    if (isAliased && hidden.has(first) && !tables.has(`${first}.${second}`))
      throw new StatementRefused(
        `The name ${name} is not allowed: ${first} is a table or database outside the datasets.`
      )
    if (NILADIC.test(name)) checkFunction(name, functions)
  },
  Function: ({ text, children }, rules) => {
    const name = nameOf(text)
    if (name !== TABLE_FUNCTION) checkFunction(name, rules.functions)
    if (hasComputedType(name, children[0]?.children ?? []))
      throw new StatementRefused(`The type of ${name} is computed; write it as text, such as 'UInt8'.`)
    if (!/(^|[a-z])in(IgnoreSet)?$/i.test(name)) return
    // The right side of IN may name a table.
    const [, right] = children[0]?.children ?? []
    if (right?.type === 'Identifier') checkTable(nameOf(right.text), rules)
  }
}

/** Whether the name of a type is not in the statement: a value could name any type, with the file of a time zone. */
function hasComputedType(name: string, inputs: readonly SyntaxNode[]): boolean {
  const place = TYPE_PLACES.find(({ names }) => names.test(name))?.place
  return place !== undefined && inputs.at(place)?.type !== 'Literal'
}

const TYPE_PLACES = [
  { names: /cast/i, place: 1 },
  { names: /^(dynamic|variant)Element$/, place: 1 },
  { names: /^JSONExtract(KeysAndValues)?(CaseInsensitive)?$/, place: -1 }
]

const TABLE_FUNCTION = 'numbers'
/** Functions that the engine calls without parentheses. */
const NILADIC = /^((current_?|session_)?user|now|today|curdate|current_date|(current|local)_?time(stamp)?)$/i

function checkFunction(name: string, rule: FunctionRule): void {
  const refusal = rule(name)
  if (refusal !== undefined) throw new StatementRefused(refusal)
}

function checkTable(name: string, { tables, hidden }: SelectRules): void {
  if (tables.has(name) || (/^\w+$/.test(name) && !hidden.has(name))) return
  throw new StatementRefused(`The table ${name} is not allowed; allowed are ${[...tables].sort().join(', ')}.`)
}

/** Returns a name without its alias. No function or table of the engine has a blank in its name. */
function nameOf(text: string): string {
  return text.split(' ', 1)[0] ?? ''
}
