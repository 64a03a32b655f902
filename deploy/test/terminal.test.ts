import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import type { WriteStream } from 'node:tty'
import { test } from 'tap'
import { withHeartbeat } from '../src/commands/terminal.js'

test('a long operation prints repeatedly that it continues, then its answer or its error', async (t) => {
  for (const fails of [false, true]) {
    const errors = new PassThrough().setEncoding('utf8')
    const printTwice = async () => {
      const [first] = await once(errors, 'data')
      const [second] = await once(errors, 'data')
      if (fails) throw new Error('it failed')
      return `${first}${second}`
    }
    const done = withHeartbeat({ errors: errors as unknown as WriteStream }, printTwice(), 1)
    if (fails) await t.rejects(done, { message: 'it failed' })
    else t.match(await done, /^(Not done yet after \d+ s; it continues\.\n){2,}$/)
  }
})
