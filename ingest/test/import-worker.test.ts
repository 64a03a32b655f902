import { deepStrictEqual as deepEqual } from 'node:assert'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runs } from '@gamenet/engines/testing'
import { encodeEvent, instantOf, packMessages, titleCountTopic, unpackMessages } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { importInWorker, runImport } from '../src/index.js'
import { inPieces } from './import-files.js'
import { memoryLog } from './import-log.js'

const events = Array.from({ length: 6000 }, (_, n) => ({
  observedAt: instantOf(Date.UTC(2010, 0, 1) + n * 60_000),
  online: n
}))
const content = ['observedAt,online', ...events.map((e) => `${e.observedAt},${e.online}`), 'never,1'].join('\n')

test('messages are unchanged after packing and unpacking between threads', async (t) => {
  const id = fc.integer({ min: 0, max: 9 }).map((n) => `0000000${n}`)
  const event = fc.record({ titleId: id, observedAt: fc.nat(1e9).map((n) => instantOf(n * 1000)), online: fc.nat(9) })
  fc.assert(
    fc.property(fc.array(event), fc.webUrl(), fc.option(fc.string(), { nil: undefined }), (many, source, importId) => {
      const provenance = importId === undefined ? { source } : { source, importId }
      const messages = many.map((one) => encodeEvent(titleCountTopic, one, provenance))
      deepEqual(unpackMessages(structuredClone(packMessages(messages))), messages)
    }),
    runs(20)
  )
  t.pass('the same')
})

test('an import in a separate thread publishes the same events and has the same result', async (t) => {
  const input = join(t.testdir(), 'counts.csv')
  await writeFile(input, content)
  const here = memoryLog()
  const there = memoryLog()
  const request = { topic: 'network-count', input, fileName: 'counts.csv' }
  const progress: string[] = []
  const expected = await runImport(request, { log: here, known: here.known })
  const result = await importInWorker(request, {
    log: there,
    known: there.known,
    onProgress: ({ phase, rowsRead }) => progress.push(`${phase} ${rowsRead}`)
  })
  t.same(result, expected)
  t.match(result.faults, [{ line: 6002, reason: /observedAt is "never"/ }])
  t.same(there.of('network-count'), here.of('network-count'))
  t.equal(there.mostUnderWay(), 1, 'one append at a time')
  t.ok(progress.includes('publishing 6001'), progress.join())
  t.match(await importInWorker(request, { log: there, known: there.known }), { alreadyDone: true, published: 6000 })
})

test('input from a pipe is imported in the thread, and its copy is removed', async (t) => {
  const spoolDirectory = t.testdir({})
  const log = memoryLog()
  const input = inPieces(Buffer.from(content), 1000)
  const result = await importInWorker(
    { topic: 'network-count', input, fileName: '-', spoolDirectory },
    { log, known: log.known }
  )
  t.match(result, { file: '-', published: 6000 })
  t.same(await readdir(spoolDirectory), [])
})

test('a refusal in the thread rejects as a refusal, and one that needs no file does not wait for it', async (t) => {
  const log = memoryLog()
  const input = join(t.testdir(), 'counts.csv')
  await writeFile(input, 'when,online\n2020-01-01,5\n')
  const needs = { log, known: log.known }
  await t.rejects(importInWorker({ topic: 'network-count', input, fileName: 'x' }, needs), {
    code: 'import_refused',
    message: /the header has "when", "online"/
  })
  const never = async function* (): AsyncGenerator<Uint8Array> {
    await new Promise(() => undefined)
  }
  await t.rejects(importInWorker({ topic: 'counts', input: never(), fileName: '-' }, needs), { code: 'import_refused' })
  t.same(log.appends, [])
})

test('a failure of the log ends the thread and is the cause of its error; the next run continues the import', async (t) => {
  const input = join(t.testdir(), 'counts.csv')
  await writeFile(input, content)
  const log = memoryLog()
  log.failAt(3, true)
  const request = { topic: 'network-count', input, fileName: 'counts.csv' }
  const failure = await importInWorker(request, { log, known: log.known }).catch((error: unknown) => error)
  t.match(failure, {
    code: 'import_cut_off',
    message: /counts.csv was interrupted after \d+ rows: the disk is full/,
    cause: { message: 'the disk is full' }
  })
  t.match(await importInWorker(request, { log, known: log.known }), { published: 6000, rejected: 1 })
  t.same(log.distinct('network-count'), events)
  const lost = { log, known: () => Promise.reject(new Error('the tables are away')) }
  await t.rejects(importInWorker(request, lost), /the tables are away/)
})

test('a stop ends the thread with the reason, also while the log does not answer', async (t) => {
  const input = join(t.testdir(), 'counts.csv')
  await writeFile(input, content)
  const log = memoryLog()
  const abort = new AbortController()
  const away = {
    append: () => {
      abort.abort(new Error('the service stops'))
      return new Promise<void>(() => undefined)
    }
  }
  const request = { topic: 'network-count', input, fileName: 'counts.csv' }
  await t.rejects(importInWorker(request, { log: away, known: log.known, signal: abort.signal }), /the service stops/)
  await t.rejects(importInWorker(request, { log, known: log.known, signal: abort.signal }), /the service stops/)
  t.same(log.appends, [])
})
