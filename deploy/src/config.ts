import { readFileSync } from 'node:fs'
import { errorCode, type ScrapeSource } from '@gamenet/schemas'
import { z } from 'zod'

/** Wrong usage: a sentence for the user, exit code 2. */
export class UsageError extends Error {}

/** A failure outside the program: a sentence for the user. After a signal, shells expect another exit code than 1. */
export class FailureError extends Error {
  constructor(
    message: string,
    readonly exitCode = 1
  ) {
    super(message)
  }
}

/** An engine cannot read its files. `gamenet verify` reports the same `what` and `repair` as a finding. */
export class FilesDamaged extends FailureError {
  constructor(
    readonly part: 'log' | 'tables' | 'writes',
    readonly what: string,
    readonly repair: string
  ) {
    super(`${what}. Repair: ${repair}.`)
  }
}

/** In the working directory. */
export const DATA_DIR_DEFAULT = './data'

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
const postgresUrl = () =>
  z.url({ protocol: /^postgres(ql)?$/, error: 'expected a postgres:// address' }).superRefine((address, context) => {
    const query = URL.canParse(address) ? new URL(address).searchParams : new URLSearchParams()
    for (const name of ['sslrootcert', 'sslcert', 'sslkey']) {
      const path = query.get(name)
      const found = path === null ? {} : contentOf(path)
      if ('fault' in found) context.addIssue(`${name} is ${JSON.stringify(path)}: ${found.fault}`)
    }
  })
/** A public address without credentials, to which paths are appended. */
const openUrl = () =>
  httpUrl().refine(
    (address) => !/[?#]|\/\/[^/]*@/.test(address),
    'expected an address without user, password, query and fragment, because it is public'
  )
const text = () => z.string().min(1)
/**
 * A path; its value is the content of that file, which is PEM. TLS ignores any other text: then no authority is
 * trusted.
 */
const pemFile = () =>
  text()
    .transform((path, context) => {
      const found = contentOf(path)
      if ('content' in found) return found.content
      context.addIssue(found.fault)
      return z.NEVER
    })
    .refine((content) => content.includes('-----BEGIN '), 'expected a file in PEM')
const commaSeparated = (item: z.ZodType<string, string>) =>
  text()
    .transform((list) => list.split(',').map((entry) => entry.trim()))
    .pipe(z.array(item))

/** Variables that no refusal shows. `<name>_FILE` names a file that contains the value. */
export const SECRETS = [
  'CHAT_API_TOKEN',
  'CLICKHOUSE_URL',
  'KAFKA_SASL_PASSWORD',
  'OPERATOR_TOKEN',
  'POSTGRES_LISTEN_URL',
  'POSTGRES_URL',
  'SQL_PASSWORD'
] as const

/** Nothing slows down who guesses it. */
export const SQL_PASSWORD_LENGTH_MIN = 20

/**
 * All variables of the service but the files of {@link SECRETS}, with the unit in the name, the default and the allowed
 * values.
 */
const Environment = z.object({
  HOST: text().default('127.0.0.1'),
  PORT: wholeNumber(0, 65_535).default(8080),
  OPERATOR_HOST: text().default('127.0.0.1'),
  OPERATOR_PORT: wholeNumber(0, 65_535).default(8081),
  OPERATOR_TOKEN: z
    .string()
    .regex(/^[\x21-\x7e]{16,}$/, 'expected at least 16 visible ASCII characters')
    .optional(),
  METRICS_HOST: text().default('127.0.0.1'),
  METRICS_PORT: wholeNumber(0, 65_535).optional(),
  SHUTDOWN_DELAY_SECONDS: wholeNumber(0, 300).default(0),
  TRUSTED_PROXIES: commaSeparated(
    z.union(
      [z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()],
      'expected addresses or networks (10.0.0.0/8), comma-separated'
    )
  ).optional(),
  CONNECTIONS_MAX: wholeNumber(1, 1_000_000).optional(),
  CONNECTIONS_PER_ADDRESS: wholeNumber(0, 1_000_000).default(1000),
  STREAMS_PER_ADDRESS: wholeNumber(0, 1_000_000).default(200),
  PUBLIC_URL: openUrl().optional(),
  DATA_DIR: text().default(DATA_DIR_DEFAULT),
  QUESTIONS_DIR: text().optional(),
  OPERATOR_URL: httpUrl().optional(),
  UPSTREAM_URL: httpUrl().optional(),
  DEMO: z.enum(['full', 'small']).default('full'),
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
    .regex(/^[a-zA-Z0-9._-]{0,64}$/, 'expected at most 64 ASCII letters, digits, dots, underscores and hyphens')
    .default('gamenet.'),
  KAFKA_PARTITIONS: wholeNumber(1, 1000).default(4),
  KAFKA_REPLICATION: wholeNumber(1, 15).optional(),
  KAFKA_SSL: z
    .enum(['true', 'false'])
    .transform((text) => text === 'true')
    .default(false),
  KAFKA_SSL_CA_FILE: pemFile().optional(),
  KAFKA_SSL_CERT_FILE: pemFile().optional(),
  KAFKA_SSL_KEY_FILE: pemFile().optional(),
  KAFKA_SASL_MECHANISM: z.enum(['plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer']).optional(),
  KAFKA_SASL_USERNAME: text().optional(),
  KAFKA_SASL_PASSWORD: text().optional(),
  KAFKA_SASL_TOKEN_URL: httpUrl().optional(),
  KAFKA_SASL_SCOPE: text().optional(),
  KAFKA_TOPIC_CONFIG: commaSeparated(
    z.string().regex(/^[a-z][a-z.]*=[^\s=]+$/, 'expected name=value of a topic of Kafka, comma-separated')
  )
    .transform((settings) => Object.fromEntries(settings.map((setting) => setting.split('=') as [string, string])))
    .optional(),
  SPOOL_BYTES_MAX: wholeNumber(0, 2 ** 40).default(256 * 1024 * 1024),
  LOG_RETENTION_DAYS: wholeNumber(1, 36_500).optional(),
  LOG_EPOCH: wholeNumber(1, 65535).default(1),
  CLICKHOUSE_URL: commaSeparated(httpUrl()).optional(),
  CLICKHOUSE_SSL_CA_FILE: pemFile().optional(),
  CLICKHOUSE_READERS: wholeNumber(1, 1000).optional(),
  CLICKHOUSE_READER_THREADS: wholeNumber(1, 1000).optional(),
  CLICKHOUSE_READER_MEMORY_BYTES: wholeNumber(16_777_216, Number.MAX_SAFE_INTEGER).optional(),
  CLICKHOUSE_MEMORY_BYTES: wholeNumber(268_435_456, Number.MAX_SAFE_INTEGER).optional(),
  DISK_FREE_MIN_BYTES: wholeNumber(0, Number.MAX_SAFE_INTEGER).optional(),
  POSTGRES_URL: postgresUrl().optional(),
  POSTGRES_LISTEN_URL: postgresUrl().optional(),
  SQL_PASSWORD: z
    .string()
    .regex(/^[\x21-\x7e]*$/, 'expected visible ASCII characters')
    .min(SQL_PASSWORD_LENGTH_MIN, `expected at least ${SQL_PASSWORD_LENGTH_MIN} characters`)
    .optional(),
  WRITES_PER_MINUTE: wholeNumber(1, 1_000_000).optional(),
  SESSION_CHECKS_PER_MINUTE: wholeNumber(1, 1_000_000).optional(),
  EXPORTS_PER_ADDRESS: wholeNumber(0, 1_000_000).default(8),
  EXPORT_BYTES_MAX: wholeNumber(1024 * 1024, Number.MAX_SAFE_INTEGER).default(4 * 1024 ** 3),
  SCRAPE_NETWORK_SECONDS: wholeNumber(0, 86_400).default(60),
  SCRAPE_GAMES_SECONDS: wholeNumber(0, 86_400).default(3600),
  SCRAPE_MATCHES_SECONDS: wholeNumber(0, 86_400).default(60),
  SCRAPE_BOARDS_SECONDS: wholeNumber(0, 86_400).default(300),
  SCRAPE_PLAYERS_SECONDS: wholeNumber(0, 86_400).default(60),
  SCRAPE_REQUESTS_PER_SECOND: wholeNumber(1, 1000).optional(),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('warn')
})

export type Config = z.infer<typeof Environment>

/** The names of all variables, in the order of their declaration. */
export const VARIABLES: readonly string[] = [...Object.keys(Environment.shape), ...SECRETS.map(fileOf)]

/**
 * Reads the configuration from environment variables and the files that they name; an empty variable counts as absent.
 * Throws a {@link UsageError} that lists every wrong variable with its value and the expected one.
 */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const given = new Map(Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''))
  const faults = SECRETS.flatMap((name) => takeFile(given, name))
  const parsed = Environment.safeParse(Object.fromEntries(given))
  if (parsed.success && faults.length === 0) return parsed.data
  for (const issue of parsed.error?.issues ?? []) {
    const name = String(issue.path[0])
    const reason = issue.code === 'invalid_value' ? `expected ${issue.values.join(' or ')}` : issue.message
    faults.push(`${name} is ${shown(name, given.get(name))}: ${reason}`)
  }
  throw new UsageError(`The configuration is wrong. ${faults.join('; ')}.`)
}

