import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import type { WriteStream } from 'node:tty'
import { test } from 'tap'
import { print, table, withHeartbeat, writeContent } from '../src/commands/terminal.js'

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

test('no control character of a report reaches the terminal, and its JSON stays the same', (t) => {
  const hidden = '\u001b]0;x\u0007\u009b2J\u202e\ud800\u{e0001}\n\u007f'
  const printed = (asJson: boolean) => {
    const output = new PassThrough().setEncoding('utf8') as unknown as WriteStream & PassThrough
    print({ output }, asJson, { hidden, tab: 'a\tb' }, [`a\tb ${hidden}`, 'end'])
    return String(output.read())
  }
  t.equal(printed(false), 'a\tb \\u001b]0;x\\u0007\\u009b2J\\u202e\\ud800\\udb40\\udc01\\u000a\\u007f\nend\n')
  t.match(printed(true), /^[\x20-\x7e]+\n$/)
  t.same(JSON.parse(printed(true)), { hidden, tab: 'a\tb' })
  const written = (isTTY: boolean) => {
    const output = Object.assign(new PassThrough(), { isTTY })
    writeContent({ output: output as unknown as WriteStream }, Buffer.from('a\u001b[1m\u009b2J\n\tb\n'))
    return String(output.read())
  }
  t.equal(written(true), 'a\\u001b[1m\\u009b2J\n\tb\n')
  t.equal(written(false), 'a\u001b[1m\u009b2J\n\tb\n', 'a file gets the bytes')
  t.end()
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
