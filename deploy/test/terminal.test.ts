import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import type { WriteStream } from 'node:tty'
import { test } from 'tap'
import { print, table, withHeartbeat, writeContent } from '../src/terminal/terminal.js'

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

test('no control character of a report reaches the terminal, and its JSON stays the same', async (t) => {
  const hidden = '\u001b]0;x\u0007\u009b2J\u202e\ud800\u{e0001}\n\u007f'
  const printed = (asJson: boolean) => {
    const output = new PassThrough().setEncoding('utf8') as unknown as WriteStream & PassThrough
    print({ output }, asJson, { hidden, tab: 'a\tb' }, [`a\tb ${hidden}`, 'end'])
    return String(output.read())
  }
  t.equal(printed(false), 'a\tb \\u001b]0;x\\u0007\\u009b2J\\u202e\\ud800\\udb40\\udc01\\u000a\\u007f\nend\n')
  t.match(printed(true), /^[\x20-\x7e]+\n$/)
  t.same(JSON.parse(printed(true)), { hidden, tab: 'a\tb' })
  const written = async (isTTY: boolean) => {
    const output = Object.assign(new PassThrough(), { isTTY })
    await writeContent({ output }, [Buffer.from('a\u001b[1m\u009b2J\n\tb\n')])
    return String(output.read())
  }
  t.equal(await written(true), 'a\\u001b[1m\\u009b2J\n\tb\n')
  t.equal(await written(false), 'a\u001b[1m\u009b2J\n\tb\n', 'a file gets the bytes')
})

test('content waits for a slow reader of the output, and ends when the reader closes it', async (t) => {
  const parts = Array.from({ length: 1000 }, (_, n) => Buffer.alloc(1000, n))
  let taken = 0
  function* counted() {
    for (const part of parts) {
      taken += 1
      yield part
    }
  }
  const output = new PassThrough({ highWaterMark: 4000 })
  const done = writeContent({ output }, counted())
  for (let turn = 0; turn < 2000; turn += 1) await setImmediate()
  t.ok(taken < 20, `${taken} parts while nothing is read`)
  const read = once(output, 'end').then(() => Buffer.concat(chunks))
  const chunks: Buffer[] = []
  output.on('data', (chunk: Buffer) => chunks.push(chunk))
  await done
  output.end()
  t.same(await read, Buffer.concat(parts))

  const closed = new PassThrough({ highWaterMark: 4000 })
  closed.on('error', () => undefined)
  taken = 0
  const early = writeContent({ output: closed }, counted())
  for (let turn = 0; turn < 20; turn += 1) await setImmediate()
  closed.destroy(new Error('EPIPE'))
  await early
  t.ok(taken < 20, `${taken} parts for a closed output`)
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
