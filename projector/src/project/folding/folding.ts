import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { type ChunkAnswers, type ChunkRows, foldChunk } from './fold-chunk.js'

/** Where folds run. */
export type Folding = {
  /** Rejects when the fold throws or the thread dies; asked again, it starts again. `again`: what was read does not fit together. */
  fold(name: string, answers: ChunkAnswers): Promise<ChunkRows | 'again'>
  /** Ends the thread. */
  close(): Promise<void>
}

export type ToFolder = { readonly id: number; readonly name: string; readonly answers: ChunkAnswers }
export type FromFolder =
  | { readonly id: number; readonly rows: ChunkRows | 'again' }
  | { readonly id: number; readonly reason: string }

/** Folds in this very thread: for tests and small tools. */
export function foldInline(): Folding {
  return { fold: async (name, answers) => foldChunk(name, answers), close: async () => {} }
}

/** Half a million rows of a chunk live for a moment; without room they are copied by the garbage collector again and again. */
const YOUNG_HEAP_MB = 96

/**
 * Folds in a thread of their own, begun at the first fold: a board of 100,000 entries takes half a second, in which the main
 * thread would answer nobody. The thread loads no engine (one that loads chDB would close every connection at its end).
 */
export function foldInThread(): Folding {
  const waiting = new Map<number, { resolve: (rows: ChunkRows | 'again') => void; reject: (error: Error) => void }>()
  let thread: Worker | undefined
  let lastId = 0
  const begin = (): Worker => {
    const begun = new Worker(new URL('./fold-thread.js', import.meta.url), {
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_HEAP_MB }
    })
    const end = (reason: string) => {
      if (thread === begun) thread = undefined
      for (const { reject } of waiting.values()) reject(new Error(reason))
      waiting.clear()
    }
    const settle = (id: number) => {
      const asked = waiting.get(id)
      waiting.delete(id)
      // It keeps the process alive only while it works.
      if (waiting.size === 0) begun.unref()
      return asked
    }
    begun.on('error', (error) => end(`the thread of folds died: ${error.message}`))
    begun.on('exit', () => end('the thread of folds has ended'))
    begun.on('message', (message: FromFolder) => {
      const asked = settle(message.id)
      if ('rows' in message) asked?.resolve(message.rows)
      else asked?.reject(new Error(message.reason))
    })
    return begun
  }
  return {
    fold: (name, answers) =>
      new Promise((resolve, reject) => {
        thread ??= begin()
        lastId += 1
        waiting.set(lastId, { resolve, reject })
        thread.ref()
        thread.postMessage({ id: lastId, name, answers } satisfies ToFolder)
      }),
    close: async () => {
      if (thread === undefined) return
      const ended = once(thread, 'exit')
      await thread.terminate()
      await ended.catch(() => undefined)
    }
  }
}
