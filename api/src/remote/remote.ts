import { bulkhead, ConsecutiveBreaker, circuitBreaker, handleAll, wrap } from 'cockatiel'
import { Agent, request } from 'undici'

/*
 * remote   another service that answers depend on; it may be slow, broken or away, and must not take us with it
 */

/** From a question to the last byte of its answer. */
const TIMEOUT_MS = 3000
/** Failures in a row after which a remote is left alone, and for how long. */
const FAILURES_MAX = 5
export const LEFT_ALONE_MS = 5000
const QUESTIONS_AT_ONCE = 32
const QUESTIONS_WAITING = 256
const ANSWER_BYTES_MAX = 64 * 1024

export type RemoteQuestion = {
  /** Behind the remote's address. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** Posted, when given. */
  readonly body?: unknown
}

export type Remote = {
  /**
   * Asks, and reads the answer: `read` gives undefined for one that makes no sense. Rejects for that too, and when there
   * was no answer in time or too much is asked already. What was asked appears in no error.
   */
  ask<Answer>(question: RemoteQuestion, read: (status: number, json: unknown) => Answer | undefined): Promise<Answer>
  close(): Promise<void>
}

export type RemoteOptions = { readonly url: string; readonly timeoutMs?: number; readonly leftAloneMs?: number }

/** Nothing is asked here. */
export function openRemote({ url, timeoutMs = TIMEOUT_MS, leftAloneMs = LEFT_ALONE_MS }: RemoteOptions): Remote {
  const agent = new Agent({ connections: QUESTIONS_AT_ONCE, maxResponseSize: ANSWER_BYTES_MAX })
  const breaker = circuitBreaker(handleAll, {
    halfOpenAfter: leftAloneMs,
    breaker: new ConsecutiveBreaker(FAILURES_MAX)
  })
  const policy = wrap(bulkhead(QUESTIONS_AT_ONCE, QUESTIONS_WAITING), breaker)
  return {
    ask: ({ path, headers, body }, read) =>
      policy.execute(async () => {
        const answer = await request(`${url}${path}`, {
          dispatcher: agent,
          method: body === undefined ? 'GET' : 'POST',
          headers: { Accept: 'application/json', 'Content-Type': 'application/json', ...headers },
          body: body === undefined ? null : JSON.stringify(body),
          signal: AbortSignal.timeout(timeoutMs)
        })
        const understood = read(answer.statusCode, jsonOf(await answer.body.text()))
        if (understood === undefined) throw new Error(`the answer, of status ${answer.statusCode}, makes no sense`)
        return understood
      }),
    close: () => agent.destroy()
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
