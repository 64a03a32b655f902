import {
  nameIn,
  type Operation,
  type Pointers,
  type RowBlock,
  readRows,
  type Store,
  type StoreView
} from '@gamenet/projector/internals'
import { generationName, tablesIn } from '@gamenet/schemas'
import { Chance } from './chance.js'
import { bookkeeping, pointersIn } from './operations/bookkeeping.js'
import type { AnyOperation, Implementation, Seen } from './operations/implementation.js'
import { messages } from './operations/messages.js'
import { queries } from './operations/queries.js'
import { steps } from './operations/steps.js'
import { tables } from './operations/tables.js'
import { userRows } from './operations/user-rows.js'
import { BOOKKEEPING, TABLES } from './table-definitions.js'
import { newerFolds } from './tables/newer-program.js'
import { type PlainFold, plainFolds } from './tables/plain-folds.js'
import type { Definition, Row } from './tables/replacing-table.js'
import { Replicas } from './tables/replica.js'
import { baseName, type Machine, TableSet } from './tables/table-set.js'
import type { Life } from './virtual-time.js'
import type { World } from './world.js'

type Parameters = Readonly<Record<string, unknown>>

/** An executed operation or query. Repeated in order on the real engine, they must give the same answers. */
export type Played =
  | {
      readonly kind: Implementation['kind']
      readonly operation: AnyOperation
      readonly view: StoreView
      readonly input: readonly unknown[]
      readonly answer: unknown
      readonly isOfMachine: boolean
    }
  | { readonly kind: 'query'; readonly sql: string; readonly parameters: Parameters; readonly answer: readonly Row[] }
  | { readonly kind: 'block'; readonly table: string; readonly block: RowBlock }

/** Columns that the engine fills from its clock. */
const STAMPS: Readonly<Record<string, string>> = {
  rebuild_owner: 'seen_at',
  dead_letter: 'stored_at',
  dead_letter_decision: 'decided_at',
  late_batch: 'stored_at'
}

const MERGED_SHARE = 0.1

const implementations: ReadonlyMap<AnyOperation, Implementation> = new Map(
  [...bookkeeping, ...messages, ...steps, ...tables, ...userRows].map((each) => [each.operation, each])
)

function implementationOf(operation: AnyOperation): Implementation {
  const found = implementations.get(operation)
  if (found === undefined) throw new Error(`The simulator does not know the operation "${operation.name}".`)
  return found
}

/** The simulated ClickHouse: tables in memory, and each known operation as a plain function. */
export class Tables extends TableSet {
  /** The plain folds of SQL projections; a bug may replace one. */
  readonly folds: Record<string, PlainFold> = { ...plainFolds, ...newerFolds }
  readonly played: Played[] | undefined
  readonly replicas: Replicas
  /** Called after an operation was executed. */
  onDone: (operation: AnyOperation, view: StoreView, input: readonly unknown[]) => void = () => undefined

  constructor(
    options: {
      readonly isPlayed?: boolean
      readonly definitions?: Readonly<Record<string, Definition>>
      readonly machine?: Machine
      readonly lags?: Chance
    } = {}
  ) {
    const { machine = { nowMs: () => 0, isFull: () => false, runningInserts: () => [] } } = options
    const ofGenerations = Object.entries({ ...TABLES, ...options.definitions })
    const first = ofGenerations.map(([name, definition]) => [generationName(name, 0), definition] as const)
    super({ ...BOOKKEEPING, ...Object.fromEntries(first) }, machine)
    this.played = options.isPlayed === true ? [] : undefined
    this.replicas = new Replicas(this, options.lags ?? new Chance(0))
  }

  /** The current pointers. */
  get pointers(): Pointers {
    return pointersIn(this)
  }

  /** Returns the rows of the generation of a table that answers read. */
  served(table: string): Row[] {
    return this.final(this.pointers.serving.nameOf(table))
  }

  /** Executes an operation, or a `share` of it. */
  execute(operation: AnyOperation, view: StoreView, input: readonly unknown[], share = 1, server?: Server): unknown {
    const { kind, run, isOfMachine = () => true } = implementationOf(operation)
    const answer = run(this.#seen(view, server), input, share)
    this.onDone(operation, view, input)
    if (share === 1) this.played?.push({ kind, operation, view, input, answer, isOfMachine: isOfMachine(input) })
    return answer
  }

  /** Answers a query. */
  rows(sql: string, parameters: Parameters = {}, replica?: number): Row[] {
    const query = queries.get(sql)
    if (query === undefined) throw new Error(`The simulator does not know this query: ${sql}`)
    const named = (name: string) => String(parameters[name] ?? name)
    for (const name of tablesIn(sql)) if (parameters[name] === undefined) throw new Error(`{${name}} has no name`)
    const table = (name: string) => this.replicas.table(named(name), replica)
    const answer = query({ table, final: (name: string) => table(name).final() }, parameters)
    this.played?.push({ kind: 'query', sql, parameters, answer })
    return answer
  }

  insertBlock(table: string, block: RowBlock): void {
    this.#insertBlock(table, block)
    this.played?.push({ kind: 'block', table, block })
  }

  #seen({ names = new Map(), targets = names }: StoreView, { replica, isSynced }: Server = {}): Seen {
    const source = (name: string) => names.get(name) ?? name
    const table = (name: string) => {
      if (isSynced === true) this.replicas.sync(source(name), replica)
      return this.replicas.table(source(name), replica)
    }
    const target = (name: string) => targets.get(name) ?? name
    return {
      machine: this.machine,
      tables: this,
      folds: this.folds,
      source,
      nameOf: nameIn(names),
      target,
      table,
      final: (name) => table(name).final(),
      written: (name) => {
        this.replicas.syncAll(target(name))
        return this.written(target(name))
      },
      insert: (name, rows) => this.#insert(target(name), rows, replica),
      insertBlock: (name, block) => this.#insertBlock(target(name), block, replica)
    }
  }

