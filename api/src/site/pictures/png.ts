import { readFile } from 'node:fs/promises'
import { Worker } from 'node:worker_threads'

/** Each picture takes 40 ms of processor time. */
const WORKERS_MAX = 2
const WORKER = new URL('./png-worker.js', import.meta.url)
/** Sent where the drawing library cannot be loaded. */
const STATIC = new URL('../../../../src/site/card.png', import.meta.url)

/** Turns drawings into pictures, in threads of their own. */
export type PngMaker = { make(svg: string): Promise<Buffer>; plain(): Promise<Buffer>; close(): Promise<void> }

type Drawn = { readonly id: number; readonly png?: Uint8Array; readonly error?: string }
type Waiting = { resolve(png: Buffer): void; reject(error: Error): void }

/** Opens the maker. Threads start with the first picture. */
export function openPngMaker(): PngMaker {
  const workers: { readonly worker: Worker; readonly waiting: Map<number, Waiting> }[] = []
  let next = 0
  const start = () => {
    const worker = new Worker(WORKER)
    const waiting = new Map<number, Waiting>()
    worker.unref()
    worker.on('message', ({ id, png, error }: Drawn) => {
      const call = waiting.get(id)
      waiting.delete(id)
      if (png === undefined) call?.reject(new Error(error))
      else call?.resolve(Buffer.from(png))
    })
    const started = { worker, waiting }
    const end = (error: Error): void => {
      workers.splice(workers.indexOf(started), 1)
      for (const call of waiting.values()) call.reject(error)
    }
    worker.on('error', end)
    workers.push(started)
    return started
  }
  const plain = () => readFile(STATIC)
  return {
    plain,
    make: async (svg) => {
      const idle = workers.find(({ waiting }) => waiting.size === 0)
      const { worker, waiting } =
        idle ?? (workers.length < WORKERS_MAX ? start() : workers[next % WORKERS_MAX]) ?? start()
      next += 1
      const id = next
      const made = new Promise<Buffer>((resolve, reject) => waiting.set(id, { resolve, reject }))
      worker.postMessage({ id, svg })
      return await made.catch(plain)
    },
    close: async () => {
      await Promise.all(workers.map(({ worker }) => worker.terminate()))
    }
  }
}
