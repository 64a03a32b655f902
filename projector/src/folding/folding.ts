import { Worker } from 'node:worker_threads'
import { type Calls, callThread } from '@gamenet/schemas'
import type { ChunkAnswers, ChunkRows } from './fold-chunk.js'

/** Executes folds. */
export type Folding = {
  /**
   * Rejects when the fold throws or the thread dies; the next call starts a new thread. `again`: the reads are
   * inconsistent.
   */
  fold(name: string, answers: ChunkAnswers): Promise<ChunkRows | 'again'>
  /** Ends the thread. */
  close(): Promise<void>
}

/** The methods of the fold thread. */
export type FoldThread = { fold(name: string, answers: ChunkAnswers): ChunkRows | 'again' }

/**
 * Half a million rows of a chunk live for a moment; in a small young generation the garbage collector copies them
 * repeatedly.
 */
const YOUNG_HEAP_MB = 96

/**
 * Folds in a separate thread, started with the first fold: a board of 100,000 entries takes half a second, which would
 * block the main thread. The thread loads no engine.
 */
export function foldInThread(): Folding {
  let thread: { readonly worker: Worker; readonly calls: Calls<FoldThread> } | undefined
  const start = () => {
    const worker = new Worker(new URL('./fold-thread.js', import.meta.url), {
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_HEAP_MB }
    })
    const calls = callThread<FoldThread>(worker, {}, { exited: 'the thread of folds has ended' })
    const started = { worker, calls }
    const forget = () => {
      if (thread === started) thread = undefined
    }
    worker.on('error', forget).on('exit', forget)
    return started
  }
  return {
    fold: (name, answers) => {
      thread ??= start()
      return thread.calls.call('fold', name, answers)
    },
    close: async () => {
      await thread?.worker.terminate()
    }
  }
}
