import { test } from 'tap'
import { readConfig, UsageError } from '../src/config.js'
import { readLogChoice } from '../src/wiring/log-choice.js'

test('addresses that everybody is given hold nothing but an address', (t) => {
  for (const name of ['AUTH_URL', 'PUBLIC_URL'] as const) {
    t.equal(readConfig({ [name]: 'https://example.org/base/' })[name], 'https://example.org/base')
    for (const address of ['http://ann:secret@example.org', 'http://example.org/?a=1', 'http://example.org/#a']) {
      t.throws(() => readConfig({ [name]: address }), { message: new RegExp(`${name} is .*expected .*without`) })
    }
  }
  t.end()
})

test('what is said of a wrong configuration holds no password', (t) => {
  const wrong = {
    AUTH_URL: 'http://ann:secret@example.org',
    UPSTREAM_URL: 'ftp://ann:secret@example.org',
    POSTGRES_URL: 'mysql://ann:secret@example.org',
    CHAT_API_TOKEN: 'secret of two lines\n'
  }
  try {
    readConfig(wrong)
    t.fail('it is wrong')
  } catch (error) {
    t.type(error, UsageError)
    for (const name of Object.keys(wrong)) t.match(String(error), name)
    t.notMatch(String(error), 'secret')
  }
  t.end()
})

test('writes have no limit unless one is configured, and no limit lets nobody write', (t) => {
  t.equal(readConfig({}).WRITES_PER_MINUTE, undefined)
  t.equal(readConfig({ WRITES_PER_MINUTE: '30' }).WRITES_PER_MINUTE, 30)
  t.throws(() => readConfig({ WRITES_PER_MINUTE: '0' }), /WRITES_PER_MINUTE is "0": expected at least 1/)
  t.end()
})

test('topics of Kafka have the settings that are configured, which come before the days that are kept', async (t) => {
  const choiceOf = (variables: Record<string, string>) =>
    readLogChoice(readConfig({ KAFKA_BROKERS: 'kafka:9092', ...variables }), 'unused')
  const KAFKA_TOPIC_CONFIG = 'cleanup.policy=compact,min.insync.replicas=2'
  t.same(await choiceOf({ KAFKA_TOPIC_CONFIG, LOG_RETENTION_DAYS: '2' }), {
    ...(await choiceOf({})),
    topicConfig: { 'cleanup.policy': 'compact', 'min.insync.replicas': '2', 'retention.ms': '172800000' }
  })
  t.match(await choiceOf({ KAFKA_TOPIC_CONFIG: 'retention.ms=5', LOG_RETENTION_DAYS: '2' }), {
    topicConfig: { 'retention.ms': '5' }
  })
  t.throws(() => readConfig({ KAFKA_TOPIC_CONFIG: 'compact' }), /KAFKA_TOPIC_CONFIG.*expected name=value/)
})
