import { Worker } from 'node:worker_threads'
import { callThread } from '@gamenet/schemas'
import type { Copied, CopyRequest } from './copy-here.js'
import type { CopyHost, CopyThread } from './copy-thread.js'

/** Copies in a separate thread. Rejects with the signal's reason when it aborts, and with errors of the disk. */
export async function copyFiles(
  request: CopyRequest,
  { signal, onBytes }: { readonly signal: AbortSignal; readonly onBytes: CopyHost['copied'] }
): Promise<Copied> {
  signal.throwIfAborted()
  const worker = new Worker(new URL('./copy-thread.js', import.meta.url))
  const host: CopyHost = { copied: onBytes }
  const { call } = callThread<CopyThread>(worker, host, { exited: 'the thread that copies files has ended' })
  const abort = (): void => {
    void worker.terminate()
  }
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await call('copy', request)
  } catch (error) {
    signal.throwIfAborted()
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
    await worker.terminate()
  }
}
