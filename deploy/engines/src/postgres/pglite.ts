import { accessSync, constants, mkdirSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { errorMessage, Refusal } from '@gamenet/schemas'
import { plainName } from './listen.js'
import type { ThreadMessage, ThreadRequest } from './pglite-thread.js'
import type { UpkeepOptions } from './pglite-upkeep.js'
import type { Postgres, Queries } from './postgres.js'

/** The write-ahead log goes on in a new file, and the older ones are removed instead of being used again. */
const NEW_LOG = ['SET wal_recycle = off', 'SELECT pg_switch_wal()', 'CHECKPOINT', 'RESET wal_recycle']
/** What is told goes through a queue of files of 32 pages; a file is removed when the queue is past it. */
const QUEUE_FILLERS = 70
const FILL_QUEUE = `SELECT pg_notify('gamenet_nothing', repeat('-', 7900))`

/**
 * PostgreSQL in a thread of this process, on a directory that is made when absent and belongs to it. What is committed
 * outlives the end of the process and a loss of power. Rejects with one sentence when the directory cannot be used.
 */
export const openPglite = async (options: {
  readonly dir: string
  readonly upkeep?: UpkeepOptions
}): Promise<Postgres> => {
  const thread = await open(options)
  const direct = queriesOn(thread, undefined)
  let transactions = 0
  let listeners = 0
  let closing: Promise<void> | undefined
  return {
    ...direct,
    transaction: async (work) => {
      transactions += 1
      const transaction = transactions
      await thread.ask({ kind: 'begin', transaction })
      try {
        const result = await work(queriesOn(thread, transaction))
        await thread.ask({ kind: 'end', transaction, isCommitted: true })
        return result
      } catch (error) {
        await thread.ask({ kind: 'end', transaction, isCommitted: false }).catch(() => undefined)
        throw error
      }
    },
    listen: (channel, onPayload, onListening) => {
      listeners += 1
      const listener = listeners
      const about = { listener, channel: plainName(channel) }
      thread.handlers.set(listener, onPayload)
      // It fails only in a database that is being closed, which tells nothing any more.
      const listening = thread.ask({ kind: 'listen', ...about })
      listening.then(onListening, () => undefined)
      return async () => {
        thread.handlers.delete(listener)
        await listening.catch(() => undefined)
        if (closing === undefined) await thread.ask({ kind: 'unlisten', ...about })
      }
    },
    erase: async (tables) => {
      for (const table of tables) await direct.script(`VACUUM FULL ${plainName(table)}`)
      for (const statement of NEW_LOG) await direct.script(statement)
      for (let filled = 0; filled < QUEUE_FILLERS; filled += 1) await direct.script(FILL_QUEUE)
    },
    check: async () => {
      await direct.query('SELECT 1')
    },
    close: () => {
      closing ??= thread.close()
      return closing
    }
  }
}

type Without<Union, Key extends string> = Union extends unknown ? Omit<Union, Key> : never

type Thread = {
  /** The rows of what was asked; rejects with PostgreSQL's error, or when the thread has ended. */
  ask(lastId: Without<ThreadRequest, 'id'>): Promise<readonly unknown[]>
  /** Who hears what is told, by the number of the listener. */
  readonly handlers: Map<number, (payload: string) => void>
  close(): Promise<void>
}

const queriesOn = (thread: Thread, transaction: number | undefined): Queries => {
  const about = transaction === undefined ? {} : { transaction }
  return {
    query: async <Row extends Record<string, unknown>>(sql: string, values: readonly unknown[] = []) =>
      (await thread.ask({ kind: 'query', sql, values, ...about })) as Row[],
    script: async (sql) => {
      await thread.ask({ kind: 'script', sql, ...about })
    }
  }
}

const open = async ({ dir, upkeep }: Parameters<typeof openPglite>[0]): Promise<Thread> => {
  try {
    mkdirSync(dir, { recursive: true })
    accessSync(dir, constants.W_OK)
    return await startThread({ dir, upkeep })
  } catch (cause) {
    const text = errorMessage(cause)
    throw new Error(`The PostgreSQL directory ${dir} cannot be opened: ${text.replace(/\s+/g, ' ').slice(0, 300)}`, {
      cause
    })
  }
}

const startThread = (workerData: object): Promise<Thread> =>
  new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./pglite-thread.js', import.meta.url), { workerData })
    const waiting = new Map<number, { resolve(rows: readonly unknown[]): void; reject(error: Error): void }>()
    const handlers: Thread['handlers'] = new Map()
    let lastId = 0
    let end: Error | undefined
    const settle = (id: number) => {
      const one = waiting.get(id)
      waiting.delete(id)
      // Like a connection that is not used, a thread that is not asked keeps no process alive.
      if (waiting.size === 0) worker.unref()
      return one
    }
    const ended = new Promise<void>((resolveEnded) => worker.once('exit', () => resolveEnded()))
    const fail = (error: Error): void => {
      end ??= error
      for (const id of [...waiting.keys()]) settle(id)?.reject(end)
      reject(end)
    }
    worker.on('error', fail)
    worker.on('exit', () => fail(new Error('The embedded PostgreSQL has ended.')))
    const ask: Thread['ask'] = (message) =>
      new Promise((resolveRows, rejectRows) => {
        if (end !== undefined) {
          rejectRows(end)
          return
        }
        lastId += 1
        worker.postMessage({ ...message, id: lastId })
        waiting.set(lastId, { resolve: resolveRows, reject: rejectRows })
        if (waiting.size === 1) worker.ref()
      })
    const close = async (): Promise<void> => {
      // What cannot be closed is ended, as a crash would: nothing that was committed is lost by it.
      await ask({ kind: 'close' }).catch(() => worker.terminate())
      worker.ref()
      await ended
    }
    worker.on('message', (answer: ThreadMessage) => {
      if (answer.kind === 'done') settle(answer.id)?.resolve(answer.rows)
      else if (answer.kind === 'failed') settle(answer.id)?.reject(faultOf(answer.fault))
      else if (answer.kind === 'heard') handlers.get(answer.listener)?.(answer.payload)
      else if (answer.kind === 'shut') fail(new Error(answer.reason))
      else {
        worker.unref()
        resolve({ ask, handlers, close })
      }
    })
  })

/** DATA_CORRUPTED, INDEX_CORRUPTED, and a file that is missing or cannot be read. */
const DAMAGE_CODES: ReadonlySet<unknown> = new Set(['XX001', 'XX002', '58P01', '58030'])

const faultOf = ({ message, ...fields }: Readonly<Record<string, unknown>>): Error => {
  const fault = Object.assign(new Error(String(message)), fields)
  return DAMAGE_CODES.has(fields.code) ? new Refusal('data_damaged', [], { cause: fault }) : fault
}
