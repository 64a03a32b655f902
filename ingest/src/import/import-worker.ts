import { type MessagePort, Worker } from 'node:worker_threads'
import { errorMessage, type LogMessage } from '@gamenet/schemas'
import type { Seals } from '../publish/people/people.js'
import { withImportFile } from './import-file.js'
import { ImportCutOff, ImportRefused } from './import-refused.js'
import {
  type ImportNeeds,
  type ImportProgress,
  type ImportRequest,
  type ImportResult,
  type KnownImport,
  runImport
} from './import-run.js'
import { importableOf } from './importables.js'
import { checkMapping } from './row-plan.js'

/*
 * The worker reads, checks, seals and encodes; the log, people's keys and what is known of earlier runs stay with the
 * thread that asked. The worker has one append under way and builds the next one meanwhile, so that neither side heaps
 * up more than that.
 */

/** Two blocks of text, their rows and events take about 60 MB. */
const WORKER_HEAP_MB = 384
/**
 * A block's rows and events outlive several of the usual small collections, and each one copies them: that took a third
 * of the thread's time. The thread ends with the import and frees its memory.
 */
const WORKER_YOUNG_HEAP_MB = 192

/** A request whose input is a path, and nothing that cannot be posted. */
export type PostedRequest = Omit<ImportRequest, 'input' | 'spoolDirectory'> & { readonly input: string }

type Question =
  | { readonly ask: 'append'; readonly id: number; readonly topic: string; readonly packed: PackedMessages }
  | { readonly ask: 'known'; readonly id: number; readonly importId: string }
  | { readonly ask: 'seals'; readonly id: number; readonly usernames: readonly string[] }

type Answer = KnownImport | Seals | undefined

type FromWorker =
  | Question
  | { readonly progress: ImportProgress }
  | { readonly passedOver: { readonly topic: string; readonly events: number } }
  | { readonly result: ImportResult }
  | { readonly failure: Failure }

type ToWorker =
  | { readonly answer: number; readonly value: Answer }
  | { readonly answer: number; readonly error: string }
  | { readonly abort: true }

/** An error as it can be posted: the other side restores its class. */
type Failure =
  | { readonly name: string; readonly message: string }
  | { readonly file: string; readonly message: string; readonly rowsRead: number; readonly published: number }

/**
 * {@link runImport} in a separate thread, so that this one keeps answering: here only the log is appended to,
 * 2,000 events at a time. Resolves and rejects as `runImport` does.
 */
export async function importInWorker(request: ImportRequest, needs: Omit<ImportNeeds, 'now'>): Promise<ImportResult> {
  const signal = needs.signal ?? new AbortController().signal
  const { input, spoolDirectory, ...rest } = request
  // What is wrong with the request is said before standard input is copied.
  checkMapping(importableOf(rest.topic), { columns: rest.columns ?? {}, set: rest.set ?? {} }, Date.now())
  try {
    return await withImportFile(input, rest.fileName, { signal, spoolDirectory }, (file) =>
      importPathInWorker({ ...rest, input: file.path }, { ...needs, signal })
    )
  } catch (error) {
    signal.throwIfAborted()
    throw error
  }
}

async function importPathInWorker(
  posted: PostedRequest,
  needs: Omit<ImportNeeds, 'now'> & { readonly signal: AbortSignal }
): Promise<ImportResult> {
  needs.signal.throwIfAborted()
  const worker = new Worker(new URL('./import-thread.js', import.meta.url), {
    workerData: posted,
    resourceLimits: { maxOldGenerationSizeMb: WORKER_HEAP_MB, maxYoungGenerationSizeMb: WORKER_YOUNG_HEAP_MB }
  })
  const abort = () => worker.postMessage({ abort: true } satisfies ToWorker)
  needs.signal.addEventListener('abort', abort, { once: true })
  let logError: unknown
  try {
    return await new Promise<ImportResult>((resolve, reject) => {
      worker.on('error', reject)
      worker.on('exit', (code) => reject(new Error(`The thread of the import ended by itself, with code ${code}`)))
      worker.on('message', (message: FromWorker) => {
        if ('result' in message) resolve(message.result)
        else if ('failure' in message) reject(failureOf(message.failure, logError))
        else if ('progress' in message) needs.onProgress?.(message.progress)
        else if ('passedOver' in message) needs.people?.passedOver(message.passedOver.topic, message.passedOver.events)
        else {
          answer(message, needs).then(
            (value) => worker.postMessage({ answer: message.id, value } satisfies ToWorker),
            (error: unknown) => {
              logError = error
              worker.postMessage({ answer: message.id, error: errorMessage(error) } satisfies ToWorker)
            }
          )
        }
      })
    })
  } finally {
    needs.signal.removeEventListener('abort', abort)
    await worker.terminate()
  }
}

