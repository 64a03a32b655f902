import { liesIn, type PlainFold, plainFolds } from './plain-folds.js'
import { type Definition, ReplacingTable, type Row } from './replacing-table.js'
import { answerOf } from './statements.js'
import { rangeIn, stepIn } from './statements-of-projections.js'
import { INSTANT_COLUMNS, TABLES } from './table-definitions.js'
import type { World } from './world.js'

type Parameters = Readonly<Record<string, unknown>>

/** What was done to the tables, in order; played again on the real engine, it must give the same answers. */
export type Played =
  | { readonly kind: 'insert'; readonly table: string; readonly columns: readonly string[]; readonly lines: string }
  | { readonly kind: 'execute'; readonly sql: string; readonly parameters: Parameters }
  | { readonly kind: 'rows'; readonly sql: string; readonly parameters: Parameters; readonly answer: readonly Row[] }

const MERGED_SHARE = 0.1

/** ClickHouse as far as the simulator has it: tables in memory, and each statement that is known as a plain function. */
export class Store {
  readonly tables: ReadonlyMap<string, ReplacingTable>
  /** How SQL projections fold; a bug may put another in the place of one. */
  readonly folds: Record<string, PlainFold> = { ...plainFolds }
  readonly played: Played[] | undefined

  constructor(
    options: { readonly isPlayed?: boolean; readonly definitions?: Readonly<Record<string, Definition>> } = {}
  ) {
    const definitions = { ...TABLES, ...options.definitions }
    this.tables = new Map(
      Object.entries(definitions).map(([name, definition]) => [name, new ReplacingTable(definition)])
    )
    this.played = options.isPlayed === true ? [] : undefined
  }

  table(name: string): ReplacingTable {
    const table = this.tables.get(name)
    if (table === undefined) throw new Error(`The simulated tables have no ${name}; add it to table-definitions.ts.`)
    return table
  }

  final(table: string): Row[] {
    return this.table(table).final()
  }

  /** Lines of JSONCompactEachRow. */
  insertLines(table: string, columns: readonly string[], lines: string): void {
    const rows = lines
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => rowOf(table, columns, JSON.parse(line)))
    this.played?.push({ kind: 'insert', table, columns, lines })
    this.table(table).insert(rows)
  }

  /** `share` of the rows alone, where the statement is torn. */
  execute(sql: string, parameters: Parameters, share = 1): void {
    const projection = stepIn(sql, parameters)
    if (projection === undefined) throw new Error(`The simulated tables do not know this statement: ${sql}`)
    const fold = this.folds[projection.name]
    if (fold === undefined) throw new Error(`${projection.name} has no plain fold; add it to plain-folds.ts.`)
    const range = rangeIn(parameters)
    const from = `event_${projection.from.name.replaceAll('-', '_')}`
    const events = this.table(from).rows.filter((event) => liesIn(range, event))
    const rows = fold({ events, final: (table) => this.final(table) })
    this.table(projection.into).insert(rows.slice(0, Math.ceil(rows.length * share)))
    if (share === 1) this.played?.push({ kind: 'execute', sql, parameters })
  }

  rows(sql: string, parameters: Parameters = {}): Row[] {
    const answer = answerOf(this, sql, parameters)
    this.played?.push({ kind: 'rows', sql, parameters, answer })
    return answer
  }

  merge(): void {
    for (const table of this.tables.values()) table.merge()
  }
}

/** What a process asks of the tables, over the network. */
export function tablesOver(world: World, store: Store) {
  return {
    execute: (sql: string, parameters: Parameters = {}) =>
      world.call('tables', {
        what: `statement into ${/INTO (\w+)/.exec(sql)?.[1]}`,
        done: () => store.execute(sql, parameters),
        torn: () => store.execute(sql, parameters, world.chance.number()),
        takesRoom: true
      }),
    rows: (sql: string, parameters: Parameters = {}): Promise<Record<string, unknown>[]> =>
      world.call('tables', { what: `reads ${sourceOf(sql)}`, done: () => store.rows(sql, parameters) }),
    json: (sql: string, parameters: Parameters = {}): Promise<Uint8Array> =>
      world.call('tables', {
        what: `reads ${sourceOf(sql)}`,
        done: () => new TextEncoder().encode(JSON.stringify(store.rows(sql, parameters)))
      }),
    insert: (table: string, columns: readonly string[], body: Uint8Array): Promise<void> => {
      const lines = new TextDecoder().decode(body)
      return world.call('tables', {
        what: `insert of ${lines.split('\n').length - 1} into ${table} ${brief(lines)}`,
        done: () => {
          store.insertLines(table, columns, lines)
          if (world.chance.happens(MERGED_SHARE)) store.merge()
        },
        torn: () => store.insertLines(table, columns, partOf(lines, world.chance.number())),
        takesRoom: true
      })
    }
  }
}

/** A reader's own look at the tables: not SQL, but what a query would find. */
export function lookUp<Result>(world: World, store: Store, what: string, look: (store: Store) => Result) {
  return world.call('tables', { what: `reads ${what}`, done: () => look(store) })
}

function sourceOf(sql: string): string {
  return /FROM\s+([a-z_]+)/.exec(sql)?.[1] ?? 'tables'
}

function partOf(lines: string, share: number): string {
  const all = lines.split('\n').slice(0, -1)
  return all
    .slice(0, Math.floor(all.length * share))
    .map((line) => `${line}\n`)
    .join('')
}

function brief(lines: string): string {
  const [first = ''] = lines.split('\n')
  return first.slice(0, 90)
}

function rowOf(table: string, columns: readonly string[], values: readonly unknown[]): Row {
  const row: Record<string, unknown> = {}
  for (const [n, column] of columns.entries()) {
    row[column] = INSTANT_COLUMNS.has(column) ? msOf(values[n]) : values[n]
  }
  if (table.startsWith('event_')) row.position = Number(row.epoch) * 2 ** 48 + Number(row.offset)
  return row
}

function msOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(msOf)
  return typeof value === 'string' ? Date.parse(`${value.replace(' ', 'T')}Z`) : value
}
