import { Failure, isFailure, pause } from '@gamenet/schemas'
import type { Admin, Kafka, KafkaConfig } from 'kafkajs'
import {
  answeredWithin,
  disconnect,
  isUnreachable,
  type KafkaSasl,
  kafkaErrorType,
  kafkaReason,
  requestFailure
} from './kafka-client.js'
import type { KafkaReaderOptions } from './kafka-reader.js'
import { assertTopicName, positionNumber } from './partition.js'

/** The brokers' default: managed clusters refuse topics that allow more. */
export const MESSAGE_BYTES_MAX = 1_048_588
/** Keeps everything, and batches as they were sent, whatever the brokers' own default is. */
const TOPIC_CONFIG = {
  'retention.ms': '-1',
  'max.message.bytes': String(MESSAGE_BYTES_MAX),
  'compression.type': 'producer'
}
/** Maximum number of lookups of a new topic. */
const APPEAR_ATTEMPTS_MAX = 20
/** Delay before a failed request is repeated. */
const ASK_AGAIN_MS = 250
const PATIENCE_MS = 10_000
/** Longer than all retries of kafkajs; a request that takes longer is lost. */
export const ANSWER_MS = 60_000
/** Limit for running appends at the close, and for the disconnect. */
export const CLOSE_MS = 3000

export type KafkaLogOptions = KafkaReaderOptions & {
  /** `host:port` of the first brokers to contact. */
  readonly brokers: readonly string[]
  readonly clientId: string
  /** Partitions of topics that {@link KafkaLog.ensureTopics} creates. */
  readonly partitions: number
  readonly replicationFactor: number
  readonly ssl?: NonNullable<KafkaConfig['ssl']>
  readonly sasl?: KafkaSasl
  /** Further settings of new topics, such as `retention.ms`. Default: everything is kept. */
  readonly configEntries?: Readonly<Record<string, string>>
  /** How often kafkajs repeats a request to unavailable brokers. Default: 8 times, over about 20 s. */
  readonly retries?: number
  /**
   * Time limit for repeating requests that fail at once. A request that kafkajs itself repeats has taken longer when it
   * fails. Default: 10 s.
   */
  readonly patienceMs?: number
}

/** Topics and their offsets. */
export type TopicAdmin = {
  ensureTopics(topics: readonly string[], options: KafkaLogOptions): Promise<void>
  exists(topic: string): Promise<boolean>
  offsets(topic: string): Promise<{ partition: number; first: number; next: number }[]>
  close(): Promise<void>
}

/** Opens a client for topics and offsets; it connects at the first request. */
export function openAdmin(kafka: Kafka, { brokers, patienceMs }: KafkaLogOptions): TopicAdmin {
  let connected: { readonly admin: Promise<Admin>; readonly pending: Set<Promise<unknown>> } | undefined
  let isClosed = false
  const known = new Set<string>()
  const useOnce = async <T>(ask: (admin: Admin) => Promise<T>): Promise<T> => {
    if (isClosed) throw new Failure('log_unreachable', 'the log was closed before Kafka answered')
    connected ??= { admin: connectedAdmin(kafka, brokers), pending: new Set() }
    const used = connected
    try {
      const answer = trackPending(used.pending, used.admin.then(ask))
      return await answeredWithin(ANSWER_MS, `Kafka at ${brokers.join(',')}`, answer)
    } catch (error) {
      if (!isUnreachable(error)) throw error
      // The next request gets a new connection, whatever the outcome of this one.
      if (connected === used) connected = undefined
      void used.admin.then((admin) => disconnect(admin, used.pending)).catch(() => undefined)
      if (isFailure(error, 'log_unreachable')) throw error
      throw unreachable(brokers, error)
    }
  }
  const use = <T>(ask: (admin: Admin) => Promise<T>): Promise<T> =>
    patiently(
      () => useOnce(ask),
      () => isClosed,
      patienceMs
    )
  const topicNames = async (): Promise<Set<string>> => new Set(await use((admin) => listTopics(admin, brokers)))
  /** kafkajs retries for 14 seconds to read the offsets of a topic that does not exist. */
  const exists = async (topic: string): Promise<boolean> => {
    if (!known.has(topic)) for (const name of await topicNames()) known.add(name)
    return known.has(topic)
  }
  const appear = async (wanted: readonly string[]): Promise<boolean> => {
    for (let attempt = 0; attempt < APPEAR_ATTEMPTS_MAX; attempt += 1) {
      await pause(ASK_AGAIN_MS)
      const present = await topicNames()
      if (wanted.every((topic) => present.has(topic))) return true
    }
    return false
  }
  return {
    exists,
    async ensureTopics(topics, { partitions, replicationFactor, topicPrefix = '', configEntries = {} }) {
      for (const topic of topics) assertTopicName(topicPrefix + topic)
      const present = await topicNames()
      const missing = [...new Set(topics)].map((topic) => topicPrefix + topic).filter((topic) => !present.has(topic))
      if (missing.length === 0) return
      const entries = { ...TOPIC_CONFIG, ...configEntries }
      const config = Object.entries(entries).map(([name, value]) => ({ name, value }))
      try {
        await use((admin) =>
          admin.createTopics({
            waitForLeaders: true,
            topics: missing.map((topic) => ({
              topic,
              numPartitions: partitions,
              replicationFactor,
              configEntries: config
            }))
          })
        )
      } catch (error) {
        // A broker may not know a topic immediately after its creation.
        const isNotYetKnown = kafkaErrorType(error) === 'UNKNOWN_TOPIC_OR_PARTITION'
        if (isNotYetKnown && (await appear(missing))) return
        const code = isUnreachable(error) ? 'log_unreachable' : 'topics_refused'
        throw new Failure(code, `the topics ${missing.join(', ')} cannot be created: ${createReason(error)}`, {
          cause: error
        })
      }
    },
    async offsets(topic) {
      try {
        if (!(await exists(topic))) return []
        const offsets = await use((admin) => admin.fetchTopicOffsets(topic))
        return offsets
          .map(({ partition, low, high }) => ({ partition, first: positionNumber(low), next: positionNumber(high) }))
          .sort((a, b) => a.partition - b.partition)
      } catch (error) {
        known.delete(topic)
        throw requestFailure(error, `the offsets of topic ${topic} cannot be read: ${kafkaReason(error)}`)
      }
    },
    async close() {
      isClosed = true
      const { pending = [] } = connected ?? {}
      const ended = connected?.admin.then((admin) => disconnect(admin, pending))
      if (ended !== undefined) await answeredWithin(CLOSE_MS, 'Kafka', ended).catch(() => undefined)
    }
  }
}

