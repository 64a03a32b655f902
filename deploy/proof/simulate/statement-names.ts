/** A statement by what it says, whatever its tables are called. */
export type Named = {
  /** Its text with the tables' own names and single spaces. */
  readonly text: string
  /** The table that it writes; empty where it writes none. */
  readonly into: string
  /** What it calls the table that it reads in the place of another. */
  nameOf(table: string): string
}

/** The names of tables of rebuilds. */
const RENAMED = /\b([a-z][a-z_]*[a-z])__(\d+(?:_live)?|sample_[0-9a-f]{8})\b/g

export function namedOf(sql: string): Named {
  const names = new Map<string, string>()
  for (const [, name = ''] of sql.matchAll(/\b(?:FROM|JOIN)\s+([a-z]\w*)/g)) {
    if (baseName(name) !== name) names.set(baseName(name), name)
  }
  return {
    text: plain(baseName(sql)),
    into: /\bINTO (\w+)/.exec(sql)?.[1] ?? '',
    nameOf: (table) => names.get(table) ?? table
  }
}

/** Replaces names of tables of rebuilds by the names of the tables that they copy. */
export function baseName(text: string): string {
  return text.replaceAll(RENAMED, '$1')
}

export function plain(sql: string): string {
  return sql.replaceAll(/\s+/g, ' ').trim()
}
