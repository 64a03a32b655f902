import { Worker } from 'node:worker_threads'
import { callThread } from '@gamenet/schemas'
import type { CheckHost, CheckThread } from './check-thread.js'

/** Twice Node's default for a thread: with less, garbage collection takes a third of the time of unpacking. */
const YOUNG_HEAP_MB = 96

/** Calls a method of the thread. */
export type CheckCall = ReturnType<typeof callThread<CheckThread>>['call']

/** Runs `work` with the methods of a thread that checks files, and ends the thread afterwards. */
export async function withCheckThread<Result>(
  host: CheckHost,
  work: (call: CheckCall) => Promise<Result>
): Promise<Result> {
  const worker = new Worker(new URL('./check-thread.js', import.meta.url), {
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_HEAP_MB }
  })
  const { call } = callThread<CheckThread>(worker, host, { exited: 'the thread that checks files has ended' })
  try {
    return await work(call)
  } finally {
    await worker.terminate()
  }
}
