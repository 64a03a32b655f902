import { parentPort, workerData } from 'node:worker_threads'
import type { ReloadShare } from '@gamenet/projector'
import { type FromReader, runLoaderWorker } from '@gamenet/projector/loader'
import { topics } from '@gamenet/schemas'
import { type LogChoice, openLog } from './log.js'

/** Data for the thread: the log and, if it reads only a share, that share. */
export type LoaderWorkerData = {
  readonly choice: LogChoice
  readonly only: ReloadShare | undefined
}

/**
 * The entry of the loader's reading thread: opens its own log and validates the records. It loads nothing else of the
 * projector.
 */
const port = parentPort
if (port === null) throw new Error('This file runs only as the worker thread of a loader')
const { choice, only } = workerData as LoaderWorkerData
const reader = await openLog(choice, 'loader', {
  group: only?.group,
  share: only?.share,
  onReplaced: (reason) => port.postMessage({ kind: 'replaced', reason } satisfies FromReader)
})
try {
  await runLoaderWorker({
    port,
    reader,
    topics: topics.filter(({ name }) => only === undefined || name === only.topic)
  })
} finally {
  await reader.close()
  port.close()
}
