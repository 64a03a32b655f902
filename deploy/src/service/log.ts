import { type EmbeddedLog, openEmbeddedLog, openKafkaLog } from '@gamenet/engines/log'
import type { Log } from '@gamenet/ingest'
import type { LogReader } from '@gamenet/projector'
import { topics } from '@gamenet/schemas'

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
      readonly ssl?: boolean
      readonly sasl?: KafkaSasl | undefined
      readonly epoch: number
      readonly retentionMs?: number | undefined
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
    readonly files?: Pick<EmbeddedLog, 'heads' | 'copyTo'>
  }

/** The consumer group of all projectors of one installation. */
const LOADER_GROUP = 'gamenet-loader'

/**
 * Opens the log, and makes the topics that Kafka does not have yet. `role` tells Kafka's operators who is connected; `group` is
 * for who shares its partitions with no projector.
 */
export async function openLog(choice: LogChoice, role: string, group?: string): Promise<OpenLog> {
  if (choice.engine === 'lmdb') {
    const { path, epoch, retentionMs } = choice
    const log = openEmbeddedLog({ path, epoch, ...(retentionMs === undefined ? {} : { retentionMs }) })
    return { ...log, files: log }
  }
  const { brokers, topicPrefix, partitions, replicationFactor, ssl, sasl, epoch, retentionMs } = choice
  const log = await openKafkaLog({
    brokers: [...brokers],
    clientId: `gamenet-${role}`,
    groupId: group === undefined ? LOADER_GROUP : `${LOADER_GROUP}-${group}`,
    topicPrefix,
    partitions,
    replicationFactor,
    epoch,
    ...(ssl === true ? { ssl } : {}),
    ...(sasl === undefined ? {} : { sasl }),
    ...(retentionMs === undefined ? {} : { configEntries: { 'retention.ms': String(retentionMs) } })
  })
  await log.ensureTopics(topics.map((topic) => topic.name))
  return log
}
