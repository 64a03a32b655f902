import { parentPort } from 'node:worker_threads'
import { errorMessage } from '@gamenet/schemas'
import { foldChunk } from './fold-chunk.js'
import type { FromFolder, ToFolder } from './folding.js'

/** Where the thread of folds begins. */
const port = parentPort
if (port === null) throw new Error('This file runs as the thread of folds only')
port.on('message', ({ id, name, answers }: ToFolder) => {
  try {
    const rows = foldChunk(name, answers)
    const buffers = rows === 'again' ? [] : Object.values(rows).map(({ body }) => body.buffer)
    port.postMessage({ id, rows } satisfies FromFolder, buffers)
  } catch (error) {
    port.postMessage({ id, reason: errorMessage(error) } satisfies FromFolder)
  }
})
