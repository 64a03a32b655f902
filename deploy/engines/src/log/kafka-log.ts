import { type ConsumeRequest, type LogMessage, type PartitionExtent, pause } from '@gamenet/schemas'
import type { Admin, Kafka, KafkaConfig, Producer } from 'kafkajs'
import {
  answeredWithin,
  disconnect,
  isUnreachable,
  type KafkaSasl,
  kafkaClient,
  kafkaErrorType,
  kafkajs,
  kafkaReason,
  LogUnreachable
} from './kafka-client.js'
import { type KafkaReader, type KafkaReaderOptions, metadataMs, openKafkaReader } from './kafka-reader.js'
import { assertTopicName, positionNumber } from './partition.js'

/** The brokers' default: managed clusters refuse topics that allow more. */
const MESSAGE_BYTES_MAX = 1_048_588
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
const WAITING_APPENDS_MAX = 10_000
/** Maximum size of a request before compression, which sealed events hardly profit from. A longer append is several requests. */
const SEND_CHARACTERS_MAX = 768 * 1024
const SEND_MESSAGES_MAX = 20_000
/** Longer than all retries of kafkajs; a request that takes longer is lost. */
const ANSWER_MS = 60_000
/** Limit for running appends at the close, and for the disconnect. */
const CLOSE_MS = 3000

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

/** A log in a Kafka cluster. */
export type KafkaLog = {
  /** Creates missing topics and leaves the others unchanged. */
  ensureTopics(topics: readonly string[]): Promise<void>
  /**
   * Resolves when all in-sync replicas have the messages. Calls keep their order; simultaneous ones are sent together.
   * Gives up after 20 to 40 seconds of retries; some of the messages may have been written then. Rejects with a
   * `LogUnreachable` if a later attempt may succeed.
   */
  append(topic: string, messages: readonly LogMessage[]): Promise<void>
  /** Returns the extents of all partitions; none for a topic that does not exist. */
  extents(topic: string): Promise<readonly PartitionExtent[]>
  /**
   * Delivers the partitions that the group assigns to this process from `startAt`, regardless of the group's committed
   * offsets. A start of 0 means the oldest stored offset. At any other start that is not stored the partition stalls:
   * `onStall` is called, and `startAt` is polled until it returns a stored offset; without `onStall` the call rejects.
   * A consumer that crashes or stalls is replaced. Missing topics are created.
   */
  consume(request: ConsumeRequest): Promise<void>
  /**
   * Commits for the group, never to a lower offset. Never rejects for an answer of Kafka; the next commit covers it.
   */
  commit(topic: string, position: { epoch: number; partition: number; next: number }): Promise<void>
  /** Ends all `consume` calls, waits for running appends, disconnects. Later calls reject. */
  close(): Promise<void>
}

/** Opens a log in a Kafka cluster. Connects at the first use. */
export function openKafkaLog(options: KafkaLogOptions): KafkaLog {
  const { brokers, clientId, ssl, sasl, topicPrefix = '', epoch } = options
  if (brokers.length === 0) throw new Error('brokers is empty, expected at least one host:port')
  const kafka = kafkaClient({
    brokers: [...brokers],
    clientId,
    retries: options.retries,
    ...(ssl === undefined ? {} : { ssl }),
    ...(sasl === undefined ? {} : { sasl })
  })
  const closing = new AbortController()
  const admin = openAdmin(kafka, options)
  const appender = openAppender(kafka, admin, options)
  const readers = new Map<KafkaReader, Promise<void>>()
  const refuseWhenClosed = (): void => {
    if (closing.signal.aborted) throw new Error(`the log on Kafka at ${brokers.join(',')} is closed`)
  }
  const extents = async (topic: string): Promise<readonly PartitionExtent[]> => {
    const offsets = await admin.offsets(topicPrefix + topic)
    return offsets.map((offset) => ({ epoch, ...offset }))
  }
  const ensureTopics = (topics: readonly string[]): Promise<void> => admin.ensureTopics(topics, options)
  return {
    async ensureTopics(topics) {
      refuseWhenClosed()
      await ensureTopics(topics)
    },
    async append(topic, messages) {
      refuseWhenClosed()
      await appender.append(topic, messages)
    },
    async extents(topic) {
      refuseWhenClosed()
      return extents(topic)
    },
    async consume({ signal, ...request }) {
      refuseWhenClosed()
      await ensureTopics(request.topics)
      const stop = AbortSignal.any([signal, closing.signal])
      const reader = openKafkaReader({ kafka, options, extents }, { ...request, signal: stop })
      readers.set(reader, reader.done)
      await reader.done.finally(() => readers.delete(reader))
    },
    async commit(topic, { epoch: of, partition, next }) {
      refuseWhenClosed()
      if (of !== epoch) return
      await Promise.all([...readers.keys()].map((reader) => reader.commit(topic, partition, next)))
    },
    async close() {
      if (closing.signal.aborted) return
      closing.abort()
      await Promise.allSettled(readers.values())
      // Waiting appends may still look up their topic.
      await appender.rest()
      await Promise.all([appender.close(), admin.close()])
    }
  }
}

