import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** One round of load: the same request, repeated on each of several open connections, without pipelining. */
export type Round = {
  readonly port: number
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly connections: number
  readonly ms: number
}

export type HttpLoad = {
  /** Returns answers a second; rejects if the status of an answer is not 200. */
  run(round: Round): Promise<number>
  stop(): Promise<void>
}

/** Starts a separate process that sends requests: it takes at most one core from the servers. */
export function startHttpLoad(): HttpLoad {
  const child: ChildProcess = fork(fileURLToPath(new URL('./http-load-process.js', import.meta.url)))
  return {
    async run(round) {
      child.send(round)
      const [answer] = (await once(child, 'message')) as [{ rate: number } | { error: string }]
      if ('error' in answer) throw new Error(answer.error)
      return answer.rate
    },
    async stop() {
      const ended = once(child, 'exit')
      child.disconnect()
      await ended
    }
  }
}
