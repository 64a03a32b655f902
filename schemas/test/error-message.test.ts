import { test } from 'tap'
import { errorCode, errorMessage, messageWithCause } from '../src/values/error-message.js'

test('the message of an error, and the text of any other thrown value', (t) => {
  t.equal(errorMessage(new TypeError('no number')), 'no number')
  t.equal(errorMessage('no number'), 'no number')
  t.equal(errorMessage(undefined), 'undefined')
  t.end()
})

test('the code of an error, or its text when it has none', (t) => {
  t.equal(errorCode(Object.assign(new Error('no such file'), { code: 'ENOENT' })), 'ENOENT')
  t.equal(errorCode(new Error('no such file')), 'Error: no such file')
  t.equal(errorCode({ code: 'ENOENT' }), '[object Object]')
  t.end()
})

test('the cause of an error is shown by its message, or by its code when it has none', (t) => {
  const because = (cause: unknown) => messageWithCause(new Error('It is away.', { cause }))
  t.equal(because(new Error('self-signed certificate\n')), 'It is away. (self-signed certificate)')
  t.equal(because(Object.assign(new Error(''), { code: 'ECONNREFUSED' })), 'It is away. (ECONNREFUSED)')
  t.equal(messageWithCause(new Error('It is away.')), 'It is away.')
  t.equal(because(new Error('is away')), 'It is away.', 'which the message contains')
  t.end()
})
