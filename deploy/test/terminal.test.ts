import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import type { WriteStream } from 'node:tty'
import { test } from 'tap'
import { table, withHeartbeat } from '../src/commands/terminal.js'

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

test('a table wraps its last column at 100 columns', (t) => {
  const reason = `${'many words '.repeat(20)}${'x'.repeat(120)} end`
  const lines = table([
    ['NAME', 'REASON'],
    ['title', reason]
  ])
  t.equal(lines[1]?.startsWith('title  many words'), true)
  t.ok(lines.slice(0, 4).every((line) => line.length <= 100))
  t.equal(
    lines
      .slice(1)
      .map((line) => line.trim().replace(/^title {2}/, ''))
      .join(' '),
    reason,
    'no word is lost'
  )
  t.end()
})
