import { type ConsumeRequest, type LogMessage, type PartitionExtent, withSignals } from '@gamenet/schemas'
import { type KafkaLogOptions, openAdmin } from './kafka-admin.js'
import { openAppender } from './kafka-appender.js'
import { kafkaClient } from './kafka-client.js'
import { type KafkaReader, openKafkaReader } from './kafka-reader.js'

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
      await withSignals([signal, closing.signal], async ({ signal: stop }) => {
        const reader = openKafkaReader({ kafka, options, extents }, { ...request, signal: stop })
        readers.set(reader, reader.done)
        await reader.done.finally(() => readers.delete(reader))
      })
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
