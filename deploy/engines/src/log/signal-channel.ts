import { BroadcastChannel } from 'node:worker_threads'

/** Covers appends of other processes, which send no signal. */
const POLL_MS = 1000

/** Wakes all readers of one log in every thread of this process. Keeps no process alive. */
export type SignalChannel = ReturnType<typeof openSignalChannel>

/** Opens the channel of the log at `path`, an absolute path. */
export function openSignalChannel(path: string) {
  const channel = new BroadcastChannel(`gamenet-log:${path}`)
  const waiting = new Set<() => void>()
  let signals = 0
  const wakeAll = (): void => {
    signals += 1
    for (const wake of [...waiting]) wake()
  }
  channel.onmessage = wakeAll
  // Missing in the types of Node 20, although present since 15.4.
  ;(channel as unknown as { unref(): void }).unref()
  return {
    /** Notifies all threads of an append. */
    notify() {
      wakeAll()
      channel.postMessage('appended')
    },
    /** Returns the number of signals so far. */
    received: () => signals,
    /** Resolves at a signal after the first `received` ones, when `signal` aborts, or after a second. */
    wait(received: number, signal: AbortSignal): Promise<void> {
      if (signals > received || signal.aborted) return Promise.resolve()
      return new Promise((resolve) => {
        const wake = (): void => {
          waiting.delete(wake)
          clearTimeout(timer)
          signal.removeEventListener('abort', wake)
          resolve()
        }
        const timer = setTimeout(wake, POLL_MS).unref()
        waiting.add(wake)
        signal.addEventListener('abort', wake)
      })
    },
    close() {
      wakeAll()
      channel.close()
    }
  }
}
