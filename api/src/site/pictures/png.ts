import { readFile } from 'node:fs/promises'
import { Worker } from 'node:worker_threads'
import { type Calls, callThread } from '@gamenet/schemas'
import type { Drawer } from './png-worker.js'

/** Each picture takes 40 ms of processor time. */
const WORKERS_MAX = 2
const WORKER = new URL('./png-worker.js', import.meta.url)
/** Sent where the drawing library cannot be loaded. */
const STATIC = new URL('../../../../src/site/card.png', import.meta.url)

/** Turns drawings into pictures, in threads of their own. */
export type PngMaker = { make(svg: string): Promise<Buffer>; close(): Promise<void> }

type Thread = { readonly worker: Worker; readonly calls: Calls<Drawer>; drawing: number }

/** Opens the maker. Threads start with the first picture. */
export function openPngMaker(): PngMaker {
  const threads: Thread[] = []
  const start = (): Thread => {
    const worker = new Worker(WORKER)
    const calls = callThread<Drawer>(worker, {}, { exited: 'The thread that draws pictures has ended.' })
    const thread = { worker, calls, drawing: 0 }
    worker.once('exit', () => threads.splice(threads.indexOf(thread), 1))
    threads.push(thread)
    return thread
  }
  return {
    make: async (svg) => {
      const idlest = threads.toSorted((a, b) => a.drawing - b.drawing)[0]
      const isEnough = idlest?.drawing === 0 || threads.length === WORKERS_MAX
      const thread = idlest !== undefined && isEnough ? idlest : start()
      thread.drawing += 1
      try {
        return Buffer.from(await thread.calls.call('draw', svg))
      } catch {
        return await readFile(STATIC)
      } finally {
        thread.drawing -= 1
      }
    },
    close: async () => {
      await Promise.all(threads.map(({ worker }) => worker.terminate()))
    }
  }
}
