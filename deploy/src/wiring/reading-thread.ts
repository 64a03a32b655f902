import { Worker } from 'node:worker_threads'
import type { ReadingSide } from '@gamenet/projector'
import { withTimeout } from '@gamenet/schemas'
import type { LoaderWorkerData } from './loader-worker.js'
import type { LogChoice } from './log.js'

/** Twice what Node gives a thread: fewer collections while a backlog is read; a quiet loader does not grow to it. */
const YOUNG_HEAP_MB = 96
/** Threads that read Kafka for a reload: taking its batches apart is most of the work. More would take the processors from answers. */
const RELOAD_READERS_MAX = 2
/** So long a client of Kafka may take leave of brokers that do not answer. */
const KAFKA_CLOSE_MS = 2000

/** How many threads read the log for a reload: no more than it has partitions. */
export function reloadReadersOf(choice: LogChoice): number {
  return choice.engine === 'kafka' ? Math.min(choice.partitions, RELOAD_READERS_MAX) : 1
}

/**
 * The reading side of a loader in a thread of its own. `close` is called when it was stopped or has ended. On an embedded
 * log it is waited for however long that takes: a thread that is ended from outside in an LMDB call takes the process with it.
 */
export function readingThread(data: LoaderWorkerData): ReadingSide {
  const worker = new Worker(new URL('./loader-worker.js', import.meta.url), {
    workerData: data,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_HEAP_MB }
  })
  const ended = new Promise<void>((resolve, reject) => {
    worker.on('error', reject)
    worker.on('exit', () => resolve())
  })
  const over = ended.catch(() => undefined)
  const close = async () => {
    if (data.choice.engine === 'lmdb') return await over
    await withTimeout(over, KAFKA_CLOSE_MS, () => undefined)
    await worker.terminate()
  }
  return { port: worker, ended, close }
}