type TopicAdmin = {
  ensureTopics(topics: readonly string[], options: KafkaLogOptions): Promise<void>
  exists(topic: string): Promise<boolean>
  offsets(topic: string): Promise<{ partition: number; first: number; next: number }[]>
  close(): Promise<void>
}

function openAdmin(kafka: Kafka, { brokers, patienceMs }: KafkaLogOptions): TopicAdmin {
  let connected: { readonly admin: Promise<Admin>; readonly pending: Set<Promise<unknown>> } | undefined
  let isClosed = false
  const known = new Set<string>()
  const useOnce = async <T>(ask: (admin: Admin) => Promise<T>): Promise<T> => {
    if (isClosed) throw new LogUnreachable('the log was closed before Kafka answered')
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
      if (error instanceof LogUnreachable) throw error
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
        const Failure = isUnreachable(error) ? LogUnreachable : Error
        throw new Failure(`the topics ${missing.join(', ')} cannot be created: ${createReason(error)}`, {
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
        const Failure = isUnreachable(error) ? LogUnreachable : Error
        throw new Failure(`the extents of topic ${topic} cannot be read: ${kafkaReason(error)}`, { cause: error })
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

function unreachable(brokers: readonly string[], cause: unknown): LogUnreachable {
  return new LogUnreachable(`Kafka at ${brokers.join(',')} cannot be reached: ${kafkaReason(cause)}`, { cause })
}

/**
 * Repeats a request that failed at once for a temporary reason, such as the election of a leader: kafkajs gives up some
 * requests at the first failure.
 */
async function patiently<T>(ask: () => Promise<T>, isOver: () => boolean, forMs = PATIENCE_MS): Promise<T> {
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
    throw new LogUnreachable(
      `Kafka at ${brokers.join(',')} does not list its topics: it does not answer, disconnects repeatedly, or a partition has no leader`,
      { cause: error }
    )
  }
}

/** Keeps a request in a set until it has ended. */
function trackPending<Answer>(pending: Set<Promise<unknown>>, answer: Promise<Answer>): Promise<Answer> {
  pending.add(answer)
  return answer.finally(() => pending.delete(answer))
}

/** Returns why topics cannot be created, and what to do. */
export function createReason(error: unknown): string {
  const errors = error instanceof Error && 'errors' in error && Array.isArray(error.errors) ? error.errors : [error]
  const isForbidden = errors.some((each) => /AUTHORIZATION_FAILED$/.test(kafkaErrorType(each) ?? ''))
  const wayOut = isForbidden
    ? '. Allow this user to create topics, or create them yourself: docs/operators/kafka.md'
    : ''
  return [...new Set(errors.map(kafkaReason))].join('; ').replace(/\.$/, '') + wayOut
}

type WaitingAppend = {
  readonly topic: string
  readonly messages: readonly LogMessage[]
  resolve(): void
  reject(error: Error): void
}

type Appender = {
  append(topic: string, messages: readonly LogMessage[]): Promise<void>
  /** Resolves when no append waits: each was sent, or refused after the time limit. */
  rest(): Promise<void>
  close(): Promise<void>
}

/** Sends one request at a time, so that calls keep their order whatever kafkajs retries. */
function openAppender(kafka: Kafka, admin: TopicAdmin, options: KafkaLogOptions): Appender {
  const { brokers, topicPrefix = '' } = options
  const waiting: WaitingAppend[] = []
  let sending: Promise<void> | undefined
  let producer: Producer | undefined
  let sent = Promise.resolve()
  let isAtRest = false

  const connected = async (): Promise<Producer> => {
    if (isAtRest) throw new LogUnreachable('the log was closed before Kafka answered')
    if (producer !== undefined) return producer
    const fresh = newProducer(kafka, options)
    producer = fresh
    try {
      await fresh.connect()
      return fresh
    } catch (error) {
      if (producer === fresh) discard()
      throw error
    }
  }
  /** A producer that lost its sequence numbers refuses everything; the next append gets a new one. */
  const discard = (): void => {
    const failed = producer
    producer = undefined
    if (failed === undefined) return
    disconnect(failed, [sent]).catch(() => {
      // Its connection was closed with it.
    })
  }
  /** Returns the group's appends whose topic exists; rejects the others, which block no others. */
  const sendable = async (group: readonly WaitingAppend[]): Promise<WaitingAppend[]> => {
    const others: WaitingAppend[] = []
    for (const append of group) {
      if (await admin.exists(topicPrefix + append.topic)) others.push(append)
      else append.reject(appendFailure(new Error('the topic has to be created first'), append.topic, brokers))
    }
    return others
  }
  const send = async (group: readonly WaitingAppend[]): Promise<void> => {
    const sender = await patiently(connected, () => isAtRest, options.patienceMs)
    for (const messages of requestsOf(topicMessages(group, topicPrefix))) {
      await sender.sendBatch({
        acks: -1,
        compression: kafkajs().CompressionTypes.GZIP,
        topicMessages: messages
      })
    }
  }
  const sendAll = async (): Promise<void> => {
    while (waiting.length > 0) {
      const group = nextGroup(waiting)
      try {
        const present = await sendable(group)
        if (present.length === 0) continue
        sent = send(present)
        await answeredWithin(ANSWER_MS, `Kafka at ${brokers.join(',')}`, sent)
        for (const append of present) append.resolve()
      } catch (error) {
        discard()
        for (const append of group) append.reject(appendFailure(error, append.topic, brokers))
      }
    }
  }
  const startSending = (): void => {
    sending ??= sendAll().finally(() => {
      sending = undefined
      if (waiting.length > 0) startSending()
    })
  }
  return {
    async append(topic, messages) {
      assertTopicName(topic)
      if (messages.length === 0) return
      if (waiting.length >= WAITING_APPENDS_MAX) {
        throw new Error(`${WAITING_APPENDS_MAX} appends wait for Kafka at ${brokers.join(',')}: append more slowly`)
      }
      await new Promise<void>((resolve, reject) => {
        waiting.push({ topic, messages, resolve, reject })
        startSending()
      })
    },
    async rest() {
      const allSent = async (): Promise<void> => {
        while (sending !== undefined) await sending
      }
      await answeredWithin(CLOSE_MS, 'Kafka', allSent()).catch(() => undefined)
      isAtRest = true
      for (const { reject } of waiting.splice(0)) reject(new LogUnreachable('the log was closed before Kafka answered'))
    },
    async close() {
      if (producer !== undefined)
        await answeredWithin(CLOSE_MS, 'Kafka', disconnect(producer, [sent])).catch(() => undefined)
    }
  }
}

function newProducer(kafka: Kafka, options: KafkaLogOptions): Producer {
  return kafka.producer({
    idempotent: true,
    maxInFlightRequests: 1,
    allowAutoTopicCreation: false,
    metadataMaxAge: metadataMs(options),
    createPartitioner: kafkajs().Partitioners.DefaultPartitioner
  })
}

/** Returns the appends from the front that fit into one request; at least one. */
function nextGroup(waiting: WaitingAppend[]): WaitingAppend[] {
  let characters = 0
  let messages = 0
  let count = 0
  for (const append of waiting) {
    for (const message of append.messages) characters += charactersOf(message)
    messages += append.messages.length
    if (count > 0 && (characters > SEND_CHARACTERS_MAX || messages > SEND_MESSAGES_MAX)) break
    count += 1
  }
  return waiting.splice(0, count)
}

function charactersOf({ key, value }: LogMessage): number {
  return key.length + value.length
}

type TopicMessages = { readonly topic: string; readonly messages: LogMessage[] }

/** Splits an append that is too long for one request; appends that fit are one request. */
function requestsOf(all: TopicMessages[]): TopicMessages[][] {
  const [first, ...others] = all
  if (first === undefined || others.length > 0) return [all]
  const requests: TopicMessages[][] = []
  let characters = Number.POSITIVE_INFINITY
  for (const message of first.messages) {
    characters += charactersOf(message)
    if (characters > SEND_CHARACTERS_MAX) {
      requests.push([{ topic: first.topic, messages: [] }])
      characters = charactersOf(message)
    }
    requests.at(-1)?.[0]?.messages.push(message)
  }
  return requests
}

function topicMessages(group: readonly WaitingAppend[], topicPrefix: string): TopicMessages[] {
  const byTopic = new Map<string, LogMessage[]>()
  for (const { topic, messages } of group) {
    const before = byTopic.get(topic)
    if (before === undefined) byTopic.set(topic, [...messages])
    else for (const message of messages) before.push(message)
  }
  return [...byTopic].map(([topic, messages]) => ({ topic: topicPrefix + topic, messages }))
}

function appendFailure(error: unknown, topic: string, brokers: readonly string[]): Error {
  const type = kafkaErrorType(error)
  const wayOut =
    type === 'MESSAGE_TOO_LARGE'
      ? ` (raise max.message.bytes of the topic; topics created by this program allow ${MESSAGE_BYTES_MAX})`
      : ''
  const Failure = isUnreachable(error) ? LogUnreachable : Error
  return new Failure(`Kafka at ${brokers.join(',')} refused an append to ${topic}: ${kafkaReason(error)}${wayOut}`, {
    cause: error
  })
}
