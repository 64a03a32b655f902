import { accessSync, constants, mkdirSync } from 'node:fs'
import { PGlite } from '@electric-sql/pglite'
import type { Postgres, Queries } from './postgres.js'

const INT8 = 20

/**
 * PostgreSQL in this process, on a directory that is made when absent. It runs without fsync: what is committed
 * outlives the end of the process, not a loss of power. Rejects with one sentence when the directory cannot be used.
 */
export const openPglite = async (options: { readonly dir: string }): Promise<Postgres> => {
  const database = await open(options.dir)
  const queries = (target: Pick<PGlite, 'query' | 'exec'>): Queries => ({
    query: async <Row extends Record<string, unknown>>(sql: string, values: readonly unknown[] = []) =>
      (await target.query<Row>(sql, [...values])).rows,
    script: async (sql) => {
      await target.exec(sql)
    }
  })
  let closing: Promise<void> | undefined
  return {
    ...queries(database),
    transaction: (work) => database.transaction((transaction) => work(queries(transaction))),
    check: async () => {
      await database.query('SELECT 1')
    },
    close: () => {
      closing ??= database.close()
      return closing
    }
  }
}

const open = async (dir: string): Promise<PGlite> => {
  try {
    mkdirSync(dir, { recursive: true })
    accessSync(dir, constants.W_OK)
    // The server's driver gives bigint as a string too.
    return await PGlite.create({ dataDir: dir, parsers: { [INT8]: (text: string) => text } })
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`The PostgreSQL directory ${dir} cannot be opened: ${text.replace(/\s+/g, ' ').slice(0, 300)}`, {
      cause
    })
  }
}
