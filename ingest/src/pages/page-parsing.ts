import { Worker } from 'node:worker_threads'
import { Mutex } from '@gamenet/schemas'
import type { PageKind, ParseRequest, pageParsers } from './page-parsers.js'
import { unreadablePage } from './unreadable-page.js'

/** Parses pages away from the thread that answers requests. */
export type PageParsing = {
  /** Never rejects; a page that takes too long is one that cannot be read. Pages wait for one another. */
  parse<Kind extends PageKind>(
    kind: Kind,
    html: string,
    address: string
  ): Promise<ReturnType<(typeof pageParsers)[Kind]>>
  close(): Promise<void>
}

/** Said by the thread when it has loaded and begins with a page: the time that a page may take counts from there. */
export const PARSING_BEGINS = 'parsing begins'

/** A real page takes 0.05 s; some 400 KB of hostile markup take half a minute. */
const PARSE_TIMEOUT_MS = 10_000
/** What the thread loads takes 0.5 s, and 10 s and more where many processes want the same processors. */
const START_TIMEOUT_MS = 60_000
const HEAP_MAX_MB = 512

/**
 * Starts its thread with the first page. A home page of 200 titles is 40 to 100 ms of work, which would hold up
 * everything else in a process that serves answers too; and only a thread can be stopped when a page is made to
 * take forever. The next page gets a new thread then.
 */
export function createPageParsing({ timeoutMs = PARSE_TIMEOUT_MS }: { timeoutMs?: number } = {}): PageParsing {
  let thread: Worker | undefined
  const mutex = new Mutex()
  let closed = false
  const end = async () => {
    const ended = thread
    thread = undefined
    await ended?.terminate()
  }
  const ask = async (request: ParseRequest): Promise<unknown> => {
    if (closed) return unreadablePage('the service is stopping')
    thread ??= startThread()
    const answer = await answerOf(thread, request, timeoutMs)
    if (answer.ok) return answer.page
    await end()
    return unreadablePage(answer.reason)
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

function startThread(): Worker {
  const thread = new Worker(new URL('./parse-thread.js', import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MAX_MB }
  })
  // Without a listener between two pages, it would end the process; during a page `answerOf` listens too.
  thread.on('error', () => {})
  return thread
}

type ThreadAnswer = { ok: true; page: unknown } | { ok: false; reason: string }

/** The thread keeps the process alive only while it works. */
async function answerOf(thread: Worker, request: ParseRequest, timeoutMs: number): Promise<ThreadAnswer> {
  let settle: (answer: ThreadAnswer) => void = () => {}
  const answer = new Promise<ThreadAnswer>((resolve) => {
    settle = resolve
  })
  const tooLong = (reason: string, ms: number) => setTimeout(() => settle({ ok: false, reason }), ms)
  let timer = tooLong(`the parser did not begin within ${START_TIMEOUT_MS} ms`, START_TIMEOUT_MS)
  const onMessage = (message: unknown) => {
    if (message !== PARSING_BEGINS) return settle({ ok: true, page: message })
    clearTimeout(timer)
    timer = tooLong(`the page took longer than ${timeoutMs} ms to parse`, timeoutMs)
  }
  const onError = (error: Error) => settle({ ok: false, reason: `the page broke the parser: ${error.message}` })
  const onExit = () => settle({ ok: false, reason: 'the parsing of the page was stopped' })
  thread.ref()
  thread.on('message', onMessage).on('error', onError).on('exit', onExit)
  thread.postMessage(request)
  try {
    return await answer
  } finally {
    clearTimeout(timer)
    thread.off('message', onMessage).off('error', onError).off('exit', onExit)
    thread.unref()
  }
}
