import { newerFolds } from './newer-program.js'
import { liesIn, type PlainFold, plainFolds } from './plain-folds.js'
import type { Definition, Row } from './replacing-table.js'
import { baseName, namedOf, plain } from './statement-names.js'
import { answerOf } from './statements.js'
import { liesInSlice, rangeIn, stepIn } from './statements-of-projections.js'
import { INSTANT_COLUMNS, TABLES } from './table-definitions.js'
import { type Machine, TableSet } from './table-set.js'
import { changeTables } from './table-statements.js'
import type { World } from './world.js'

type Parameters = Readonly<Record<string, unknown>>

/** What was done to the tables, in order; played again on the real engine, it must give the same answers. */
export type Played =
  | { readonly kind: 'insert'; readonly table: string; readonly columns: readonly string[]; readonly lines: string }
  | { readonly kind: 'execute'; readonly sql: string; readonly parameters: Parameters }
  | { readonly kind: 'rows'; readonly sql: string; readonly parameters: Parameters; readonly answer: readonly Row[] }

/** Columns that the engine fills by its clock. */
const STAMPS: Readonly<Record<string, string>> = {
  rebuild_owner: 'seen_at',
  parked_message: 'parked_at',
  parked_decision: 'decided_at',
  late_batch: 'stored_at'
}

/** Late events are copied into an event table that a rebuild has loaded. */
const COPY_OF_EVENTS = /^INSERT INTO (event_\w+__\d+) \([^)]*\) SELECT .* FROM (event_\w+) AS e FINAL WHERE/

const MERGED_SHARE = 0.1
const SWAP_RISK = 12

/** ClickHouse as far as the simulator has it: tables in memory, and each statement that is known as a plain function. */
export class Store extends TableSet {
  /** How SQL projections fold; a bug may put another in the place of one. */
  readonly folds: Record<string, PlainFold> = { ...plainFolds, ...newerFolds }
  readonly played: Played[] | undefined

  constructor(
    options: {
      readonly isPlayed?: boolean
      readonly definitions?: Readonly<Record<string, Definition>>
      readonly machine?: Machine
    } = {}
  ) {
    const { machine = { nowMs: () => 0, isFull: () => false } } = options
    super({ ...TABLES, ...options.definitions }, machine)
    this.played = options.isPlayed === true ? [] : undefined
  }

  /** Lines of JSONCompactEachRow. */
  insertLines(table: string, columns: readonly string[], lines: string): void {
    const written = this.written(table)
    const rows = lines
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => ({ ...this.#defaults(baseName(table)), ...rowOf(table, columns, JSON.parse(line)) }))
    this.played?.push({ kind: 'insert', table, columns, lines })
    written.insert(rows)
  }

  /** `share` of the rows alone, where the statement is torn. */
  execute(sql: string, parameters: Parameters, share = 1): void {
    if (changeTables(this, plain(sql), share)) {
      if (share === 1) this.played?.push({ kind: 'execute', sql, parameters })
      return
    }
    const copied = COPY_OF_EVENTS.exec(plain(sql))
    if (copied !== null) {
      const [, into = '', from = ''] = copied
      const range = rangeIn(parameters)
      const events = this.final(from).filter((event) => liesIn(range, event))
      this.written(into).insert(events.slice(0, Math.ceil(events.length * share)))
      if (share === 1) this.played?.push({ kind: 'execute', sql, parameters })
      return
    }
    const named = namedOf(sql)
    const projection = stepIn(named.text, parameters)
    if (projection === undefined) throw new Error(`The simulated tables do not know this statement: ${sql}`)
    const fold = this.folds[projection.select] ?? this.folds[projection.name]
    if (fold === undefined) throw new Error(`${projection.name} has no plain fold; add it to plain-folds.ts.`)
    const range = rangeIn(parameters)
    const seen = this.seenAs(named)
    const events = seen
      .table(`event_${projection.from.name.replaceAll('-', '_')}`)
      .rows.filter((event) => liesIn(range, event) && liesInSlice(event, parameters))
    const rows = fold({ events, final: (table) => seen.final(table) })
    this.written(named.into).insert(rows.slice(0, Math.ceil(rows.length * share)))
    if (share === 1) this.played?.push({ kind: 'execute', sql, parameters })
  }

  rows(sql: string, parameters: Parameters = {}): Row[] {
    const { rows, isOfMachine } = answerOf(this, sql, parameters)
    if (!isOfMachine) this.played?.push({ kind: 'rows', sql, parameters, answer: rows })
    return rows
  }

  /** Values that the engine fills in. */
  #defaults(table: string): Row {
    const column = STAMPS[table]
    return column === undefined ? {} : { [column]: this.machine.nowMs() }
  }
}

/** The tables, as a process reaches them over the network. */
export function tablesOver(world: World, store: Store) {
  return {
    execute: (sql: string, parameters: Parameters = {}) =>
      world.call('tables', {
        what: /INTO (\w+)/.test(sql) ? `statement into ${/INTO (\w+)/.exec(sql)?.[1]}` : plain(sql).slice(0, 90),
        done: () => store.execute(sql, parameters),
        torn: () => store.execute(sql, parameters, world.chance.number()),
        takesSpace: !sql.startsWith('DROP'),
        risk: sql.startsWith('EXCHANGE') ? SWAP_RISK : 1
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
        takesSpace: true
      })
    }
  }
}

/** A reader's own look at the tables: not SQL, but what a query would find. */
export function lookUp<Result>(world: World, store: Store, what: string, look: (store: Store) => Result) {
  return world.call('tables', { what: `reads ${what}`, done: () => look(store) })
}

function sourceOf(sql: string): string {
  return /FROM\s+([a-z]\w*)/.exec(sql)?.[1] ?? 'tables'
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
  const state = /\\"state\\":\\"([\w-]+)/.exec(first)?.[1]
  return state === undefined ? first.slice(0, 90) : `${first.slice(0, 50)} … ${state}`
}

function rowOf(table: string, columns: readonly string[], values: readonly unknown[]): Row {
  const row: Record<string, unknown> = {}
  for (const [n, column] of columns.entries()) {
    row[column] = INSTANT_COLUMNS.has(column) ? msOf(values[n]) : values[n]
  }
  if (baseName(table).startsWith('event_')) row.position = Number(row.epoch) * 2 ** 48 + Number(row.offset)
  return row
}

function msOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(msOf)
  return typeof value === 'string' ? Date.parse(`${value.replace(' ', 'T')}Z`) : value
}
