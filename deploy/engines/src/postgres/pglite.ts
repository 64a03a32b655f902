import { accessSync, constants, mkdirSync, realpathSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type Calls, errorMessage, Failure, openCalls, type PostedError, Refusal } from '@gamenet/schemas'
import { DISK_FULL, diskFull, saysDiskFull } from './disk-full.js'
import { plainName } from './listen.js'
import type { PgliteHost, PgliteThread } from './pglite-thread.js'
import { startUpkeep } from './pglite-upkeep.js'
import type { Postgres, Queries } from './postgres.js'

/**
 * Continues the write-ahead log in the next file. A file without a record since its beginning would stay the current
 * one.
 */
const NEXT_FILE = [`SELECT pg_logical_emit_message(false, '', '')`, 'SELECT pg_switch_wal()']
/** Notifications pass through a queue of files of 32 pages; a file is removed when the queue is beyond it. */
const QUEUE_FILLERS = 70
const FILL_QUEUE = `SELECT pg_notify('gamenet_nothing', repeat('-', 7900))`

/** The directory as PGlite's messages name it. */
const PGLITE_DIRECTORY = '/pglite/data'

/** Delay after a failed start, during which requests are refused: a start costs half a second of processor time. */
const REOPEN_MS = 2000
const RETRY_SECONDS = 5

/**
 * Opens PostgreSQL in a thread of this process, on its own directory, which is created if missing. Committed data
 * survives crashes and power loss. Rejects with one sentence if the directory is unusable. A PostgreSQL that ends
 * itself after a failure of its files is restarted; until then, requests are refused.
 */
export const openPglite = async (options: PgliteOptions): Promise<Postgres> => {
  const { thread, listen, close } = await keepThread(options)
  const direct = queriesOn(thread, undefined)
  let transactions = 0
  return {
    ...direct,
    transaction: async (work) => {
      transactions += 1
      const transaction = transactions
      const same = await thread()
      await same.call('begin', transaction)
      try {
        const result = await work(queriesOn(async () => same, transaction))
        await same.call('end', transaction, true)
        return result
      } catch (error) {
        await same.call('end', transaction, false).catch(() => undefined)
        throw error
      }
    },
    listen,
    erase: async (tables) => {
      for (const table of tables) await direct.script(`VACUUM FULL ${plainName(table)}`)
      await direct.script('CHECKPOINT')
      for (const statement of NEXT_FILE) await direct.script(statement)
      const orphans = await findOrphans(join(options.dir, 'base'), direct)
      // Until a checkpoint, PostgreSQL keeps files of relations that were dropped, and ends itself if it cannot flush
      // them.
      await direct.script('CHECKPOINT')
      for (const orphan of orphans) await rm(orphan, { force: true })
      for (let filled = 0; filled < QUEUE_FILLERS; filled += 1) await direct.script(FILL_QUEUE)
    },
    check: async () => {
      await direct.query('SELECT 1')
    },
    close
  }
}

/**
 * Returns the files of no relation: a rewrite of a table that a crash interrupts leaves its new files, with the rows,
 * and PostgreSQL never removes them. No transaction is open during the query, and files that are created after they
 * were listed are not returned.
 */
const findOrphans = async (base: string, queries: Queries): Promise<string[]> => {
  const [database] = await queries.query<{ oid: number }>(
    'SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()'
  )
  const folder = join(base, String(database?.oid))
  const names = await readdir(folder)
  const rows = await queries.query<{ node: number }>(
    'SELECT pg_relation_filenode(c.oid) AS node FROM pg_class AS c WHERE pg_relation_filenode(c.oid) IS NOT NULL'
  )
  const nodes = new Set(rows.map(({ node }) => String(node)))
  // A file may have parts and maps: 16384.1, 16384_fsm.
  const nodeOf = (name: string) => /^\d+(?=[._]|$)/.exec(name)?.[0]
  const isOrphan = (node: string | undefined) => node !== undefined && !nodes.has(node)
  return names.filter((name) => isOrphan(nodeOf(name))).map((name) => join(folder, name))
}

type PgliteOptions = {
  readonly dir: string
  readonly upkeep?: {
    readonly everyMs?: number
    /** Called after each check of the upkeep, with its failure. */
    readonly onChecked?: (failure?: unknown) => void
  }
}

type Listener = { readonly channel: string; onPayload(payload: string): void; onListening(): void }

