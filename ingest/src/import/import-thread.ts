import { parentPort } from 'node:worker_threads'
import { type Calls, openCalls, packMessages } from '@gamenet/schemas'
import { runImport } from './import-run.js'
import type { ImportHost, ImportThread } from './import-worker.js'

if (parentPort === null) throw new Error('This file runs only as a worker thread of importInWorker')
const abort = new AbortController()
const host: Calls<ImportHost> = openCalls(parentPort, {
  run: (request) =>
    runImport(request, {
      log: { append: (topic, messages) => host.call('append', topic, packMessages(messages)) },
      people: {
        seals: (usernames) => host.call('seals', [...usernames]),
        passedOver: (topic, events) => host.notify('passedOver', topic, events)
      },
      known: (importId) => host.call('known', importId),
      onProgress: (progress) => host.notify('progress', progress),
      signal: abort.signal
    }),
  abort: () => abort.abort()
} satisfies ImportThread)