async function connectedAdmin(kafka: Kafka, brokers: readonly string[]): Promise<Admin> {
  const admin = kafka.admin()
  try {
    await admin.connect()
  } catch (error) {
    await admin.disconnect().catch(() => {
      // It was never connected.
    })
    throw unreachable(brokers, error)
  }
  return admin
}

export function unreachable(brokers: readonly string[], cause: unknown): Failure {
  return new Failure('log_unreachable', `Kafka at ${brokers.join(',')} cannot be reached: ${kafkaReason(cause)}`, {
    cause
  })
}

/**
 * Repeats a request that failed at once for a temporary reason, such as the election of a leader: kafkajs gives up some
 * requests at the first failure.
 */
export async function patiently<T>(ask: () => Promise<T>, isOver: () => boolean, forMs = PATIENCE_MS): Promise<T> {
  const begun = performance.now()
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (!isUnreachable(error) || isOver() || performance.now() - begun > forMs) throw error
      await pause(ASK_AGAIN_MS)
    }
  }
}

/**
 * Returns the names of all topics. kafkajs treats a refusal by every broker as an answer, and then fails on it with a
 * TypeError; brokers refuse while a partition of any topic waits for its leader.
 */
async function listTopics(admin: Admin, brokers: readonly string[]): Promise<string[]> {
  try {
    return await admin.listTopics()
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw new Failure(
      'log_unreachable',
      `Kafka at ${brokers.join(',')} does not list its topics: it does not answer, disconnects repeatedly, or a ` +
        `partition has no leader`,
      { cause: error }
    )
  }
}

/** Keeps a request in a set until it has ended. */
export function trackPending<Answer>(pending: Set<Promise<unknown>>, answer: Promise<Answer>): Promise<Answer> {
  pending.add(answer)
  return answer.finally(() => pending.delete(answer))
}

/** Returns why topics cannot be created, and what to do. */
export function createReason(error: unknown): string {
  const errors = error instanceof Error && 'errors' in error && Array.isArray(error.errors) ? error.errors : [error]
  const is = (type: RegExp) => errors.some((each) => type.test(kafkaErrorType(each) ?? ''))
  const wayOut = is(/AUTHORIZATION_FAILED$/)
    ? '. Allow this user to create topics, or create them yourself: docs/operators/kafka.md'
    : is(/^INVALID_|^POLICY_VIOLATION$/)
      ? '. Check KAFKA_REPLICATION, KAFKA_PARTITIONS and KAFKA_TOPIC_CONFIG'
      : ''
  return [...new Set(errors.map(kafkaReason))].join('; ').replace(/\.$/, '') + wayOut
}
