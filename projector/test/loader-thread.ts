import { parentPort, workerData } from 'node:worker_threads'
import { openEmbeddedLog } from '@gamenet/engines/log'
import { topics } from '@gamenet/schemas'
import { runLoaderWorker } from '../src/index.js'

/** The entry of a reading thread on an embedded log, as a deployment has one. */
if (parentPort === null) throw new Error('This is the entry of a worker thread.')
const reader = openEmbeddedLog({ path: String(workerData) })
await runLoaderWorker({ port: parentPort, reader, topics })
await reader.close()
parentPort.close()
