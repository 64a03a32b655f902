import { openEmbeddedLog, openKafkaLog } from '@gamenet/engines/log'
import type { Log } from '@gamenet/ingest'
import type { LogReader } from '@gamenet/projector'
import { topics } from '@gamenet/schemas'

/** Which log to open: posted to the loader's thread too, so plain data. */
export type LogChoice =
  | { readonly engine: 'lmdb'; readonly path: string; readonly epoch: number }
  | {
      readonly engine: 'kafka'
      readonly brokers: readonly string[]
      readonly topicPrefix: string
      readonly partitions: number
      readonly replicationFactor: number
      readonly epoch: number
    }

export type OpenLog = Log & LogReader & { close(): Promise<void> }

/** The consumer group of all projectors of one installation. */
const LOADER_GROUP = 'gamenet-loader'

/** Opens the log, and makes the topics that Kafka does not have yet. `role` tells Kafka's operators who is connected. */
export async function openLog(choice: LogChoice, role: string): Promise<OpenLog> {
  if (choice.engine === 'lmdb') return openEmbeddedLog({ path: choice.path, epoch: choice.epoch })
  const { brokers, topicPrefix, partitions, replicationFactor, epoch } = choice
  const log = await openKafkaLog({
    brokers: [...brokers],
    clientId: `gamenet-${role}`,
    groupId: LOADER_GROUP,
    topicPrefix,
    partitions,
    replicationFactor,
    epoch
  })
  await log.ensureTopics(topics.map((topic) => topic.name))
  return log
}
