import { parentPort } from 'node:worker_threads'
import type { PGlite, Transaction } from '@electric-sql/pglite'
import { amcheck } from '@electric-sql/pglite/contrib/amcheck'
import { openCalls } from '@gamenet/schemas/threads'
import { layEmptyCluster } from './empty-cluster.js'
import { openFlushing } from './flushing-files.js'
import { upkeep } from './pglite-upkeep.js'

/*
 * The thread of an embedded PostgreSQL. PGlite runs a statement to its end without yielding: on a server's thread, it
 * would block all other requests. It imports no schemas, which would take a fifth of its start.
 */

/** The methods of the thread. `transaction` is the number of an open transaction. */
export type PgliteThread = {
  open(dir: string): Promise<void>
  query(sql: string, values: readonly unknown[], transaction: number | undefined): Promise<readonly unknown[]>
  script(sql: string, transaction: number | undefined): Promise<void>
  begin(transaction: number): Promise<void>
  end(transaction: number, isCommitted: boolean): Promise<void>
  listen(listener: number, channel: string): Promise<void>
  unlisten(listener: number): Promise<void>
  upkeep(): Promise<void>
  close(): Promise<void>
}

/** The methods that the thread calls. */
export type PgliteHost = {
  /** PostgreSQL ends itself. */
  shut(reason: string): void
  /** Passes on a notification. */
  publish(listener: number, payload: string): void
}

const INT8 = 20

/**
 * Tables and indexes are visible although the transactions that created them count as aborted: PostgreSQL has noted in
 * the rows that they were committed. Rows that it has not read since they were written vanish.
 */
const VISIBLE_ABORTED = `SELECT FROM pg_class AS c WHERE c.oid >= 16384
  AND pg_xact_status(c.xmin::text::xid8) = 'aborted' LIMIT 1`

type Open = { readonly target: Transaction; end(isCommitted: boolean): void; readonly ended: Promise<void> }

/** Begins a transaction that stays open until a message ends it; all other requests wait until then. */
const begin = (database: PGlite): Promise<Open> =>
  new Promise((resolve, reject) => {
    const ended = database.transaction(async (target) => {
      const isCommitted = await new Promise<boolean>((end) => {
        resolve({ target, end, ended: Promise.resolve().then(() => ended) })
      })
      if (!isCommitted) await target.rollback()
    })
    ended.catch(reject)
  })

if (parentPort === null) throw new Error('this file runs only as a worker thread')
const transactions = new Map<number, Open>()
const unlisten = new Map<number, () => Promise<void>>()
let database: PGlite

const targetOf = (transaction: number | undefined): PGlite | Transaction => {
  if (transaction === undefined) return database
  const open = transactions.get(transaction)
  if (open === undefined) throw new Error('the transaction has ended')
  return open.target
}

const host = openCalls<PgliteHost>(parentPort, {
  open: async (dir) => {
    // The server's driver returns bigint as a string, too.
    const parsers = { [INT8]: (text: string) => text }
    await layEmptyCluster(dir)
    database = await openFlushing(dir, { parsers, extensions: { amcheck } }, (reason) => {
      host.notify('shut', reason)
      // Ends only this thread.
      process.exit(1)
    })
    const { rows } = await database.query(VISIBLE_ABORTED)
    if (rows.length > 0)
      throw new Error('its transaction status (pg_xact) is damaged: what was committed counts as aborted')
  },
  query: async (sql, values, transaction) => (await targetOf(transaction).query(sql, [...values])).rows,
  script: async (sql, transaction) => {
    await targetOf(transaction).exec(sql)
  },
  begin: async (transaction) => {
    transactions.set(transaction, await begin(database))
  },
  end: async (transaction, isCommitted) => {
    const open = transactions.get(transaction)
    transactions.delete(transaction)
    open?.end(isCommitted)
    await open?.ended
  },
  listen: async (listener, channel) => {
    unlisten.set(listener, await database.listen(channel, (payload) => host.notify('publish', listener, payload)))
  },
  unlisten: async (listener) => {
    await unlisten.get(listener)?.()
  },
  upkeep: () => upkeep(database),
  close: () => database.close()
} satisfies PgliteThread)
