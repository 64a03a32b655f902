import { Worker } from 'node:worker_threads'
import { callThread, type PackedMessages } from '@gamenet/schemas'
import type { Seals } from '../people/people.js'
import { appendPacked } from '../ports/log.js'
import type { ImportProgress } from './contract.js'
import { withImportFile } from './import-file.js'
import type { ImportNeeds, ImportRequest, ImportResult, KnownImport } from './import-run.js'
import { importableOf } from './importables.js'
import { checkMapping } from './row-plan.js'

/*
 * The worker parses, validates, seals, encodes and packs. The log, the keys of people and the state of earlier runs
 * stay in the calling thread. The worker has one append under way and builds the next one meanwhile, which bounds the
 * memory of both sides.
 */

/** Two blocks of text, their rows and events take about 60 MB. */
const WORKER_HEAP_MB = 384
/**
 * A block's rows and events survive several small collections, and each one copies them: that took a third of the
 * thread's time. The thread ends with the import and frees its memory.
 */
const WORKER_YOUNG_HEAP_MB = 192

/** A request that can be posted: its input is a path. */
export type PostedRequest = Omit<ImportRequest, 'input' | 'spoolDirectory'> & { readonly input: string }

/** The methods of the import's thread. */
export type ImportThread = {
  run(request: PostedRequest): Promise<ImportResult>
  abort(): void
}

/** The methods that the import's thread calls. */
export type ImportHost = {
  append(topic: string, packed: PackedMessages): Promise<void>
  known(importId: string): Promise<KnownImport | undefined>
  seals(usernames: readonly string[]): Promise<Seals>
  passedOver(topic: string, events: number): void
  progress(progress: ImportProgress): void
}

/**
 * Runs `runImport` in a separate thread, so that the calling thread stays responsive: it only appends to the log, 2,000
 * events at a time. Resolves and rejects as `runImport` does.
 */
export async function importInWorker(request: ImportRequest, needs: Omit<ImportNeeds, 'now'>): Promise<ImportResult> {
  const signal = needs.signal ?? new AbortController().signal
  const { input, spoolDirectory, ...rest } = request
  // Faults of the request are reported before standard input is copied.
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
    resourceLimits: { maxOldGenerationSizeMb: WORKER_HEAP_MB, maxYoungGenerationSizeMb: WORKER_YOUNG_HEAP_MB }
  })
  let hostError: unknown
  const keepingError = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    try {
      return await work()
    } catch (error) {
      hostError = error
      throw error
    }
  }
  const host: ImportHost = {
    append: (topic, packed) => keepingError(() => appendPacked(needs.log, topic, packed)),
    known: (importId) => keepingError(async () => needs.known(importId)),
    seals: (usernames) =>
      keepingError(async () => {
        if (needs.people === undefined) throw new Error('The import was started without access to seal keys')
        return await needs.people.seals(usernames)
      }),
    passedOver: (topic, events) => needs.people?.passedOver(topic, events),
    progress: (progress) => needs.onProgress?.(progress)
  }
  const calls = callThread<ImportThread>(worker, host, {
    exited: 'The thread of the import ended by itself'
  })
  const abort = () => calls.notify('abort')
  needs.signal.addEventListener('abort', abort, { once: true })
  try {
    return await calls.call('run', posted)
  } catch (error) {
    // The error of this thread has its class.
    if (error instanceof Error && hostError !== undefined) error.cause = hostError
    throw error
  } finally {
    needs.signal.removeEventListener('abort', abort)
    await worker.terminate()
  }
}
