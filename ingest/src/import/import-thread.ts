import { parentPort, workerData } from 'node:worker_threads'
import { type PostedRequest, serveImport } from './import-worker.js'

/** Where the thread of an import begins. */
if (parentPort === null) throw new Error('This file runs as a worker thread of importInWorker only')
await serveImport(parentPort, workerData as PostedRequest)
parentPort.close()
