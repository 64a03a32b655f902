import { test } from 'tap'
import { errorCode, errorMessage } from '../src/values/error-message.js'

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
