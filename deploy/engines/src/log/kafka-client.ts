import { createRequire } from 'node:module'
import { errorMessage, Failure, isFailure, parseJson, withTimeout } from '@gamenet/schemas'
import type { Kafka, KafkaConfig } from 'kafkajs'
import { patchKafkajs } from './kafkajs-patches.js'

/*
 * Workarounds for faults of kafkajs, which is no longer maintained. Only this folder imports it.
 */

const load = createRequire(import.meta.url)

/** Loads kafkajs on first use: it has 143 files, and most services use no Kafka. */
export const kafkajs = (): typeof import('kafkajs') => load('kafkajs')

type Credentials = { readonly username: string; readonly password: string }

/** How a client authenticates: plain data, since it is posted to threads. */
export type KafkaSasl = Credentials &
  (
    | { readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512' }
    | { readonly mechanism: 'oauthbearer'; readonly tokenUrl: string; readonly scope?: string | undefined }
  )

/**
 * 0.2 s before the first, doubled each time, at most 5 s: gives up after about 20 s, longer than a killed broker takes
 * to return.
 */
const RETRIES = 8

type KafkaClientOptions = Pick<KafkaConfig, 'brokers' | 'clientId' | 'ssl'> & {
  readonly sasl?: KafkaSasl | undefined
  readonly retries?: number | undefined
}

/** A silent kafkajs client with bounded waits; failures are reported as errors. */
export function kafkaClient({ sasl, retries = RETRIES, ...config }: KafkaClientOptions): Kafka {
  patchKafkajs()
  const { Kafka, logLevel } = kafkajs()
  return new Kafka({
    ...config,
    ...(sasl === undefined ? {} : { sasl: saslOptions(sasl) }),
    logLevel: logLevel.NOTHING,
    connectionTimeout: 5000,
    authenticationTimeout: 10_000,
    requestTimeout: 20_000,
    retry: { initialRetryTime: 200, maxRetryTime: 5000, factor: 0.2, multiplier: 2, retries }
  })
}

function saslOptions(sasl: KafkaSasl): NonNullable<KafkaConfig['sasl']> {
  if (sasl.mechanism !== 'oauthbearer') return { ...sasl } as NonNullable<KafkaConfig['sasl']>
  return { mechanism: 'oauthbearer', oauthBearerProvider: async () => ({ value: await accessToken(sasl) }) }
}

const TOKEN_MS = 5000

/**
 * Returns a new access token by OAuth client credentials (RFC 6749, 4.4). Every connection requests one when it
 * authenticates.
 */
async function accessToken(sasl: Extract<KafkaSasl, { mechanism: 'oauthbearer' }>): Promise<string> {
  const { tokenUrl, username, password, scope } = sasl
  const basic = Buffer.from(`${encodeURIComponent(username)}:${encodeURIComponent(password)}`).toString('base64')
  const body = new URLSearchParams({ grant_type: 'client_credentials', ...(scope === undefined ? {} : { scope }) })
  const headers = { authorization: `Basic ${basic}` }
  const answer = await fetch(tokenUrl, { method: 'POST', headers, body, signal: AbortSignal.timeout(TOKEN_MS) })
    .then(async (response) => ({ status: response.status, text: await response.text() }))
    .catch((cause: Error) => {
      throw new Failure(
        'log_unreachable',
        `KAFKA_SASL_TOKEN_URL (${tokenUrl}) cannot be reached: ${errorMessage(cause)}`
      )
    })
  const token = tokenIn(answer.text)
  if (answer.status === 200 && token !== undefined) return token
  throw new Failure(
    'log_unreachable',
    `KAFKA_SASL_TOKEN_URL (${tokenUrl}) answered ${answer.status} without an access token`
  )
}

/** Returns the access token of a token response (RFC 6749, 5.1); undefined for any other text. */
function tokenIn(text: string): string | undefined {
  const { access_token: token } = Object(parseJson(text))
  return typeof token === 'string' ? token : undefined
}

/** kafkajs's message for a client whose connected state is stale. */
const NOT_CONNECTED = 'Broker not connected'

/** Returns whether kafkajs would have retried: brokers that are unavailable, starting, or without enough replicas. */
export function isUnreachable(error: unknown): boolean {
  let innermost = error
  while (innermost instanceof Error && innermost.cause instanceof Error) {
    if (isFailure(innermost, 'log_unreachable')) return true
    innermost = innermost.cause
  }
  if (isFailure(innermost, 'log_unreachable')) return true
  // A client whose first request was not answered fails all others with this, even if the broker is available again.
  if (innermost instanceof Error && innermost.message === NOT_CONNECTED) return true
  return innermost instanceof Error && 'retriable' in innermost && innermost.retriable === true
}

/** Returns the failure of a request, with a code if the log is unavailable. */
export function requestFailure(cause: unknown, message: string): Error {
  return isUnreachable(cause) ? new Failure('log_unreachable', message, { cause }) : new Error(message, { cause })
}

/** Returns the answer, or rejects after `ms`: kafkajs can lose a request and wait forever. */
export async function answeredWithin<Answer>(ms: number, what: string, answer: Promise<Answer>): Promise<Answer> {
  return await withTimeout(answer, ms, () => {
    throw new Failure('log_unreachable', `${what} did not answer within ${ms} ms`)
  })
}

/**
 * Disconnects a client of kafkajs, and again after its running request: kafkajs retries an interrupted request over a
 * new connection that nobody would close.
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

/** Returns the innermost cause as a sentence: the outer errors of kafkajs only say that it gave up. */
export function kafkaReason(error: unknown): string {
  let innermost = error
  while (innermost instanceof Error && innermost.cause instanceof Error) innermost = innermost.cause
  return errorMessage(innermost)
}

/** Returns Kafka's name of an error, such as `UNKNOWN_TOPIC_OR_PARTITION`, from the error or any of its causes. */
export function kafkaErrorType(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('type' in at && typeof at.type === 'string') return at.type
  }
  return undefined
}
