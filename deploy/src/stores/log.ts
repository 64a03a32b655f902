import { type EmbeddedLog, type KafkaSasl, openEmbeddedLog, openKafkaLog } from '@gamenet/engines/log'
import type { Log } from '@gamenet/ingest'
import type { LogReader, ReloadShare } from '@gamenet/projector'
import { Failure, isFailure, topics, withTimeout } from '@gamenet/schemas'

/** The log to open. Plain data, because it is posted to the loader's thread. */
export type LogChoice =
  | {
      readonly engine: 'lmdb'
      readonly path: string
      readonly epoch: number
      readonly retentionMs?: number | undefined
    }
  | {
      readonly engine: 'kafka'
      readonly brokers: readonly string[]
      readonly topicPrefix: string
      readonly partitions: number
      readonly replicationFactor: number
      /** PEM texts; true: the machine's certificate authorities. */
      readonly ssl?: true | { readonly ca?: string; readonly cert?: string; readonly key?: string } | undefined
      readonly sasl?: KafkaSasl | undefined
      readonly epoch: number
      /** Settings of new topics. */
      readonly topicConfig?: Readonly<Record<string, string>>
    }

export type OpenLog = Log &
  LogReader & {
    /** The epoch of appends. */
    readonly epoch: number
    /** All epochs that can be read. */
    readonly epochs: readonly number[]
    close(): Promise<void>
    /** Present for an embedded log. */
    readonly files?: Pick<EmbeddedLog, 'heads' | 'copyTo' | 'check' | 'readApart'>
  }

/**
 * Returns the consumer group of all projectors of an installation. Installations on one Kafka have different prefixes:
 * in a shared group, each partition would go to one of them.
 */
export const loaderGroup = (topicPrefix: string): string => `${topicPrefix}loaders`

/** Longest wait for Kafka in a process that may start without it. */
export const AWAY_MS = 5000

export type OpenLogOptions = {
  /** For a reader that shares its partitions with no projector. */
  readonly group?: string | undefined
  /** A share of the partitions; other readers have the rest in groups of their own. */
  readonly share?: ReloadShare['share'] | undefined
  /** Called when the reader failed or was stuck and is replaced. */
  readonly onReplaced?: (reason: string) => void
  /** Creates no topics. */
  readonly isReading?: boolean
  /**
   * Called when Kafka is unavailable at the start, which is not a failure: topics are created before the first append.
   */
  readonly onUnavailable?: ((reason: string) => void) | undefined
}

/**
 * Opens the log and creates missing topics in Kafka, unless it is only read. Kafka's operators see `role` as the
 * client.
 */
export async function openLog(choice: LogChoice, role: string, options: OpenLogOptions = {}): Promise<OpenLog> {
  const { group, share } = options
  if (choice.engine === 'lmdb') {
    const { path, epoch, retentionMs } = choice
    const log = openEmbeddedLog({ path, epoch, ...(retentionMs === undefined ? {} : { retentionMs }) })
    return { ...log, files: log }
  }
  const { brokers, topicPrefix, partitions, replicationFactor, ssl, sasl, epoch, topicConfig } = choice
  const log = openKafkaLog({
    brokers: [...brokers],
    clientId: `gamenet-${role}`,
    groupId: [loaderGroup(topicPrefix), ...(group === undefined ? [] : [group])].join('-'),
    topicPrefix,
    partitions,
    replicationFactor,
    epoch,
    ...(share === undefined ? {} : { share }),
    onCrash: (error) => options.onReplaced?.(error.message),
    ...(ssl === undefined ? {} : { ssl }),
    ...(sasl === undefined ? {} : { sasl }),
    ...(topicConfig === undefined ? {} : { configEntries: topicConfig })
  })
  let creating: Promise<void> | undefined
  const makeTopics = (): Promise<void> => {
    creating ??= log.ensureTopics(topics.map((topic) => topic.name)).catch((error: unknown) => {
      creating = undefined
      throw error
    })
    return creating
  }
  const { onUnavailable } = options
  if (options.isReading === true) return { ...log, epoch, epochs: [epoch] }
  try {
    await (onUnavailable === undefined
      ? makeTopics()
      : withTimeout(makeTopics(), AWAY_MS, () => {
          throw new Failure('log_unreachable', `Kafka at ${brokers.join(',')} has not answered within ${AWAY_MS} ms`)
        }))
  } catch (error) {
    if (onUnavailable === undefined || !isFailure(error, 'log_unreachable')) {
      await log.close()
      throw error
    }
    onUnavailable(error.message)
  }
  return {
    ...log,
    epoch,
    epochs: [epoch],
    async append(topic, messages) {
      await makeTopics()
      await log.append(topic, messages)
    }
  }
}