  #insertBlock(table: string, block: RowBlock, replica?: number): void {
    const rows = readRows(block).rows.map((row) => rowOf(table, row))
    this.#insert(table, rows, replica)
  }

  #insert(table: string, rows: readonly Row[], replica?: number): void {
    const column = STAMPS[baseName(table)]
    const stamp = column === undefined ? {} : { [column]: this.machine.nowMs() }
    const stamped = rows.map((row) => ({ ...stamp, ...row }))
    this.replicas.insert(table, stamped, replica)
  }
}

/** The replica that executes an operation; `isSynced`: behind the barrier of the tables that it reads. */
type Server = { readonly replica?: number | undefined; readonly isSynced?: boolean }

/** Processes speak to one replica for their life, two of a role mostly to different ones. */
function replicaOf({ name }: Life): number {
  const [process = '', life = '0'] = name.split(/[./]/)
  return (Number(life) + (process.endsWith('-b') ? 1 : 0)) % 2
}

/**
 * Executes operations over the network, as a process does.
 * @param isSynced false for the reads of answers, which call `sync` themselves
 */
export function storeIn(world: World, tables: Tables, view: StoreView = {}, isSynced = true): Store {
  const call = (operation: AnyOperation, input: readonly unknown[]): Promise<unknown> => {
    const { kind, cut, risk = 1, freesSpace = false } = implementationOf(operation)
    const server = { replica: replicaOf(world.time.current), isSynced }
    const done = () => {
      const answer = tables.execute(operation, view, input, 1, server)
      if (kind === 'insert' && world.chance.happens(MERGED_SHARE)) tables.merge()
      return answer
    }
    const torn = () => {
      const share = world.chance.number()
      if (kind === 'statement') tables.execute(operation, view, input, share, server)
      const left = kind === 'insert' ? cut?.(input, share) : undefined
      if (left !== undefined) tables.execute(operation, view, left, 1, server)
    }
    const what = `${operation.name} ${detailsOf(view, input)}`
    if (kind === 'read') return world.call('tables', { what, done })
    return world.call('tables', { what, done, torn, takesSpace: !freesSpace, risk, isWriting: true })
  }
  return {
    do: <Input extends readonly unknown[], Result>(operation: Operation<Input, Result>, ...input: Input) =>
      call(operation, input) as Promise<Result>,
    sync: async (names) => {
      for (const name of names) tables.replicas.sync(name, replicaOf(world.time.current))
    },
    with: (more) => storeIn(world, tables, { ...view, ...more }, isSynced)
  }
}

/** Executes operations directly. */
export function storeAtOnce(tables: Tables, view: StoreView = {}): Store {
  return {
    do: async <Input extends readonly unknown[], Result>(operation: Operation<Input, Result>, ...input: Input) =>
      tables.execute(operation, view, input) as Result,
    sync: async () => undefined,
    with: (more) => storeAtOnce(tables, { ...view, ...more })
  }
}

/** The tables for queries of answers and of ingest, over the network. */
export function queriesIn(world: World, tables: Tables) {
  const rows = (sql: string, parameters: Parameters = {}): Promise<Record<string, unknown>[]> => {
    const replica = replicaOf(world.time.current)
    return world.call('tables', { what: 'queries tables', done: () => tables.rows(sql, parameters, replica) })
  }
  return {
    rows,
    json: async (sql: string, parameters: Parameters = {}): Promise<Uint8Array> =>
      new TextEncoder().encode(JSON.stringify(await rows(sql, parameters)))
  }
}

/** Reads the rows of a table directly, without SQL. */
export function lookUp<Result>(world: World, tables: Tables, table: string, look: (rows: Row[]) => Result) {
  const replica = replicaOf(world.time.current)
  const done = () => look(tables.replicas.table(table, replica).final())
  return world.call('tables', { what: `reads ${table}`, done })
}

/** Details for traces: names and numbers, the state of a rebuild, and generations other than the first. */
function detailsOf({ names = new Map() }: StoreView, input: readonly unknown[]): string {
  const texts = input.flatMap((each) => {
    if (typeof each === 'number') return [String(each)]
    if (typeof each === 'string') return [/"state":"([\w-]+)/.exec(each)?.[1] ?? each.slice(0, 60)]
    const { name, range } = (each ?? {}) as { readonly name?: unknown; readonly range?: unknown }
    return [...(typeof name === 'string' ? [name] : []), ...[each, range].filter(Array.isArray).map(placesOf)]
  })
  const later = [...names.values()].filter((name) => !name.endsWith('__0') && !name.includes(':'))
  return [...texts, ...(later.length === 0 ? [] : [`with ${later.join(' ')}`])].join(' ')
}

/** The positions of checkpoints and ranges: partition, and offsets. */
function placesOf(list: readonly unknown[]): string {
  const places = list as readonly { name?: string; partition?: number; first?: number; next?: number }[]
  return places
    .filter(({ next }) => next !== undefined)
    .map(({ name = '', partition, first = '', next }) => `${name}/${partition}:${first}-${next}`)
    .join(' ')
}

function rowOf(table: string, row: Row): Row {
  if (!baseName(table).startsWith('event_')) return row
  return { ...row, position: Number(row.epoch) * 2 ** 48 + Number(row.offset) }
}
