import { MessageChannel } from 'node:worker_threads'
import type { Backoff, Topic } from '@gamenet/schemas'
import { foldChunk } from '../src/folding/fold-chunk.js'
import type { Folding } from '../src/folding/folding.js'
import type { ReadingSide } from '../src/load/loader.js'
import type { LogReader } from '../src/load/log.js'
import { runLoaderWorker } from '../src/load/read-log.js'

/** Runs a reading side in this thread, over the same channel as a worker's. */
export function readInline(
  reader: LogReader,
  topics: readonly Topic[],
  backoff?: Backoff
): (only?: { readonly topic: string }) => Promise<ReadingSide> {
  return async (only) => {
    const { port1, port2 } = new MessageChannel()
    const read = topics.filter(({ name }) => only === undefined || name === only.topic)
    const ended = runLoaderWorker({ port: port2, reader, topics: read, ...(backoff === undefined ? {} : { backoff }) })
    return {
      port: port1,
      ended,
      close: async () => {
        port1.close()
        await ended.catch(() => undefined)
      }
    }
  }
}

/** Folds in this thread. */
export function foldInline(): Folding {
  return { fold: async (name, answers) => foldChunk(name, answers), close: async () => {} }
}