/** Returns the seconds between two runs of each source; 0: it is not scraped. */
export function scrapePeriods(config: Config): Record<ScrapeSource, number> {
  return {
    network: config.SCRAPE_NETWORK_SECONDS,
    games: config.SCRAPE_GAMES_SECONDS,
    matches: config.SCRAPE_MATCHES_SECONDS,
    boards: config.SCRAPE_BOARDS_SECONDS,
    players: config.SCRAPE_PLAYERS_SECONDS
  }
}

/** Sets a secret to the content of the file that `<name>_FILE` names. Returns the faults. */
function takeFile(given: Map<string, string | undefined>, name: string): string[] {
  const path = given.get(fileOf(name))
  if (path === undefined) return []
  if (given.has(name)) return [`${name} and ${fileOf(name)} are both set: expected one of them`]
  const found = contentOf(path)
  if ('fault' in found) return [`${fileOf(name)} is ${JSON.stringify(path)}: ${found.fault}`]
  // Editors and `echo` end a file with a line break.
  const secret = found.content.replace(/\r?\n$/, '')
  given.set(name, secret)
  return secret === '' ? [`${fileOf(name)} is ${JSON.stringify(path)}: the file is empty, expected the secret`] : []
}

function fileOf(secret: string): string {
  return `${secret}_FILE`
}

function contentOf(path: string): { readonly content: string } | { readonly fault: string } {
  try {
    return { content: readFileSync(path, 'utf8') }
  } catch (error) {
    return { fault: `it cannot be read (${errorCode(error)}), expected a file that this user may read` }
  }
}

/** Hides values that may contain passwords. */
function shown(name: string, value: string | undefined): string {
  const isSecret = SECRETS.some((secret) => secret === name)
  return isSecret ? 'not shown' : JSON.stringify(value?.replace(/\/\/[^/]*@/, '//…@'))
}
