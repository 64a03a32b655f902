import { test } from 'tap'
import { readConfig, UsageError } from '../src/config.js'

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
