import { readFile } from 'node:fs/promises'
import { errorCode } from '@gamenet/schemas'
import { type Config, FailureError, UsageError } from '../config.js'
import type { KafkaSasl, LogChoice } from './log.js'

const DAY_MS = 86_400_000

type KafkaChoice = Extract<LogChoice, { engine: 'kafka' }>

/**
 * Returns the configured log, with the content of the files that the configuration names. `path` is the file of an
 * embedded log.
 */
export async function readLogChoice(config: Config, path: string): Promise<LogChoice> {
  const epoch = config.LOG_EPOCH
  const retentionMs = config.LOG_RETENTION_DAYS === undefined ? undefined : config.LOG_RETENTION_DAYS * DAY_MS
  if (config.KAFKA_BROKERS === undefined) return { engine: 'lmdb', path, epoch, retentionMs }
  return {
    engine: 'kafka',
    brokers: config.KAFKA_BROKERS,
    topicPrefix: config.KAFKA_TOPIC_PREFIX,
    partitions: config.KAFKA_PARTITIONS,
    replicationFactor: config.KAFKA_REPLICATION,
    ssl: await sslOf(config),
    sasl: await saslOf(config),
    epoch,
    topicConfig: {
      ...(retentionMs === undefined ? {} : { 'retention.ms': String(retentionMs) }),
      ...config.KAFKA_TOPIC_CONFIG
    }
  }
}

async function sslOf(config: Config): Promise<KafkaChoice['ssl']> {
  const { KAFKA_SSL_CA_FILE: ca, KAFKA_SSL_CERT_FILE: cert, KAFKA_SSL_KEY_FILE: key } = config
  if (!config.KAFKA_SSL) {
    if ((ca ?? cert ?? key) === undefined) return undefined
    throw new UsageError('KAFKA_SSL_CA_FILE, KAFKA_SSL_CERT_FILE and KAFKA_SSL_KEY_FILE need KAFKA_SSL=true.')
  }
  if ((cert === undefined) !== (key === undefined))
    throw new UsageError('KAFKA_SSL_CERT_FILE and KAFKA_SSL_KEY_FILE belong together: give both or none.')
  if ((ca ?? cert) === undefined) return true
  return {
    ...(ca === undefined ? {} : { ca: await fileText('KAFKA_SSL_CA_FILE', ca) }),
    ...(cert === undefined ? {} : { cert: await fileText('KAFKA_SSL_CERT_FILE', cert) }),
    ...(key === undefined ? {} : { key: await fileText('KAFKA_SSL_KEY_FILE', key) })
  }
}

async function saslOf(config: Config): Promise<KafkaSasl | undefined> {
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_SASL_USERNAME: username } = config
  const { KAFKA_SASL_PASSWORD: given, KAFKA_SASL_PASSWORD_FILE: file } = config
  if (mechanism === undefined) return undefined
  if (username === undefined || (given === undefined) === (file === undefined)) {
    throw new UsageError(
      'KAFKA_SASL_MECHANISM needs KAFKA_SASL_USERNAME and one of KAFKA_SASL_PASSWORD and KAFKA_SASL_PASSWORD_FILE.'
    )
  }
  const password = given ?? (await fileText('KAFKA_SASL_PASSWORD_FILE', file ?? '')).replace(/\r?\n$/, '')
  return { mechanism, username, password }
}

async function fileText(variable: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    const code = errorCode(error)
    throw new FailureError(
      `${variable} names ${path}, which cannot be read (${code}); name a file that this user may read.`
    )
  }
}
