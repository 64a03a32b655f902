import { codeOf } from '../clickhouse/parameters.js'

/*
 * What drivers and dashboards ask before a person does: who the server is, which tables and columns it has. The answers are about
 * the views alone; clients ask in the words for the engine's own.
 */

/** Views of the database `catalog`, in place of tables of `system`. */
export const CATALOG: Readonly<Record<string, string>> = {
  databases: `SELECT d.name AS name, d.engine AS engine, d.comment AS comment FROM system.databases AS d WHERE d.name = 'default'`,
  tables: `SELECT t.database AS database, t.name AS name, t.engine AS engine, t.comment AS comment, t.total_rows AS total_rows,
    t.is_temporary AS is_temporary, t.primary_key AS primary_key, []::Array(String) AS data_paths FROM system.tables AS t WHERE t.database = 'default'`,
  columns: `SELECT c.database AS database, c.table AS table, c.name AS name, c.type AS type, c.position AS position,
    c.default_kind AS default_kind, c.default_expression AS default_expression, c.comment AS comment,
    c.character_octet_length AS character_octet_length, c.numeric_precision AS numeric_precision,
    c.numeric_precision_radix AS numeric_precision_radix, c.numeric_scale AS numeric_scale
    FROM system.columns AS c WHERE c.database = 'default'`,
  settings: `SELECT '' AS name, '' AS value, toUInt8(0) AS changed, '' AS description, '' AS type, toUInt8(1) AS readonly WHERE 0`
}

/** Functions whose values would show the machine's name or user. */
const FUNCTIONS: Readonly<Record<string, string>> = { displayName: `'gamenet'`, currentUser: `'analyst'` }

/** Statements other than SELECT. */
const LISTS: readonly (readonly [RegExp, string])[] = [
  [/^\s*SHOW\s+DATABASES[\s;]*$/i, 'SELECT name FROM catalog.databases'],
  [/^\s*SHOW\s+TABLES(\s+(FROM|IN)\s+[`"]?default[`"]?)?[\s;]*$/i, 'SELECT name FROM catalog.tables ORDER BY name'],
  [
    /^\s*DESC(RIBE)?\s+(TABLE\s+)?([`"]?default[`"]?\.)?[`"]?(?<table>\w+)[`"]?[\s;]*$/i,
    `SELECT name, type, default_kind AS default_type, default_expression, comment, '' AS codec_expression, '' AS ttl_expression
     FROM catalog.columns WHERE table = '$<table>' ORDER BY position`
  ]
]

const NAMES = new RegExp(
  `\\bsystem\\.(?<table>${Object.keys(CATALOG).join('|')})\\b|\\b(?<name>${Object.keys(FUNCTIONS).join('|')})\\s*\\(\\s*\\)`,
  'gi'
)

/** Returns a statement that reads the catalog instead. The check comes afterwards, so a wrong place is refused or harmless. */
export function withCatalog(statement: string): string {
  const list = LISTS.find(([pattern]) => pattern.test(statement))
  if (list !== undefined) return statement.replace(...list)
  let text = ''
  let end = 0
  for (const { index, 0: found, groups = {} } of codeOf(statement).matchAll(NAMES)) {
    const { table, name = '' } = groups
    text += statement.slice(end, index)
    text += table === undefined ? (FUNCTIONS[name] ?? found) : `catalog.${table.toLowerCase()}`
    end = index + found.length
  }
  return text + statement.slice(end)
}
