import { MessageChannel } from 'node:worker_threads'
import type { Backoff, Topic } from '@gamenet/schemas'
import type { ReadingSide } from './loader.js'
import type { LogReader } from './log.js'
import { runLoaderWorker } from './read-log.js'

/** Runs a reading side in this thread, over the same channel as a worker's: for tests and small tools. */
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
