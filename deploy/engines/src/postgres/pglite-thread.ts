import { parentPort, workerData } from 'node:worker_threads'
import type { PGlite, Transaction } from '@electric-sql/pglite'
import { errorMessage } from '@gamenet/schemas'
import { layEmptyCluster } from './empty-cluster.js'
import { openFlushing } from './flushing-files.js'
import { startUpkeep, type UpkeepOptions } from './pglite-upkeep.js'

/*
 * The thread that an embedded PostgreSQL runs in. A statement of it is computed to its end, and the next one after it
 * without a look at anything else: on the thread of a server, it would block all other requests.
 */

/** A request to the thread. `transaction` is the number of an open transaction. */
export type ThreadRequest =
  | {
      readonly kind: 'query'
      readonly id: number
      readonly transaction?: number
      readonly sql: string
      readonly values: readonly unknown[]
    }
  | { readonly kind: 'script'; readonly id: number; readonly transaction?: number; readonly sql: string }
  | { readonly kind: 'begin'; readonly id: number; readonly transaction: number }
  | { readonly kind: 'end'; readonly id: number; readonly transaction: number; readonly isCommitted: boolean }
  | { readonly kind: 'listen' | 'unlisten'; readonly id: number; readonly listener: number; readonly channel: string }
  | { readonly kind: 'close'; readonly id: number }

/** A message of the thread: the answer to the request with this id, or a notification. */
export type ThreadMessage =
  | { readonly kind: 'open' }
  | { readonly kind: 'shut'; readonly reason: string }
  | { readonly kind: 'done'; readonly id: number; readonly rows: readonly unknown[] }
  | { readonly kind: 'failed'; readonly id: number; readonly fault: Readonly<Record<string, unknown>> }
  | { readonly kind: 'heard'; readonly listener: number; readonly payload: string }

const INT8 = 20
/** The fields of a PostgreSQL error that are posted; the rest cannot be cloned or is our own. */
const FAULT_FIELDS = ['code', 'severity', 'detail', 'hint', 'schema', 'table', 'column', 'constraint'] as const

type Open = { readonly target: Transaction; end(isCommitted: boolean): void; readonly ended: Promise<void> }

const port = parentPort
if (port === null) throw new Error('this runs as a thread alone')
const post = (message: ThreadMessage): void => port.postMessage(message)

const serve = (database: PGlite, options: UpkeepOptions): void => {
  const upkeep = startUpkeep(database, options)
  const transactions = new Map<number, Open>()
  const unlisten = new Map<number, () => Promise<void>>()
  const targetOf = (transaction: number | undefined): PGlite | Transaction => {
    if (transaction === undefined) return database
    const open = transactions.get(transaction)
    if (open === undefined) throw new Error('the transaction has ended')
    return open.target
  }
  const answer = async (request: ThreadRequest): Promise<readonly unknown[]> => {
    switch (request.kind) {
      case 'query':
        return (await targetOf(request.transaction).query(request.sql, [...request.values])).rows
      case 'script':
        await targetOf(request.transaction).exec(request.sql)
        return []
      case 'begin':
        transactions.set(request.transaction, await begin(database))
        return []
      case 'end': {
        const open = transactions.get(request.transaction)
        transactions.delete(request.transaction)
        open?.end(request.isCommitted)
        await open?.ended
        return []
      }
      case 'listen': {
        const { listener, channel } = request
        unlisten.set(listener, await database.listen(channel, (payload) => post({ kind: 'heard', listener, payload })))
        return []
      }
      case 'unlisten':
        await unlisten.get(request.listener)?.()
        return []
      case 'close':
        await upkeep.stop()
        await database.close()
        return []
    }
  }
  port.on('message', (request: ThreadRequest) => {
    answer(request).then(
      (rows) => {
        post({ kind: 'done', id: request.id, rows })
        // Ends the thread, once this is delivered.
        if (request.kind === 'close') port.close()
      },
      (error: unknown) => post({ kind: 'failed', id: request.id, fault: faultOf(error) })
    )
  })
}

/** A transaction that stays open until a message ends it; all other requests wait until then. */
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

const faultOf = (error: unknown): Record<string, unknown> => {
  if (!(error instanceof Error)) return { message: String(error) }
  const said = error as Error & Record<string, unknown>
  const fields = FAULT_FIELDS.filter((field) => typeof said[field] === 'string').map((field) => [field, said[field]])
  return { message: error.message, ...Object.fromEntries(fields) }
}

try {
  // The server's driver gives bigint as a string too.
  const parsers = { [INT8]: (text: string) => text }
  const { dir, upkeep = {} } = workerData as { dir: string; upkeep?: UpkeepOptions }
  await layEmptyCluster(dir)
  const database = await openFlushing(dir, { parsers }, (reason) => {
    post({ kind: 'shut', reason })
    // Ends this thread alone.
    process.exit(1)
  })
  serve(database, upkeep)
  post({ kind: 'open' })
} catch (error) {
  post({ kind: 'shut', reason: errorMessage(error) })
  port.close()
}