async function answer(question: Question, needs: Pick<ImportNeeds, 'log' | 'people' | 'known'>): Promise<Answer> {
  if (question.ask === 'known') return needs.known(question.importId)
  if (question.ask === 'seals') {
    if (needs.people === undefined) throw new Error('Whose seals these are was not given to the import')
    return await needs.people.seals(question.usernames)
  }
  await needs.log.append(question.topic, unpackMessages(question.packed))
  return undefined
}

/** The worker's side: runs one import and speaks of it through the port. Never rejects. */
export async function serveImport(port: MessagePort, request: PostedRequest): Promise<void> {
  const abort = new AbortController()
  const waiting = new Map<number, { resolve(value: Answer): void; reject(error: Error): void }>()
  let nextId = 0
  const post = (message: FromWorker) => port.postMessage(message)
  port.on('message', (message: ToWorker) => {
    if ('abort' in message) {
      abort.abort()
      return
    }
    const asker = waiting.get(message.answer)
    waiting.delete(message.answer)
    if ('error' in message) asker?.reject(new Error(message.error))
    else asker?.resolve(message.value)
  })
  /** Each question has an answer of its own kind. */
  const ask = <Value extends Answer>(question: (id: number) => Question) =>
    new Promise<Value>((resolve, reject) => {
      const id = nextId
      nextId += 1
      waiting.set(id, { resolve: resolve as (value: Answer) => void, reject })
      post(question(id))
    })
  try {
    const result = await runImport(request, {
      log: {
        append: async (topic, messages) => {
          await ask((id) => ({ ask: 'append', id, topic, packed: packMessages(messages) }))
        }
      },
      people: {
        seals: (usernames) => ask<Seals>((id) => ({ ask: 'seals', id, usernames: [...usernames] })),
        passedOver: (topic, events) => post({ passedOver: { topic, events } })
      },
      known: (importId) => ask<KnownImport | undefined>((id) => ({ ask: 'known', id, importId })),
      onProgress: (progress) => post({ progress }),
      signal: abort.signal
    })
    post({ result })
  } catch (error) {
    const name = error instanceof Error ? error.name : 'Error'
    post({ failure: error instanceof ImportCutOff ? cutOffOf(error) : { name, message: errorMessage(error) } })
  }
}

function cutOffOf({ file, rowsRead, published, cause }: ImportCutOff): Failure {
  return { file, message: errorMessage(cause), rowsRead, published }
}

/** `logError` is what the log or the lookup threw here: then the cause, with all that it carries. */
function failureOf(failure: Failure, logError: unknown): Error {
  if ('file' in failure) return new ImportCutOff(failure.file, failure, logError ?? new Error(failure.message))
  if (failure.name === 'ImportRefused') return new ImportRefused(failure.message)
  return new Error(failure.message, { cause: logError })
}

/**
 * Messages for the way between threads: what all their headers have in common stands once, and the rest is a few long
 * arrays of text.
 */
export type PackedMessages = {
  readonly common: Readonly<Record<string, string>>
  /** Names of the headers that differ; `headers` has their values, message by message. */
  readonly differing: readonly string[]
  readonly headers: readonly string[]
  readonly keys: readonly string[]
  readonly values: readonly string[]
}

/** Packs messages that all have the same header names, as those of one topic do. */
export function packMessages(messages: readonly LogMessage[]): PackedMessages {
  const first = messages[0]?.headers ?? {}
  const names = Object.keys(first)
  const differing = names.filter((name) => messages.some(({ headers }) => headers[name] !== first[name]))
  const common = Object.fromEntries(Object.entries(first).filter(([name]) => !differing.includes(name)))
  return {
    common,
    differing,
    headers: messages.flatMap(({ headers }) => differing.map((name) => headers[name] ?? '')),
    keys: messages.map(({ key }) => key),
    values: messages.map(({ value }) => value)
  }
}

/** The messages that were packed. */
export function unpackMessages(packed: PackedMessages): LogMessage[] {
  const { common, differing, headers, keys, values } = packed
  // A copy of an object with all names in place costs 0.07 µs; one that gets its last names afterwards costs 2 µs.
  const template: Record<string, string> = {}
  for (const [name, value] of Object.entries(common)) template[name] = value
  for (const name of differing) template[name] = ''
  return keys.map((key, n) => {
    const own = { ...template }
    for (const [place, name] of differing.entries()) own[name] = headers[n * differing.length + place] ?? ''
    return { key, headers: own, value: values[n] ?? '' }
  })
}
