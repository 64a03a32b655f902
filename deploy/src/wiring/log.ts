import { type EmbeddedLog, LogUnreachable, openEmbeddedLog, openKafkaLog } from '@gamenet/engines/log'
import type { Log } from '@gamenet/ingest'
import type { LogReader, ReloadShare } from '@gamenet/projector'
import { topics, withTimeout } from '@gamenet/schemas'

/** Which log to open: posted to the loader's thread too, so plain data. */
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
      /** PEM texts; true: what the machine trusts. */
      readonly ssl?: true | { readonly ca?: string; readonly cert?: string; readonly key?: string } | undefined
      readonly sasl?: KafkaSasl | undefined
      readonly epoch: number
      /** Settings of topics that are made. */
      readonly topicConfig?: Readonly<Record<string, string>>
    }

type Credentials = { readonly username: string; readonly password: string }

export type KafkaSasl =
  | ({ readonly mechanism: 'plain' } & Credentials)
  | ({ readonly mechanism: 'scram-sha-256' } & Credentials)
  | ({ readonly mechanism: 'scram-sha-512' } & Credentials)

export type OpenLog = Log &
  LogReader & {
    close(): Promise<void>
    /** Of an embedded log alone. */
    readonly files?: Pick<EmbeddedLog, 'heads' | 'copyTo' | 'check'>
  }

/** The consumer group of all projectors of one installation. */
const LOADER_GROUP = 'gamenet-loader'

/** Who may start without Kafka waits for it no longer than this. */
const AWAY_MS = 5000

export type OpenLogOptions = {
  /** For who shares its partitions with no projector. */
  readonly group?: string | undefined
  /** Of the partitions, where others read the rest in groups of their own. */
  readonly share?: ReloadShare['share'] | undefined
  /** Told when what reads the log failed or stood still and is replaced. */
  readonly onReplaced?: (reason: string) => void
  /** Called when Kafka is unavailable at the start. That is no failure: the topics are created before the first append. */
  readonly onUnavailable?: ((reason: string) => void) | undefined
}

/** Opens the log, and creates the topics that Kafka does not have yet. Kafka's operators see `role` as the client. */
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
    groupId: group === undefined ? LOADER_GROUP : `${LOADER_GROUP}-${group}`,
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
  try {
    await (onUnavailable === undefined
      ? makeTopics()
      : withTimeout(makeTopics(), AWAY_MS, () => {
          throw new LogUnreachable(`Kafka at ${brokers.join(',')} has not answered within ${AWAY_MS} ms`)
        }))
  } catch (error) {
    if (onUnavailable === undefined || !(error instanceof LogUnreachable)) {
      await log.close()
      throw error
    }
    onUnavailable(error.message)
  }
  return {
    ...log,
    async append(topic, messages) {
      await makeTopics()
      await log.append(topic, messages)
    }
  }
}
