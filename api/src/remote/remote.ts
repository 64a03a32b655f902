import { parseJson } from '@gamenet/schemas'
import { bulkhead, ConsecutiveBreaker, circuitBreaker, handleAll, wrap } from 'cockatiel'
import { Agent, request } from 'undici'

/*
 * remote   another service that answers depend on; its delays and failures must stay bounded for our clients
 */

/** From the request to the last byte of its answer. */
const TIMEOUT_MS = 3000
/** Consecutive failures after which a remote gets no requests, and for how long. */
const FAILURES_MAX = 5
export const CIRCUIT_OPEN_MS = 5000
const QUESTIONS_AT_ONCE = 32
const QUESTIONS_WAITING = 256
const ANSWER_BYTES_MAX = 64 * 1024

export type RemoteQuestion = {
  /** Appended to the remote's address. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** The JSON body of a POST; absent for a GET. */
  readonly body?: unknown
}

export type Remote = {
  /**
   * Sends a request; `read` returns undefined for an invalid answer. Rejects for an invalid answer, after a timeout,
   * and when too many requests wait. Errors contain no data of the request. An answer with invalid JSON is not a
   * failure of the remote: otherwise one caller with an odd name could block it for all callers.
   */
  ask<Answer>(question: RemoteQuestion, read: (status: number, json: unknown) => Answer | undefined): Promise<Answer>
  close(): Promise<void>
}

export type RemoteOptions = {
  readonly url: string
  readonly timeoutMs?: number
  readonly circuitOpenMs?: number
  /** Whether a 429 is about one of our callers. Default: about us, and a reason to send nothing for a while. */
  readonly hasCallers?: boolean
}

/** Opens a remote. No request is sent here. */
export function openRemote({
  url,
  timeoutMs = TIMEOUT_MS,
  circuitOpenMs = CIRCUIT_OPEN_MS,
  hasCallers = false
}: RemoteOptions): Remote {
  const agent = new Agent({ connections: QUESTIONS_AT_ONCE, maxResponseSize: ANSWER_BYTES_MAX })
  const breaker = circuitBreaker(handleAll, {
    halfOpenAfter: circuitOpenMs,
    breaker: new ConsecutiveBreaker(FAILURES_MAX)
  })
  const policy = wrap(bulkhead(QUESTIONS_AT_ONCE, QUESTIONS_WAITING), breaker)
  return {
    async ask(question, read) {
      const { status, json } = await policy.execute(() => answerOf(question, { url, agent, timeoutMs, hasCallers }))
      const understood = read(status, json)
      if (understood === undefined) throw nonsense(status)
      return understood
    },
    close: () => agent.destroy()
  }
}

type Target = { readonly url: string; readonly agent: Agent; readonly timeoutMs: number; readonly hasCallers: boolean }

/**
 * Returns the remote's answer, with `json` undefined for other text. Rejects if the remote fails: no answer, a proxy's
 * page instead of one, a server error, a redirect. A 4xx is about this request: a caller can provoke it for itself.
 */
async function answerOf(
  { path, headers, body }: RemoteQuestion,
  { url, agent, timeoutMs, hasCallers }: Target
): Promise<{ status: number; json: unknown }> {
  const { status, text } = await request(`${url}${path}`, {
    dispatcher: agent,
    method: body === undefined ? 'GET' : 'POST',
    headers: { Accept: 'application/json', 'Content-Type': 'application/json', ...headers },
    body: body === undefined ? null : JSON.stringify(body),
    signal: AbortSignal.timeout(timeoutMs)
  })
    .then(async (answer) => ({ status: answer.statusCode, text: await answer.body.text() }))
    .catch((error: unknown) => {
      // The original error may contain bytes of the answer, and with them the request.
      throw new Error(error instanceof Error ? `${error.name}: ${error.message}` : 'no answer')
    })
  const json = parseJson(text)
  const isRefused = status >= 400 && status < 500 && (status !== 429 || hasCallers)
  if (!isRefused && (json === undefined || status < 200 || status >= 300)) throw nonsense(status)
  return { status, json }
}

const nonsense = (status: number): Error => new Error(`the answer, of status ${status}, is invalid`)
