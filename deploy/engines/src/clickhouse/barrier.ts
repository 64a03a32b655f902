import { backoffMs, pause, Refusal } from '@gamenet/schemas'
import { ClickHouseError, type Parameters } from './clickhouse.js'
import { codeOf, stringLiteral } from './parameters.js'
import { REPLICA_READ_SETTINGS, type Settings, SHARED_READ_SETTINGS } from './statement.js'

/*
 * replica   one of several servers that hold the same tables. What one has acknowledged reaches the others later, and
 *           table by table: a checkpoint may be there before its rows
 * barrier   the wait until this replica has all rows of some tables that any replica has acknowledged before
 */

/** Runs a statement, and returns its answer in TSV. */
type Ask = (text: string, settings?: Settings) => Promise<Uint8Array>

export type Barrier = {
  /** Resolves with the name of the database if it replicates its tables. */
  database(): Promise<string | undefined>
  /** Resolves with the settings by which statements see what other replicas have acknowledged. */
  reads(): Promise<Settings>
  /** Waits for what a statement reads. */
  before(sql: string, parameters: Parameters): Promise<void>
  /** Waits for tables. */
  sync(tables: readonly string[]): Promise<void>
  /** Waits for all tables. */
  syncAll(): Promise<void>
}

/** A replica that needs longer lags: its caller tries again later. */
const SYNC_SECONDS = 30
const LAG_RETRY_SECONDS = 5

const BAD_ARGUMENTS = 36
const UNKNOWN_TABLE = 60
const TIMEOUT_EXCEEDED = 159
const TABLE_IS_READ_ONLY = 242

/** A table is read-only until its replica has started it, some milliseconds after another one has created it. */
const STARTING = { firstMs: 50, maxMs: 1000 }
const STARTS_MAX = 10

/** The barrier of a server. On one whose database does not replicate, it is nothing. */
export const barrierOf = (ask: Ask): Barrier => {
  const wait = async (what: string, table?: string): Promise<void> => {
    for (let tries = 1; ; tries += 1) {
      try {
        return void (await ask(`SYSTEM SYNC ${what}`, { receive_timeout: SYNC_SECONDS }))
      } catch (error) {
        const code = codeOfError(error)
        const isStarting = code === TABLE_IS_READ_ONLY && tries < STARTS_MAX
        if (!isStarting && code !== TIMEOUT_EXCEEDED && code !== TABLE_IS_READ_ONLY) throw error
        if (!isStarting) throw await lagOf(ask, table, error)
        await pause(backoffMs(STARTING, tries))
      }
    }
  }
  let known: Promise<Database> | undefined
  const current = () => {
    known ??= currentDatabase(ask).catch((error: unknown) => {
      known = undefined
      throw error
    })
    return known
  }
  const database = async () => {
    const { name, engine } = await current()
    return engine === 'Replicated' ? name : undefined
  }
  /** The tables that views read. A view of a name is never replaced by another one that reads other tables. */
  const views = new Map<string, readonly string[]>()
  const syncTable = async (table: string): Promise<void> => {
    const read = views.get(table)
    if (read !== undefined) return void (await Promise.all(read.map(syncTable)))
    try {
      await wait(`REPLICA ${table} LIGHTWEIGHT`, table)
    } catch (error) {
      if (codeOfError(error) !== BAD_ARGUMENTS) throw error
      const select = await ask(
        `SELECT t.as_select FROM system.tables AS t
         WHERE t.database = currentDatabase() AND t.name = ${stringLiteral(table)} FORMAT TSVRaw`
      )
      views.set(table, tablesIn(textOf(select), {}))
      await syncTable(table)
    }
  }
  const syncKnown = async (table: string, name: string): Promise<void> => {
    try {
      await syncTable(table)
    } catch (error) {
      if (codeOfError(error) !== UNKNOWN_TABLE) throw error
      // Another replica may have created it. One that is dropped is an error of the statement.
      await wait(`DATABASE REPLICA ${name}`)
      await syncTable(table).catch((again: unknown) => {
        if (codeOfError(again) !== UNKNOWN_TABLE) throw again
      })
    }
  }
  const sync = async (tables: readonly string[]): Promise<void> => {
    const name = await database()
    if (name !== undefined) await Promise.all([...new Set(tables)].map((table) => syncKnown(table, name)))
  }
  return {
    database,
    reads: async () => {
      const { engine } = await current()
      return engine === 'Replicated' ? REPLICA_READ_SETTINGS : engine === 'Shared' ? SHARED_READ_SETTINGS : {}
    },
    sync,
    syncAll: async () => {
      const name = await database()
      if (name === undefined) return
      await wait(`DATABASE REPLICA ${name}`)
      const tables = await ask(
        `SELECT t.name FROM system.tables AS t WHERE t.database = currentDatabase() AND t.engine LIKE '%MergeTree'`
      )
      await sync(
        textOf(tables)
          .split('\n')
          .filter((table) => table !== '')
      )
    },
    before: async (sql, parameters) => {
      const name = await database()
      if (name === undefined) return
      if (isOfTables(sql)) await wait(`DATABASE REPLICA ${name}`)
      await sync(tablesIn(sql, parameters))
    }
  }
}

