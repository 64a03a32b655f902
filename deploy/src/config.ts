import { z } from 'zod'

/** Wrong usage: a sentence for the user, exit code 2. */
export class UsageError extends Error {}

/** A failure outside the program: a sentence for the user, exit code 1. */
export class FailureError extends Error {}

const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^(0|[1-9]\d*)$/, `expected a whole number from ${min} to ${max}`)
    .transform(Number)
    .pipe(z.number().min(min, `expected at least ${min}`).max(max, `expected at most ${max}`))
const httpUrl = () =>
  z
    .url({ protocol: /^https?$/, error: 'expected an http or https address' })
    .transform((address) => address.replace(/\/+$/, ''))
/** A public address without credentials, to which paths are appended. */
const openUrl = () =>
  httpUrl().refine(
    (address) => !/[?#]|\/\/[^/]*@/.test(address),
    'expected an address without user, password, query and fragment: everybody is given it'
  )
const text = () => z.string().min(1)
const commaSeparated = (item: z.ZodString) =>
  text()
    .transform((list) => list.split(',').map((entry) => entry.trim()))
    .pipe(z.array(item))

/** All variables of the service, with the unit in the name, the default and the allowed values. */
const Environment = z.object({
  HOST: text().default('127.0.0.1'),
  PORT: wholeNumber(0, 65_535).default(8080),
  OPERATOR_HOST: text().default('127.0.0.1'),
  OPERATOR_PORT: wholeNumber(0, 65_535).default(8081),
  PUBLIC_URL: openUrl().optional(),
  DATA_DIR: text().default('./data'),
  OPERATOR_URL: httpUrl().optional(),
  UPSTREAM_URL: httpUrl().optional(),
  AUTH_URL: openUrl().optional(),
  CHAT_API_URL: httpUrl().optional(),
  CHAT_API_TOKEN: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'expected visible ASCII characters')
    .optional(),
  CHAT_HOSTS: commaSeparated(
    z
      .string()
      .toLowerCase()
      .regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/, 'expected names of hosts, comma-separated')
  ).optional(),
  CHAT_AVATAR_URL: z
    .string()
    .regex(/^https?:\/\/(?=.*\{id\})(?=.*\{avatar\})/, 'expected an http or https address with {id} and {avatar}')
    .optional(),
  KAFKA_BROKERS: commaSeparated(
    z.string().regex(/^[^\s:]+:\d{1,5}$/, 'expected host:port, comma-separated')
  ).optional(),
  KAFKA_TOPIC_PREFIX: z
    .string()
    .regex(/^[a-zA-Z0-9._-]{0,64}$/)
    .default('gamenet.'),
  KAFKA_PARTITIONS: wholeNumber(1, 1000).default(4),
  KAFKA_REPLICATION: wholeNumber(1, 15).default(1),
  KAFKA_SSL: z
    .enum(['true', 'false'])
    .transform((text) => text === 'true')
    .default(false),
  KAFKA_SSL_CA_FILE: text().optional(),
  KAFKA_SSL_CERT_FILE: text().optional(),
  KAFKA_SSL_KEY_FILE: text().optional(),
  KAFKA_SASL_MECHANISM: z.enum(['plain', 'scram-sha-256', 'scram-sha-512']).optional(),
  KAFKA_SASL_USERNAME: text().optional(),
  KAFKA_SASL_PASSWORD: text().optional(),
  KAFKA_SASL_PASSWORD_FILE: text().optional(),
  KAFKA_TOPIC_CONFIG: commaSeparated(
    z.string().regex(/^[a-z][a-z.]*=[^\s=]+$/, 'expected name=value of a topic of Kafka, comma-separated')
  )
    .transform((settings) => Object.fromEntries(settings.map((setting) => setting.split('=') as [string, string])))
    .optional(),
  SPOOL_BYTES_MAX: wholeNumber(0, 2 ** 40).default(256 * 1024 * 1024),
  LOG_RETENTION_DAYS: wholeNumber(1, 36_500).optional(),
  LOG_EPOCH: wholeNumber(1, 65535).default(1),
  CLICKHOUSE_URL: httpUrl().optional(),
  CLICKHOUSE_MEMORY_BYTES: wholeNumber(268_435_456, Number.MAX_SAFE_INTEGER).optional(),
  DISK_FREE_MIN_BYTES: wholeNumber(0, Number.MAX_SAFE_INTEGER).optional(),
  POSTGRES_URL: z.url({ protocol: /^postgres(ql)?$/, error: 'expected a postgres:// address' }).optional(),
  WRITES_PER_MINUTE: wholeNumber(1, 1_000_000).optional(),
  SCRAPE_NETWORK_SECONDS: wholeNumber(0, 86_400).default(60),
  SCRAPE_GAMES_SECONDS: wholeNumber(0, 86_400).default(3600),
  SCRAPE_MATCHES_SECONDS: wholeNumber(0, 86_400).default(60),
  SCRAPE_BOARDS_SECONDS: wholeNumber(0, 86_400).default(300),
  SCRAPE_PLAYERS_SECONDS: wholeNumber(0, 86_400).default(60),
  SCRAPE_REQUESTS_PER_SECOND: wholeNumber(1, 1000).optional(),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('warn')
})

export type Config = z.infer<typeof Environment>

/**
 * Reads the configuration from environment variables; an empty variable counts as absent. Throws a {@link UsageError}
 * that lists every wrong variable with its value and the expected one.
 */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const given = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== undefined && value !== '')
  )
  const parsed = Environment.safeParse(given)
  if (parsed.success) return parsed.data
  const faults = parsed.error.issues.map((issue) => {
    const name = String(issue.path[0])
    return `${name} is ${shown(name, given[name])}: ${issue.message}`
  })
  throw new UsageError(`The configuration is wrong. ${faults.join('; ')}.`)
}

const SECRET = new Set(['POSTGRES_URL', 'CLICKHOUSE_URL', 'KAFKA_SASL_PASSWORD', 'CHAT_API_TOKEN'])

/** Hides values that may contain passwords. */
function shown(name: string, value: string | undefined): string {
  return SECRET.has(name) ? 'not shown' : JSON.stringify(value?.replace(/\/\/[^/]*@/, '//…@'))
}
