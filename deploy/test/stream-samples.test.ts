import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { listening } from '@gamenet/engines/testing'
import { test } from 'tap'
import { readPage, samplesOf } from './service/page-samples.js'

/** A delay, a comment, the cursor of a quiet stream, and an event, in pieces that split lines. */
const PIECES = [
  'retry: 3000\n\n:\n',
  '\nid: quiet\nda',
  'ta:\n\nevent: count\nid: c1\ndata: {"kind":"count",',
  '"n":"🎮"}\n\n'
]

test('the readers in docs/stream.md skip frames without data and read the events of a stream that was quiet', async (t) => {
  const page = await readPage('docs/stream.md')
  const samples = samplesOf('docs/stream.md', page).filter(({ language }) => language === 'js')
  t.equal(samples.length, 2)
  const url = await listening(t, (_request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    for (const piece of PIECES) response.write(piece)
  })
  const directory = t.testdir()
  for (const { line, text } of samples) {
    const file = join(directory, `${line}.mjs`)
    await writeFile(file, text.replaceAll('http://127.0.0.1:8080', url))
    const options = ['--experimental-eventsource', '--disable-warning=UNDICI-ES', file]
    const { stdout, stderr } = await promisify(execFile)(process.execPath, options)
    t.equal(stderr, '')
    t.match(stdout, /^\{ kind: 'count', n: '🎮' \}( c1)?\n$/, `docs/stream.md:${line}`)
  }
})
