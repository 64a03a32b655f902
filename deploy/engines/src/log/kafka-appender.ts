import { Failure, type LogMessage } from '@gamenet/schemas'
import type { Kafka, Producer } from 'kafkajs'
import {
  ANSWER_MS,
  CLOSE_MS,
  type KafkaLogOptions,
  MESSAGE_BYTES_MAX,
  patiently,
  type TopicAdmin
} from './kafka-admin.js'
import { answeredWithin, disconnect, kafkaErrorType, kafkajs, kafkaReason, requestFailure } from './kafka-client.js'
import { metadataMs } from './kafka-reader.js'
import { assertTopicName } from './partition.js'

const WAITING_APPENDS_MAX = 10_000
/**
 * Maximum size of a request before compression, because sealed events hardly compress. A longer append is several
 * requests.
 */
const SEND_CHARACTERS_MAX = 768 * 1024
const SEND_MESSAGES_MAX = 20_000

type WaitingAppend = {
  readonly topic: string
  readonly messages: readonly LogMessage[]
  resolve(): void
  reject(error: Error): void
}

export type Appender = {
  append(topic: string, messages: readonly LogMessage[]): Promise<void>
  /** Resolves when no append waits: each was sent, or refused after the time limit. */
  rest(): Promise<void>
  close(): Promise<void>
}

/** Sends one request at a time, so that calls keep their order when kafkajs retries. */
export function openAppender(kafka: Kafka, admin: TopicAdmin, options: KafkaLogOptions): Appender {
  const { brokers, topicPrefix = '' } = options
  const waiting: WaitingAppend[] = []
  let sending: Promise<void> | undefined
  let producer: Producer | undefined
  let sent = Promise.resolve()
  let isAtRest = false

  const connected = async (): Promise<Producer> => {
    if (isAtRest) throw new Failure('log_unreachable', 'the log was closed before Kafka answered')
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
      else append.reject(appendFailure(new Error('create the topic first'), append.topic, brokers))
    }
    return others
  }
  const send = async (group: readonly WaitingAppend[]): Promise<void> => {
    const sender = await patiently(connected, () => isAtRest, options.patienceMs)
    for (const messages of requestsOf(topicMessages(group, topicPrefix)))
      await sender.sendBatch({
        acks: -1,
        compression: kafkajs().CompressionTypes.GZIP,
        topicMessages: messages
      })
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
      if (waiting.length >= WAITING_APPENDS_MAX)
        throw new Error(`${WAITING_APPENDS_MAX} appends wait for Kafka at ${brokers.join(',')}: append more slowly`)
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
      for (const { reject } of waiting.splice(0))
        reject(new Failure('log_unreachable', 'the log was closed before Kafka answered'))
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

const charactersOf = ({ key, value }: LogMessage): number => key.length + value.length

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
  return requestFailure(
    error,
    `Kafka at ${brokers.join(',')} refused an append to ${topic}: ${kafkaReason(error)}${wayOut}`
  )
}
