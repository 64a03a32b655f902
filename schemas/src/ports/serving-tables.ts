import { errorCode } from '../values/error-message.js'
import type { AbortOptions, Parameters, ReadTables } from './read-tables.js'

/*
 * A statement names a table of events or answers by a parameter, `{title_count: Identifier}`: rebuilds fill further
 * generations of the table, `title_count__7`, and a pointer says which of them is read.
 */

/** Which generation of each table is read, at one instant. It never changes. */
export type ServingTables = {
  /** Returns the engine's name of a table: `title_count__7`. */
  nameOf(table: string): string
  /** Returns the engine's name of the checkpoint of the reader that fills tables: `project:title-count__7`. */
  checkpointOf(reader: string): string
  /**
   * Rises with each change of the generation that is read of a projection, except one that corrects a single key, which
   * is announced as a change of that key; 0 before the first one.
   */
  counterOf(projection: string): number
  /** Never falls: instants with the same one read the same tables. */
  readonly counter: number
}

/** The position of a reader in a partition of the log: everything before `next` is in its tables. */
export type ReaderPosition = {
  /** `loadCheckpoint` or `projectionCheckpoint`. */
  readonly name: string
  readonly epoch: number
  readonly partition: number
  readonly next: number
}

/** Reads the positions of readers in the generations that are read at an instant. */
export type ReadPositions = (serving: ServingTables, names: readonly string[]) => Promise<readonly ReaderPosition[]>

/** The first generation of every table. */
export const FIRST_GENERATION: ServingTables = {
  nameOf: (table) => generationName(table, 0),
  checkpointOf: (reader) => reader,
  counterOf: () => 0,
  counter: 0
}

/** ClickHouse's code UNKNOWN_TABLE. */
const UNKNOWN_TABLE = '60'

/** Whether a statement met a table that is dropped: its names are those of an earlier instant. */
export const isTableDropped = (error: unknown): boolean => errorCode(error) === UNKNOWN_TABLE

/**
 * Resolves with what `read` reads; calls it again, with newer tables, when a statement met a table that was dropped
 * after a swap.
 */
export async function retryDropped<Result>(
  versions: { refreshDropped(): Promise<void> },
  read: () => Promise<Result>
): Promise<Result> {
  try {
    return await read()
  } catch (error) {
    if (!isTableDropped(error)) throw error
    await versions.refreshDropped()
    return await read()
  }
}

/** Returns the engine's name of a generation of a table. */
export const generationName = (table: string, generation: number): string => `${table}__${generation}`

/** Returns the tables that a statement names by parameters. */
export function tablesIn(sql: string): string[] {
  return [...new Set([...sql.matchAll(/\{(\w+): Identifier\}/g)].map(([, table = '']) => table))]
}

/** Returns the parameters of a statement together with the names of its tables. */
export function withTableNames(sql: string, parameters: Parameters, nameOf: (table: string) => string): Parameters {
  const names = tablesIn(sql).map((table) => [table, nameOf(table)] as const)
  return names.length === 0 ? parameters : { ...parameters, ...Object.fromEntries(names) }
}

/** Returns the queries of an engine with the table names of one instant. */
export function withServing<Tables extends ReadTables>(tables: Tables, { nameOf }: ServingTables): Tables {
  const bind =
    <Result>(query: (sql: string, parameters: Parameters, options?: AbortOptions) => Promise<Result>) =>
    (sql: string, parameters: Parameters = {}, options?: AbortOptions) =>
      query(sql, withTableNames(sql, parameters, nameOf), options)
  const bound: Record<string, unknown> = {}
  for (const name of ['rows', 'json', 'stream'] as const) {
    const query = (tables as Record<string, unknown>)[name]
    if (typeof query === 'function') bound[name] = bind((...given) => query.apply(tables, given))
  }
  return { ...tables, ...bound }
}
