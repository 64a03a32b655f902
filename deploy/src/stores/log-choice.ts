import type { KafkaSasl } from '@gamenet/engines/log'
import { type Config, UsageError } from '../config.js'
import type { LogChoice } from './log.js'

const DAY_MS = 86_400_000
/** Kafka's value for `default.replication.factor`. */
const BROKERS_DEFAULT = -1

type KafkaChoice = Extract<LogChoice, { engine: 'kafka' }>

/** Returns the configured log. `path` is the file of an embedded log. */
export function readLogChoice(config: Config, path: string): LogChoice {
  const epoch = config.LOG_EPOCH
  const retentionMs = config.LOG_RETENTION_DAYS === undefined ? undefined : config.LOG_RETENTION_DAYS * DAY_MS
  if (config.KAFKA_BROKERS === undefined) return { engine: 'lmdb', path, epoch, retentionMs }
  return {
    engine: 'kafka',
    brokers: config.KAFKA_BROKERS,
    topicPrefix: config.KAFKA_TOPIC_PREFIX,
    partitions: config.KAFKA_PARTITIONS,
    replicationFactor: config.KAFKA_REPLICATION ?? BROKERS_DEFAULT,
    ssl: sslOf(config),
    sasl: saslOf(config),
    epoch,
    topicConfig: {
      ...(retentionMs === undefined ? {} : { 'retention.ms': String(retentionMs) }),
      ...config.KAFKA_TOPIC_CONFIG
    }
  }
}

function sslOf(config: Config): KafkaChoice['ssl'] {
  const { KAFKA_SSL_CA_FILE: ca, KAFKA_SSL_CERT_FILE: cert, KAFKA_SSL_KEY_FILE: key } = config
  if (!config.KAFKA_SSL) {
    if ((ca ?? cert ?? key) === undefined) return undefined
    throw new UsageError('KAFKA_SSL_CA_FILE, KAFKA_SSL_CERT_FILE and KAFKA_SSL_KEY_FILE need KAFKA_SSL=true.')
  }
  if ((cert === undefined) !== (key === undefined))
    throw new UsageError('KAFKA_SSL_CERT_FILE and KAFKA_SSL_KEY_FILE must be given together.')
  if ((ca ?? cert) === undefined) return true
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key })
  }
}

function saslOf(config: Config): KafkaSasl | undefined {
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_SASL_USERNAME: username, KAFKA_SASL_PASSWORD: password } = config
  const { KAFKA_SASL_TOKEN_URL: tokenUrl, KAFKA_SASL_SCOPE: scope } = config
  if (mechanism === undefined) return undefined
  if (username === undefined || password === undefined)
    throw new UsageError(
      'KAFKA_SASL_MECHANISM needs KAFKA_SASL_USERNAME and one of KAFKA_SASL_PASSWORD and KAFKA_SASL_PASSWORD_FILE.'
    )
  if (mechanism !== 'oauthbearer') return { mechanism, username, password }
  if (tokenUrl === undefined)
    throw new UsageError('KAFKA_SASL_MECHANISM=oauthbearer needs KAFKA_SASL_TOKEN_URL, which gives access tokens.')
  return { mechanism, username, password, tokenUrl, scope }
}