type Database = { readonly name: string; readonly engine: string }

const currentDatabase = async (ask: Ask): Promise<Database> => {
  const found = await ask('SELECT d.name, d.engine FROM system.databases AS d WHERE d.name = currentDatabase()')
  const [name = '', engine = ''] = textOf(found).split('\t')
  return { name, engine }
}

const codeOfError = (error: unknown): number | undefined => (error instanceof ClickHouseError ? error.code : undefined)

/** Statements whose answer depends on which tables exist: DDL, and reads of the engine's lists. */
const isOfTables = (sql: string): boolean =>
  !/^[\s(]*(INSERT|SELECT|WITH|DELETE|SYSTEM|KILL)\b/i.test(sql) || /\bsystem\.(tables|columns)\b/.test(sql)

/** Returns the tables that a statement reads: those of its parameters, and those that its text names. */
export const tablesIn = (sql: string, parameters: Parameters): string[] => {
  const code = codeOf(sql)
  const own = new Set([...code.matchAll(/\b(\w+) AS \(/g)].map(([, name]) => name))
  const named = [...code.matchAll(/\b(?:FROM|JOIN)\s+(?:(?!system\.)\w+\.)?(\w+)(?![\w.(])/g)].map(
    ([, name = '']) => name
  )
  const bound = [...code.matchAll(/\{(\w+): Identifier\}/g)].map(([, name = '']) => String(parameters[name]))
  return [...new Set([...named.filter((name) => !own.has(name)), ...bound])]
}

/** Names what the replica lacks: it is late, and the statement is not wrong. */
const lagOf = async (ask: Ask, table: string | undefined, cause: unknown): Promise<Refusal> => {
  const lacks = await ask(
    `SELECT q.new_part_name, q.replica_name, q.source_replica FROM system.replication_queue AS q
     WHERE q.database = currentDatabase() AND q.table = ${stringLiteral(table ?? '')} ORDER BY q.create_time LIMIT 1`
  ).then(textOf, () => '')
  const [part = '', replica = '', source = ''] = lacks.split('\t')
  const sentence =
    table === undefined
      ? `The database lacks changes of its tables that another replica has made, after ${SYNC_SECONDS} s.`
      : codeOfError(cause) === TABLE_IS_READ_ONLY
        ? `Table ${table} is read-only: this replica has no ZooKeeper or Keeper.`
        : `Table ${table} of replica ${replica} lacks part ${part} of replica ${source} after ${SYNC_SECONDS} s.`
  const late = new ClickHouseError(sentence, { code: codeOfError(cause), cause })
  return new Refusal('engine_away', ['The tables'], { retryAfterSeconds: LAG_RETRY_SECONDS, cause: late })
}

const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes).trim()
