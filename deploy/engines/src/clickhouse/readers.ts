import { createHash, createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The users of `clickhouse-readers.sql`: they read datasets and nothing else. */
export const ANALYST = 'gamenet_analyst'
export const QUESTIONS = 'gamenet_questions'

/** Time limit of a statement of an analyst. */
export const ANALYST_SECONDS = 30

const FILE = fileURLToPath(new URL('../../../clickhouse-readers.sql', import.meta.url))
/** The quota of an hour is so many statements that exhaust their time. */
const LONGEST_STATEMENTS = 20

export type Readers = {
  /** Of analysts. */
  readonly password: string
  /** Of the service's own user. */
  readonly servicePassword: string
  /** The database of the service. */
  readonly database: string
  readonly seconds?: number | undefined
}

/** Returns the password in an address; empty if there is none. */
export const passwordOf = (url: string): string => decodeURIComponent(new URL(url).password)

/**
 * Returns the password of the user of questions. Every process of the service derives it from the password of its own
 * user, and nobody keeps it. Analysts do not know it: it would sign them in with higher limits.
 */
export const questionsPassword = (servicePassword: string): string =>
  createHmac('sha256', servicePassword).update(QUESTIONS).digest('hex')

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Returns the statements that create the users; repeatable. */
export const readerStatements = ({
  password,
  servicePassword,
  database,
  seconds = ANALYST_SECONDS
}: Readers): string[] =>
  readFileSync(FILE, 'utf8')
    .replace(/^--.*$/gm, '')
    .replaceAll('{sha256}', sha256(password))
    .replaceAll('{questionsSha256}', sha256(questionsPassword(servicePassword)))
    .replaceAll('{seconds}', String(seconds))
    .replaceAll('{hourSeconds}', String(LONGEST_STATEMENTS * seconds))
    .replace(/\bgamenet\b/g, database)
    .split(';')
    .map((statement) => statement.trim().replace(/\s+/g, ' '))
    .filter((statement) => statement !== '')

/** Returns the same users as elements of ClickHouse's users file: the embedded server refuses CREATE USER. */
export const readersAsXml = (readers: Readers): Readonly<Record<'users' | 'profiles' | 'quotas', string>> => {
  const statements = readerStatements(readers)
  const xml = { users: '', profiles: '', quotas: '' }
  for (const [, name = '', hash, database, settings = ''] of statements.flatMap((each) => [USER.exec(each) ?? []])) {
    if (name === '') continue
    const own = statements.filter((each) => each.endsWith(` TO ${name}`))
    const rest = (start: string) =>
      own.filter((each) => each.startsWith(start)).map((each) => each.slice(0, -` TO ${name}`.length))
    const quota = rest('CREATE QUOTA').map((each) => each.slice(each.indexOf('MAX ')))
    xml.users += element(name, [
      ...[`<password_sha256_hex>${hash}</password_sha256_hex>`, '<networks><ip>127.0.0.1</ip></networks>'],
      ...[`<profile>${name}</profile>`, `<quota>${name}</quota>`, `<default_database>${database}</default_database>`],
      element(
        'grants',
        rest('GRANT').map((each) => element('query', [each]))
      )
    ])
    xml.profiles += element(name, [...valuesOf(settings), element('constraints', constraintsOf(settings))])
    xml.quotas += element(
      name,
      quota.map((each) => element('interval', ['<duration>3600</duration>', ...valuesOf(each)]))
    )
  }
  return xml
}

const USER =
  /^CREATE USER OR REPLACE (\w+) IDENTIFIED WITH sha256_hash BY '(\w+)' DEFAULT DATABASE (\w+) SETTINGS (.*)$/
const SETTING = /(\w+) = (\w+|'')(?: (CONST)| MIN (\d+) MAX (\d+))?/g

const element = (name: string, content: readonly string[]): string => `<${name}>${content.join('')}</${name}>`

const valuesOf = (settings: string): string[] =>
  [...settings.matchAll(SETTING)].map(([, name = '', value = '']) => element(name, [value.replace("''", '')]))

const constraintsOf = (settings: string): string[] =>
  [...settings.matchAll(SETTING)].flatMap(([, name = '', , isConst, min, max]) => {
    if (isConst !== undefined) return element(name, ['<const/>'])
    return min === undefined ? [] : element(name, [`<min>${min}</min><max>${max}</max>`])
  })
