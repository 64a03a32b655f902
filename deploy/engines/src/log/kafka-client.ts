import { createRequire } from 'node:module'
import { errorMessage, withTimeout } from '@gamenet/schemas'
import type { Kafka, KafkaConfig } from 'kafkajs'

/*
 * kafkajs is no longer maintained. Workarounds for its faults live in this folder; no other module imports it.
 */

const load = createRequire(import.meta.url)

/** Its 143 files are loaded where a Kafka is named: most services have none. */
export const kafkajs = (): typeof import('kafkajs') => load('kafkajs')

/** A silent kafkajs client with bounded waits; failures are reported as errors. */
export function kafkaClient(config: Pick<KafkaConfig, 'brokers' | 'clientId' | 'ssl' | 'sasl'>): Kafka {
  quietIdleQueues()
  const { Kafka, logLevel } = kafkajs()
  return new Kafka({
    ...config,
    logLevel: logLevel.NOTHING,
    connectionTimeout: 5000,
    authenticationTimeout: 10_000,
    requestTimeout: 20_000,
    // 0.2 s, doubled each time, 5 s at most: gives up after about 20 s, longer than a killed broker takes to return.
    retry: { initialRetryTime: 200, maxRetryTime: 5000, factor: 0.2, multiplier: 2, retries: 8 }
  })
}

/** A log that cannot be reached, or that does not answer, as against one that refuses what it is asked. */
export class LogUnreachable extends Error {}

/** What kafkajs says of a client that takes itself for connected, and is not. */
const NOT_CONNECTED = 'Broker not connected'

/** What kafkajs would try again, if it had not given up: brokers that are unavailable, starting, or without enough replicas. */
export function isUnreachable(error: unknown): boolean {
  let innermost = error
  while (innermost instanceof Error && innermost.cause instanceof Error) {
    if (innermost instanceof LogUnreachable) return true
    innermost = innermost.cause
  }
  if (innermost instanceof LogUnreachable) return true
  // One whose first question was not answered says so of every other, however well the broker is.
  if (innermost instanceof Error && innermost.message === NOT_CONNECTED) return true
  return innermost instanceof Error && 'retriable' in innermost && innermost.retriable === true
}

/** The answer, or a rejection when there is none in time: kafkajs can lose a request and wait forever. */
export async function answeredWithin<Answer>(ms: number, what: string, answer: Promise<Answer>): Promise<Answer> {
  return await withTimeout(answer, ms, () => {
    throw new LogUnreachable(`${what} did not answer within ${ms} ms`)
  })
}

/**
 * Disconnects a client of kafkajs, and once more behind what it is being asked: a question that is cut off it tries again, over
 * a connection that it opens for it and that nobody would close.
 */
export async function disconnect(
  client: { disconnect(): Promise<void> },
  answer: Iterable<Promise<unknown>>
): Promise<void> {
  const all = [...answer]
  const first = client.disconnect()
  void Promise.allSettled([first, ...all])
    .then(() => client.disconnect())
    .catch(() => {
      // It was disconnected before.
    })
  await first
}

/** The innermost cause in a sentence: the outer errors of kafkajs only say that it gave up. */
export function kafkaReason(error: unknown): string {
  let innermost = error
  while (innermost instanceof Error && innermost.cause instanceof Error) innermost = innermost.cause
  return errorMessage(innermost)
}

/** Kafka's own name of an error, such as `UNKNOWN_TOPIC_OR_PARTITION`, from the error or any of its causes. */
export function kafkaErrorType(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('type' in at && typeof at.type === 'string') return at.type
  }
  return undefined
}

type RequestQueue = { readonly pending: readonly unknown[]; scheduleCheckPendingRequests(): void }

let isQuiet = false

/**
 * A connection of kafkajs 2.2.4 without pending requests sets a timer of 1 ms repeatedly, about 58 ms of
 * CPU a second each. A check without anything pending does nothing, so it need not be planned: the next request that
 * has to wait plans it.
 */
function quietIdleQueues(): void {
  if (isQuiet) return
  isQuiet = true
  const queue: unknown = load('kafkajs/src/network/requestQueue')
  if (typeof queue !== 'function') return
  const prototype = queue.prototype as RequestQueue
  const schedule = prototype.scheduleCheckPendingRequests
  prototype.scheduleCheckPendingRequests = function (this: RequestQueue): void {
    if (this.pending.length > 0) schedule.call(this)
  }
}