/** Keeps a thread with PostgreSQL, and replaces it when it has ended. */
const keepThread = async (options: PgliteOptions) => {
  const listeners = new Map<number, Listener>()
  let current = await open(options)
  let opening: Promise<Thread> | undefined
  let failed: { readonly at: number; readonly refusal: Refusal } | undefined
  let closing: Promise<void> | undefined
  let listenerCount = 0

  /** Resolves or rejects as the statement does. A closed database publishes nothing any more. */
  const listenOn = async (thread: Thread, listener: number, listening: Listener): Promise<void> => {
    thread.handlers.set(listener, listening.onPayload)
    await thread.call('listen', listener, listening.channel)
    listening.onListening()
  }
  const reopen = async (): Promise<Thread> => {
    if (failed !== undefined && performance.now() - failed.at < REOPEN_MS) throw failed.refusal
    try {
      await current.close()
      current = await open(options)
    } catch (cause) {
      failed = { at: performance.now(), refusal: ended(errorMessage(cause), cause) }
      throw failed.refusal
    }
    failed = undefined
    for (const [listener, each] of listeners) listenOn(current, listener, each).catch(() => undefined)
    return current
  }
  const thread = async (): Promise<Thread> => {
    if (closing !== undefined || !current.hasEnded()) return current
    opening ??= reopen().finally(() => {
      opening = undefined
    })
    return await opening
  }
  return {
    thread,
    listen: (...[channel, onPayload, onListening]: Parameters<Postgres['listen']>) => {
      listenerCount += 1
      const listener = listenerCount
      const added = { channel: plainName(channel), onPayload, onListening }
      listeners.set(listener, added)
      // A restarted PostgreSQL listens for all listeners.
      const listening = current.hasEnded() ? thread().then(() => undefined) : listenOn(current, listener, added)
      listening.catch(() => undefined)
      return async () => {
        listeners.delete(listener)
        current.handlers.delete(listener)
        await listening.catch(() => undefined)
        if (closing !== undefined || current.hasEnded()) return
        await current.call('unlisten', listener)
      }
    },
    close: () => {
      closing ??= Promise.resolve(opening?.catch(() => undefined)).then(() => current.close())
      return closing
    }
  }
}

type Thread = {
  readonly call: Calls<PgliteThread>['call']
  /** Handlers of notifications, by the number of the listener. */
  readonly handlers: Map<number, (payload: string) => void>
  /** Returns whether PostgreSQL has ended without a close. */
  hasEnded(): boolean
  close(): Promise<void>
}

const queriesOn = (thread: () => Promise<Thread>, transaction: number | undefined): Queries => ({
  query: async <Row extends Record<string, unknown>>(sql: string, values: readonly unknown[] = []) =>
    (await (await thread()).call('query', sql, values, transaction)) as Row[],
  script: async (sql) => await (await thread()).call('script', sql, transaction)
})

const open = async ({ dir, upkeep }: PgliteOptions): Promise<Thread> => {
  try {
    mkdirSync(dir, { recursive: true })
    accessSync(dir, constants.W_OK)
    // PGlite's file system takes no link for a directory.
    return await startThread(realpathSync(dir), upkeep)
  } catch (cause) {
    // A refusal is written for clients; its cause names the file.
    const text = errorMessage(cause instanceof Refusal ? cause.cause : cause)
    const reason = text.replace(/\s+/g, ' ').slice(0, 300).replaceAll(PGLITE_DIRECTORY, dir)
    throw new Failure('writes_unopened', `The PostgreSQL directory ${dir} cannot be opened: ${reason}`, { cause })
  }
}

const startThread = async (
  dir: string,
  { everyMs, onChecked = () => undefined }: PgliteOptions['upkeep'] = {}
): Promise<Thread> => {
  const worker = new Worker(new URL('./pglite-thread.js', import.meta.url))
  const handlers: Thread['handlers'] = new Map()
  let isOpen = false
  let hasEnded = false
  const shut = (reason: string, cause?: unknown): void => {
    hasEnded = true
    calls.end(isOpen ? ended(reason, cause) : new Error(reason))
  }
  const host: PgliteHost = { publish: (listener, payload) => handlers.get(listener)?.(payload), shut }
  // Like an unused connection, an idle thread does not keep the process alive.
  const onBusy = (isBusy: boolean) => (isBusy ? worker.ref() : worker.unref())
  const calls = openCalls<PgliteThread>(worker, host, { errorOf, onBusy })
  const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
  worker.on('error', (error: Error) => shut(error.message, error))
  worker.on('exit', () => shut('The embedded PostgreSQL has ended.'))
  let upkeep: ReturnType<typeof startUpkeep> | undefined
  const close = async (): Promise<void> => {
    await upkeep?.stop()
    // If closing fails, the thread is terminated like in a crash: no committed data is lost.
    await calls.call('close').catch(() => undefined)
    worker.ref()
    await worker.terminate()
    await exited
  }
  try {
    await calls.call('open', dir)
  } catch (error) {
    await worker.terminate()
    throw error
  }
  isOpen = true
  upkeep = startUpkeep(() => calls.call('upkeep'), onChecked, everyMs)
  return { call: calls.call, handlers, hasEnded: () => hasEnded, close }
}

/** Returns the refusal of requests to a PostgreSQL that ended itself. */
const ended = (reason: string, cause: unknown = new Error(reason)): Refusal =>
  saysDiskFull(reason)
    ? diskFull(cause)
    : new Refusal('engine_away', ['PostgreSQL'], { retryAfterSeconds: RETRY_SECONDS, cause })

/** DATA_CORRUPTED, INDEX_CORRUPTED, and a missing or unreadable file. */
const DAMAGE_CODES: ReadonlySet<unknown> = new Set(['XX001', 'XX002', '58P01', '58030'])

/** The fields of a PostgreSQL error; other fields belong to the driver. */
const FAULT_FIELDS = ['code', 'severity', 'detail', 'hint', 'schema', 'table', 'column', 'constraint']

const errorOf = ({ message, fields }: PostedError): Error => {
  const said = Object.entries(fields).filter(([field]) => FAULT_FIELDS.includes(field))
  const fault = Object.assign(new Error(message), Object.fromEntries(said))
  if (fields.code === DISK_FULL || saysDiskFull(message)) return diskFull(fault)
  return DAMAGE_CODES.has(fields.code) ? new Refusal('data_damaged', [], { cause: fault }) : fault
}
