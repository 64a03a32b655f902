import { Worker } from 'node:worker_threads'
import { type Calls, callThread, errorMessage, Failure, isFailure, Mutex, withTimeout } from '@gamenet/schemas'
import type { PageKind, ParseRequest, pageParsers } from './page-parsers.js'
import { unreadablePage } from './unreadable-page.js'

/** Parses pages in a separate thread. */
export type PageParsing = {
  /** Never rejects; a page that takes too long counts as unreadable. Pages are parsed one at a time. */
  parse<Kind extends PageKind>(
    kind: Kind,
    html: string,
    address: string
  ): Promise<ReturnType<(typeof pageParsers)[Kind]>>
  close(): Promise<void>
}

export type ParseThread = { parse(request: ParseRequest): unknown }
export type ParseHost = {
  /** The thread has loaded and starts with a page: the page's time limit begins. */
  begins(): void
}

/** A real page takes 0.05 s; some 400 KB of hostile markup take half a minute. */
const PARSE_TIMEOUT_MS = 10_000
/** Loading the thread takes 0.5 s, and 10 s and more on a busy machine. */
const START_TIMEOUT_MS = 60_000
const HEAP_MAX_MB = 512

/**
 * Creates a parser; its thread starts with the first page. A home page of 200 titles takes 40 to 100 ms, which would
 * block all answers of the process. Only a thread can be stopped when a page takes forever; the next page gets a new
 * thread.
 */
export function createPageParsing({ timeoutMs = PARSE_TIMEOUT_MS }: { timeoutMs?: number } = {}): PageParsing {
  let thread: Thread | undefined
  const mutex = new Mutex()
  let closed = false
  const end = async () => {
    const ended = thread
    thread = undefined
    await ended?.worker.terminate()
  }
  const ask = async (request: ParseRequest): Promise<unknown> => {
    if (closed) return unreadablePage('the service is stopping')
    thread ??= startThread()
    try {
      return await parsed(thread, request, timeoutMs)
    } catch (error) {
      await end()
      const reason = errorMessage(error)
      return unreadablePage(
        isFailure(error, 'page_timeout', 'thread_exited') ? reason : `the page broke the parser: ${reason}`
      )
    }
  }
  return {
    async parse<Kind extends PageKind>(kind: Kind, html: string, address: string) {
      return (await mutex.run(() => ask({ kind, html, address }))) as ReturnType<(typeof pageParsers)[Kind]>
    },
    async close() {
      closed = true
      await end()
    }
  }
}

type Thread = {
  readonly worker: Worker
  readonly calls: Calls<ParseThread>
  /** Called when the thread starts with a page. */
  begins: () => void
}

function startThread(): Thread {
  const worker = new Worker(new URL('./parse-thread.js', import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MAX_MB }
  })
  const host: ParseHost = { begins: () => thread.begins() }
  const calls = callThread<ParseThread>(worker, host, { exited: 'the parsing of the page was stopped' })
  const thread: Thread = { worker, calls, begins: () => undefined }
  return thread
}

/** Parses a page in the thread. Rejects when the parser throws, takes too long or is stopped. */
async function parsed(thread: Thread, request: ParseRequest, timeoutMs: number): Promise<unknown> {
  const begun = new Promise<void>((resolve) => {
    thread.begins = resolve
  })
  const page = thread.calls.call('parse', request)
  await withTimeout(Promise.race([begun, page]), START_TIMEOUT_MS, () => {
    throw new Failure('page_timeout', `the parser did not begin within ${START_TIMEOUT_MS} ms`)
  })
  return await withTimeout(page, timeoutMs, () => {
    throw new Failure('page_timeout', `the page took longer than ${timeoutMs} ms to parse`)
  })
}
