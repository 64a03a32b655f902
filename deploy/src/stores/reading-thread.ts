import { Worker } from 'node:worker_threads'
import type { ReadingSide } from '@gamenet/projector'
import { withTimeout } from '@gamenet/schemas'
import type { LoaderWorkerData } from './loader-worker.js'
import type { LogChoice } from './log.js'

/**
 * Maximum number of threads that read Kafka for a reload. Decoding batches is most of the work; more threads would take
 * processors from answers.
 */
const RELOAD_READERS_MAX = 2
/** Longest wait for a Kafka client to leave its group if brokers do not answer. */
const KAFKA_CLOSE_MS = 2000

/** Returns the number of threads that read the log for a reload: at most one per partition. */
export function reloadReadersOf(choice: LogChoice): number {
  return choice.engine === 'kafka' ? Math.min(choice.partitions, RELOAD_READERS_MAX) : 1
}

/**
 * The reading side of a loader in a separate thread. `close` is called when it was stopped or has ended. For an
 * embedded log the end is awaited without limit: terminating a thread inside an LMDB call crashes the process.
 */
export function readingThread(data: LoaderWorkerData): ReadingSide {
  const worker = new Worker(new URL('./loader-worker.js', import.meta.url), { workerData: data })
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
