import { Worker } from 'node:worker_threads'
import type { CopyMessage, CopyRequest } from './copy-thread.js'

export type Copied = { readonly files: number; readonly bytes: number; readonly differs: string | null }

/** Copies in a thread of its own; rejects with the signal's reason when that aborts, and with what the disk says. */
export function copyFiles(
  request: CopyRequest,
  { signal, onBytes }: { readonly signal: AbortSignal; readonly onBytes: (bytes: number) => void }
): Promise<Copied> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const worker = new Worker(new URL('./copy-thread.js', import.meta.url), { workerData: request })
    const abort = (): void => {
      void worker.terminate()
    }
    let copied: Copied | undefined
    signal.addEventListener('abort', abort, { once: true })
    worker.on('message', (message: CopyMessage) => {
      if (message.kind === 'bytes') onBytes(message.bytes)
      else if (message.kind === 'done') copied = { files: message.files, bytes: message.bytes, differs: null }
      else copied = { files: 0, bytes: 0, differs: message.why }
    })
    worker.on('error', reject)
    worker.on('exit', () => {
      signal.removeEventListener('abort', abort)
      if (copied !== undefined) resolve(copied)
      else reject(signal.aborted ? signal.reason : new Error('the thread that copies files has ended'))
    })
  })
}
