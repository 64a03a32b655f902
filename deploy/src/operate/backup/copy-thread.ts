import { parentPort } from 'node:worker_threads'
import { openCalls } from '@gamenet/schemas'
import { type Copied, type CopyRequest, copyHere } from './copy-here.js'

/*
 * This thread copies and hashes files, so that the service does not wait for the disk.
 */

export type CopyThread = { copy(request: CopyRequest): Copied }
export type CopyHost = {
  /** Called with the number of bytes copied since the last call. */
  copied(bytes: number): void
}

if (parentPort === null) throw new Error('this file runs only as a worker thread')
const host = openCalls<CopyHost>(parentPort, {
  copy: (request) => copyHere(request, (bytes) => host.notify('copied', bytes))
} satisfies CopyThread)
