import { parentPort, workerData } from 'node:worker_threads'
import { runLoaderWorker } from '@gamenet/projector'
import { topics } from '@gamenet/schemas'
import { type LogChoice, openLog } from './log.js'

/** Where the loader's reading thread begins: it opens the log for itself and judges what it reads. */
if (parentPort === null) throw new Error('This file runs as the worker thread of a loader only')
const reader = await openLog(workerData as LogChoice, 'loader')
try {
  await runLoaderWorker({ port: parentPort, reader, topics })
} finally {
  await reader.close()
  parentPort.close()
}
