import { deepStrictEqual as deepEqual } from 'node:assert'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { appendFile, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { createGzip, gzipSync } from 'node:zlib'
import { runs } from '@gamenet/engines/testing'
import { importableTopics, instantOf, isFailure, topics } from '@gamenet/schemas'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import { withImportFile } from '../src/import/import-file.js'
import { importables } from '../src/import/importables.js'
import { type ImportRequest, type ImportResult, runImport } from '../src/index.js'
import { anyWriting, inPieces, type Writing, written } from './import-files.js'
import { memoryLog } from './import-log.js'

const NOW = Date.UTC(2026, 2, 1)
const HEADER = 'observedAt,online'

type Given = Partial<ImportRequest> & { readonly now?: () => number; readonly signal?: AbortSignal }

/** Imports bytes, by default into network-count. */
async function importBytes(
  t: Pick<Test, 'testdir'>,
  content: string | Buffer,
  given: Given = {},
  log = memoryLog()
): Promise<{ result: ImportResult; log: ReturnType<typeof memoryLog> }> {
  const { now = () => NOW, signal, ...request } = given
  const input = join(t.testdir(), 'input')
  await writeFile(input, content)
  const result = await runImport(
    { topic: 'network-count', fileName: 'counts.csv', input, ...request },
    { log, known: log.known, now, ...(signal === undefined ? {} : { signal }) }
  )
  return { result, log }
}

function refused(t: Test, content: string | Buffer, given: Given, sentence: RegExp, name: string) {
  const log = memoryLog()
  return t.test(name, async (t) => {
    await t.rejects(importBytes(t, content, given, log), { code: 'import_refused', message: sentence })
    t.same(log.appends, [], 'nothing was published')
  })
}

test('every topic for imports has a file format, with fields of its schema', async (t) => {
  t.same(
    importables.map(({ topic }) => topic.name),
    importableTopics.map(({ name }) => name)
  )
  for (const { topic, required, fields, measured } of importables) {
    t.ok(topics.includes(topic), topic.name)
    t.same(
      required.filter((field) => !(field in fields)),
      []
    )
    t.same(
      measured.filter((field) => !(field in fields)),
      []
    )
  }
})

test('a row without a measured value is a missing sample: no event, no fault, and not a zero', async (t) => {
  const { result, log } = await importBytes(
    t,
    `${HEADER}\n2020-01-01 00:00:00,5\n2020-01-01 01:00:00,\n2020-01-01 02:00:00,0\n`
  )
  t.match(result, {
    rowsRead: 3,
    published: 2,
    missing: 1,
    rejected: 0,
    faults: [],
    finished: true,
    alreadyDone: false
  })
  t.same(log.events('network-count'), [
    { observedAt: '2020-01-01T00:00:00Z', online: 5 },
    { observedAt: '2020-01-01T02:00:00Z', online: 0 }
  ])
  const json = '{"observedAt":"2020-01-01","online":null}\n{"observedAt":"2020-01-02"}\n'
  const { result: second } = await importBytes(t, json)
  t.match(second, { rowsRead: 2, published: 0, missing: 2, rejected: 0 })
})

test('an event has its import in its headers, and the topic of imports has the progress of each one', async (t) => {
  const { result, log } = await importBytes(t, `${HEADER}\n2020-01-01,5\nnever,6\n2020-01-03,\n`)
  t.match(result.importId, /^[0-9a-f]{32}$/)
  t.match(log.of('network-count')[0], {
    key: 'network',
    headers: { ce_source: `/import/${result.importId}`, ce_importid: result.importId, ce_time: '2020-01-01T00:00:00Z' }
  })
  t.match(log.events('import-run').at(-1), {
    importId: result.importId,
    topic: 'network-count',
    file: 'counts.csv',
    rowsRead: 3,
    published: 1,
    rejected: 1,
    finished: true
  })
})

test('a bad row stops nothing and is reported with its line and reason', async (t) => {
  const lines: [string, RegExp | undefined][] = [
    ['2020-01-01 00:00:00,1', undefined],
    ['2020-02-30 00:00:00,2', /observedAt is "2020-02-30 00:00:00": there is no day/],
    ['2020-01-01 01:00:00', /the row has 1 cells, the header has 2/],
    ['2020-01-01 01:00:00,2,3', /3 cells/],
    ['2020-01-01 01:00:00,"1,234"', /online is "1,234": expected a whole number/],
    ['2020-01-01 01:00:00,-1', /online is -1/],
    ['2020-01-01 01:00:00,1.5', /online is "1.5"/],
    ['2020-01-01 01:00:00,1e3', /online is "1e3"/],
    ['2020-01-01 01:00:00,4294967296', /online is 4294967296/],
    ['2020-01-01 01:00:00,nil', /online is "nil"/],
    [',7', /observedAt is missing/],
    [',', /observedAt is missing/],
    ['2020-01-01 01:00:00,"7', /not valid CSV/],
    ['2026-03-02 00:00:01,7', /more than a day in the future/],
    ['2026-03-02 00:00:00,7', undefined],
    [`${'9'.repeat(70_000)},1`, /longer than 65536/],
    ['2020-01-01 02:00:00, 8 ', undefined]
  ]
  for (const lineEnd of ['\n', '\r\n']) {
    const content = [HEADER, ...lines.map(([line]) => line)].join(lineEnd)
    const { result, log } = await importBytes(t, content)
    const bad = lines.flatMap(([, reason], n) =>
      reason === undefined ? [] : [{ file: 'counts.csv', line: n + 2, reason }]
    )
    t.match(result.faults, bad)
    t.match(result, { rowsRead: lines.length, published: 3, rejected: bad.length, missing: 0, finished: true })
    t.same(
      log.events('network-count').map((event) => (event as { online: number }).online),
      [1, 7, 8]
    )
  }
})

test('JSON values are not converted: a number in text is a fault', async (t) => {
  const rows = [
    '{"observedAt":"2020-01-01","online":1}',
    '{"observedAt":"2020-01-01","online":"5"}',
    '{"observedAt":1577836800,"online":2}',
    '{"observedAt":1577836800000,"online":3}',
    '{"observedAt":true,"online":3}',
    '{"observedAt":"2020-01-01","online":1.5}',
    '{"observedAt":"2020-01-01","online":{"n":1}}',
    '{"online":5}',
    '[]',
    '{"observedAt":"2020-01-01","onl'
  ]
  const faults = [
    { line: 2, reason: /online is "5"/ },
    { line: 5, reason: /observedAt is true/ },
    { line: 6, reason: /online is 1.5/ },
    { line: 7, reason: /online/ },
    { line: 8, reason: /observedAt is missing/ },
    { line: 9, reason: /not a JSON object/ },
    { line: 10, reason: /not valid JSON/ }
  ]
  const { result, log } = await importBytes(t, rows.join('\n'))
  t.match(result.faults, faults)
  t.same(result.rejected, faults.length)
  t.same(
    log.events('network-count').map((event) => (event as { online: number }).online),
    [1, 2, 3]
  )
  const array = await importBytes(t, `[\n${rows.slice(0, 9).join(',\n')}\n]`)
  t.match(
    array.result.faults,
    faults.slice(0, 6).map(({ line, reason }) => ({ line: line + 1, reason }))
  )
  t.equal(array.result.published, 3)
})

test('up to a hundred faults are kept, and all are counted', async (t) => {
  const { result } = await importBytes(t, `${HEADER}\n${'x,y\n'.repeat(1234)}`)
  t.equal(result.rejected, 1234)
  t.equal(result.faults.length, 100)
})

test('columns are found by mapping, constants replace missing ones, and other columns are reported', async (t) => {
  const csv = 'When,Peak,Note\n2020-01-01,5,a\n'
  const { result, log } = await importBytes(t, csv, {
    columns: { observedAt: 'When', online: 'Peak' },
    set: { lobbies: '3' }
  })
  t.same(result.ignoredColumns, ['Note'])
  t.same(log.events('network-count'), [{ observedAt: '2020-01-01T00:00:00Z', online: 5, lobbies: 3 }])
  const titles = '[{"titleId":"4D530064","name":" Halo ","releaseDate":null,"title":""}]'
  const described = await importBytes(t, titles, { topic: 'title', set: { observedAt: '1577836800' } })
  t.same(described.log.events('title'), [{ titleId: '4d530064', observedAt: '2020-01-01T00:00:00Z', name: 'Halo' }])
  const constant = await importBytes(t, `${HEADER}\n2020-01-01,5\n`, { set: { online: '9' } })
  t.same(constant.result.ignoredColumns, ['online'])
  t.match(constant.log.events('network-count'), [{ online: 9 }])
  const late = await importBytes(t, '{"observedAt":"2020-01-01","online":1}', { columns: { lobbies: 'Lobbies' } })
  t.same(late.result.absentColumns, ['Lobbies'])
})

test('an invalid file is refused with a sentence before anything is published', async (t) => {
  const csv = `${HEADER}\n2020-01-01,5\n`
  const ok = /./
  const cases: [string, string | Buffer, Given, RegExp][] = [
    [
      'unknown topic',
      csv,
      { topic: 'titles' },
      /"titles" is not a topic for imports; the topics are network-count, title/
    ],
    ['unknown field mapped', csv, { columns: { onlin: 'online' } }, /has no field "onlin"; its fields are observedAt/],
    ['unknown field set', csv, { set: { toString: '1' } }, /has no field "toString"/],
    [
      'column and constant',
      csv,
      { columns: { online: 'online' }, set: { online: '1' } },
      /both a column and a constant/
    ],
    [
      'mapped column absent',
      csv,
      { columns: { online: 'Peak' } },
      /"Peak", which is not there; the header has "observedAt"/
    ],
    [
      'bad constant',
      csv,
      { set: { observedAt: '2020-02-30' } },
      /constant for observedAt is "2020-02-30": there is no day/
    ],
    ['future constant', csv, { set: { observedAt: '2027-01-01' } }, /in the future/],
    ['constant outside the schema', csv, { set: { online: '-5' } }, /constant for online is "-5"/],
    ['empty constant', csv, { set: { online: ' ' } }, /constant for online is empty/],
    [
      'no time',
      'when,online\n2020,5\n',
      {},
      /takes observedAt from the column "observedAt".*the header has "when", "online"/
    ],
    ['nothing measured', 'observedAt,peak\n2020-01-01,5\n', {}, /has any of registered, online, lobbies/],
    ['nothing measured in JSON', '{"observedAt":"2020-01-01","peak":5}', {}, /has any of/],
    ['column twice', 'observedAt,online,online\n2020-01-01,5,6\n', {}, /"online" occurs twice/],
    ['empty file', '', {}, /counts.csv is empty/],
    ['only blank lines', '\n \r\n\n', {}, /has only white space in its first 5 bytes; expected rows/],
    ['only a BOM', '\uFEFF', {}, /is empty/],
    ['empty gzip', gzipSync(''), {}, /is empty/],
    ['header that is none', '"never closed\n', {}, /no readable header in line 1/],
    ['NUL bytes', Buffer.from('ab\0\u0001'), {}, /is not text in UTF-8: it contains NUL/],
    ['rubbish', Buffer.from([200, 201, 10, 255, 254, 13, 10]), {}, /no readable header in line 1: .*UTF-8/],
    ['lines of an old Mac', csv.replaceAll('\n', '\r'), {}, /ends its lines with CR alone; save it with LF or CRLF/],
    ['UTF-16', Buffer.from(`\uFEFF${csv}`, 'utf16le'), {}, /UTF-16/],
    ['a spreadsheet', Buffer.from('PK\u0003\u0004…'), {}, /ZIP archive or a spreadsheet/],
    ['gzip twice', gzipSync(gzipSync(csv)), {}, /gzip twice/],
    ['titles without a time', '[{"titleId":"4d530064","name":"Halo"}]', { topic: 'title' }, /takes observedAt from/],
    ['huge header', `${'x'.repeat(500_000)},y\n1,2\n`, {}, /no readable header in line 1: the row is longer/],
    ['no such file', csv, { input: '/nowhere/at/all.csv' }, /There is no file counts.csv/],
    ['a directory', csv, { input: '/' }, /is a directory/]
  ]
  for (const [name, content, given, sentence] of cases) await refused(t, content, given, sentence ?? ok, name)
})

test('a file that unpacks to far more than tables do is refused after a small part of it is read', async (t) => {
  const mebibytes = (text: string, count: number) => Buffer.alloc(count * 2 ** 20, text)
  // Consecutive members are one gzip file: 10 GB, with 10 MB on the disk.
  const member = gzipSync(mebibytes('2020-01-01,5\n', 16))
  const bomb = Buffer.concat([gzipSync(`${HEADER}\n`), ...Array.from({ length: 640 }, () => member)])
  t.ok(bomb.length < 50 * 2 ** 20)
  const log = memoryLog()
  const input = join(t.testdir(), 'input')
  await writeFile(input, bomb)
  let read = 0
  const onProgress = ({ bytesRead }: { bytesRead: number }) => {
    read = bytesRead
  }
  const request = { topic: 'network-count', fileName: 'counts.csv.gz', input }
  await t.rejects(runImport(request, { log, known: log.known, onProgress }), {
    code: 'import_refused',
    message:
      /^counts\.csv\.gz is an unlikely gzip file: its first \d+ bytes unpack to \d+, and at most 250 times.* import it unpacked$/
  })
  t.ok(read < 2 * 2 ** 20, `${read} of ${bomb.length} bytes were read`)
  t.same(log.appends, [])
  const zeros = gzipSync(mebibytes('\0', 48))
  await writeFile(input, Buffer.concat(Array.from({ length: 200 }, () => zeros)))
  await t.rejects(
    runImport(request, { log, known: log.known, onProgress }),
    /is not text in UTF-8: it contains NUL bytes/
  )
  t.ok(read < 2 * 2 ** 20, `${read} bytes of zeros were read`)
  const repetitive = await importBytes(t, gzipSync(`${HEADER}\n${'2020-01-01,5\n'.repeat(200_000)}`))
  t.match(repetitive.result, { published: 200_000, rejected: 0 }, 'what is small is taken however it is packed')
})

test('a row without end is refused after 16 MiB of it, in a file and while a stream arrives', async (t) => {
  const mebibyte = Buffer.alloc(2 ** 20, 'x')
  const random = randomBytes(3 * 2 ** 18).toString('base64')
  const log = memoryLog()
  const spoolDirectory = t.testdir({})
  const cases: [name: string, start: string, endless: Buffer, pack: boolean, sentence: RegExp][] = [
    [
      'a row',
      `${HEADER}\n2020-01-01,5\n`,
      mebibyte,
      false,
      /^x has a row that does not end within 16777216 bytes; expected/
    ],
    [
      'an element',
      '[{"observedAt":"2020-01-01","online":5},\n',
      Buffer.alloc(2 ** 20, '\n'),
      false,
      /does not end within/
    ],
    ['a packed row', `${HEADER}\n`, Buffer.from(random), true, /does not end within/],
    ['zeros', '', Buffer.alloc(2 ** 20), false, /is not text in UTF-8: it contains NUL/]
  ]
  for (const [name, start, endless, pack, sentence] of cases) {
    let taken = 0
    const content = async function* () {
      yield Buffer.from(start)
      for (; taken < 2 ** 30; taken += endless.length) yield endless
    }
    const input = pack ? Readable.from(content()).pipe(createGzip({ level: 1 })) : content()
    const request = { topic: 'network-count', fileName: 'x', input, spoolDirectory }
    await t.rejects(runImport(request, { log, known: log.known }), { code: 'import_refused', message: sentence }, name)
    t.ok(taken < 32 * 2 ** 20, `${name}: ${taken} bytes were taken`)
    t.same(await readdir(spoolDirectory), [], name)
  }
  const file = `${HEADER}\n${'x'.repeat(17 * 2 ** 20)}\n2020-01-01,5\n`
  await t.rejects(importBytes(t, file, {}, log), { code: 'import_refused', message: /does not end within/ })
  t.same(log.appends, [])
})

test('JSON that never ends or nests without end is one fault, with bounded memory', async (t) => {
  const good = '{"observedAt":"2020-01-01T00:00:00Z","online":5}'
  const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
  const deep = `{"observedAt":${nested(400_000)},"online":1}`
  const deepElsewhere = `{"observedAt":"2020-01-01T00:00:00Z","online":1,"x":${nested(400_000)}}`
  const isDeep = { line: 1, reason: 'the row is nested deeper than 32 levels' }
  for (const row of [deep, deepElsewhere]) {
    for (const content of [`${row}\n${good}\n`, `[${row},\n${good}]`]) {
      t.match((await importBytes(t, content)).result, { published: 1, rejected: 1, faults: [isDeep] })
    }
  }
  const shallow = good.replace('}', `,"x":${nested(30)}}`)
  t.match((await importBytes(t, shallow)).result, { published: 1, rejected: 0 })
  const endless = 10 * 2 ** 20
  for (const [content, reason] of [
    [`[${'['.repeat(endless)}`, /longer than 1048576/],
    [`[${','.repeat(endless)}`, /array is not closed/],
    [`[${' '.repeat(endless)}`, /array is not closed/],
    [`{"observedAt":"${'x'.repeat(endless)}`, /longer than 1048576/],
    [`{"observedAt":"2020-01-01T00:00:00Z","online":${'9'.repeat(1_000_000)}}`, /^online is/]
  ] as const) {
    const { result } = await importBytes(t, content)
    t.match([result.published, result.faults[0]?.reason], [0, reason])
  }
})

test('a file with only a header, and an empty array, are empty imports', async (t) => {
  for (const content of [HEADER, `${HEADER}\r\n\r\n`, '[]', ' [ ]\n']) {
    const { result } = await importBytes(t, content)
    t.match(result, { rowsRead: 0, published: 0, rejected: 0, missing: 0, finished: true }, JSON.stringify(content))
  }
})

test('a truncated or damaged gzip is refused as a whole, and the complete file is imported afterwards', async (t) => {
  const rows = Array.from({ length: 30_000 }, (_, n) => `${instantOf(Date.UTC(2010, 0, 1) + n * 3_600_000)},${n}`)
  const packed = gzipSync([HEADER, ...rows].join('\n'))
  const log = memoryLog()
  for (const length of [3, 18, 1000, Math.floor(packed.length / 2), packed.length - 1]) {
    await t.rejects(
      importBytes(t, packed.subarray(0, length), {}, log),
      { code: 'import_refused', message: /ends in the middle of its gzip data, behind \d+ complete lines/ },
      `${length} bytes`
    )
  }
  const damaged = Buffer.from(packed)
  damaged[damaged.length - 5] = (damaged.at(-5) ?? 0) ^ 255
  await t.rejects(importBytes(t, damaged, {}, log), { code: 'import_refused', message: /damaged gzip data/ })
  t.same(log.appends, [])
  const { result } = await importBytes(t, packed, {}, log)
  t.equal(result.published, rows.length)
  t.ok(Math.max(...log.appends.map(({ count }) => count)) <= 2000, 'appends are bounded')
  t.equal(log.mostUnderWay(), 1, 'one append at a time')
})

test('the same bytes with the same mapping are one import, compressed or not and under any name', async (t) => {
  const log = memoryLog()
  const content = `${HEADER},Lobbies\n2020-01-01,5,6\nx,1,2\n2020-01-02,,\n`
  const { result: first } = await importBytes(t, content, {}, log)
  const appends = log.appends.length
  for (const again of [content, gzipSync(content), gzipSync(content, { level: 1 })]) {
    const { result } = await importBytes(t, again, { fileName: 'other' }, log)
    t.match(result, { importId: first.importId, alreadyDone: true, rowsRead: 3, published: 1, rejected: 1, missing: 1 })
  }
  t.equal(log.appends.length, appends, 'nothing was published again')
  const { result: mapped } = await importBytes(t, content, { columns: { lobbies: 'Lobbies' } }, log)
  t.not(mapped.importId, first.importId)
  t.equal(mapped.alreadyDone, false)
  const { result: other } = await importBytes(t, `${content}\n`, {}, log)
  t.not(other.importId, first.importId)
})

test('a strict import with any fault publishes nothing; without one it is like any other', async (t) => {
  const log = memoryLog()
  const good = Array.from({ length: 5000 }, (_, n) => `${instantOf(Date.UTC(2010, 0, 1) + n * 3_600_000)},${n}`)
  const bad = await importBytes(t, [HEADER, ...good, 'x,1'].join('\n'), { strict: true }, log)
  t.match(bad.result, { finished: false, published: 0, rejected: 1, rowsRead: 5001, faults: [{ line: 5002 }] })
  t.same(log.appends, [])
  const repaired = await importBytes(t, [HEADER, ...good].join('\n'), { strict: true }, log)
  t.match(repaired.result, { finished: true, published: 5000, rejected: 0 })
  const loose = await importBytes(t, [HEADER, ...good, 'x,1'].join('\n'), {}, log)
  t.match(loose.result, { finished: true, published: 5000, rejected: 1, alreadyDone: false })
})

const NO_DESCRIPTORS = existsSync('/proc/self/fd') ? false : 'this platform cannot open a file without a name'

test('a process that is killed leaves no temporary copy of a pipe', { skip: NO_DESCRIPTORS }, async (t) => {
  const directory = t.testdir({})
  const before = process.env.TMPDIR
  t.teardown(() => {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
  })
  process.env.TMPDIR = directory
  const content = `${HEADER}\n2020-01-01,5\n`
  const input = async function* () {
    yield Buffer.from(content)
    t.same(await readdir(directory), [], 'while it arrives')
    yield Buffer.from('2020-01-02,6\n')
  }
  const { signal } = new AbortController()
  await withImportFile(input(), '-', { signal }, async ({ path, bytes }) => {
    t.same(await readdir(directory), [], 'while it is read')
    const text = `${content}2020-01-02,6\n`
    t.equal(bytes, text.length)
    for (const reading of ['first', 'second']) t.equal(await readFile(path, 'utf8'), text, reading)
  })
})

test('input from a pipe is imported like a file, and its copy is removed', async (t) => {
  const spoolDirectory = t.testdir({})
  const log = memoryLog()
  const content = Buffer.from(`${HEADER}\n2020-01-01,5\n`)
  const run = (input: AsyncIterable<Uint8Array>, signal = new AbortController().signal) =>
    runImport(
      { topic: 'network-count', fileName: '-', input, spoolDirectory, strict: true },
      { log, known: log.known, signal }
    )
  t.match(await run(inPieces(content, 3)), { published: 1, file: '-' })
  t.match(await run(inPieces(gzipSync(content), 1)), { alreadyDone: true })
  const breaking = async function* () {
    yield content
    throw new Error('the other end is gone')
  }
  await t.rejects(run(breaking()), /the other end is gone/)
  const abort = new AbortController()
  const endless = async function* () {
    yield content
    abort.abort(new Error('enough'))
    await new Promise(() => undefined)
  }
  await t.rejects(run(endless(), abort.signal), /enough/)
  t.same(await readdir(spoolDirectory), [])
})

const titleId = fc.integer({ min: 0, max: 0xffffffff }).map((n) => n.toString(16).padStart(8, '0'))
const count = fc.integer({ min: 0, max: 4_294_967_295 })
const observedAt = fc.integer({ min: 0, max: NOW }).map(instantOf)
const text = fc
  .oneof(
    fc.string({ unit: 'grapheme', maxLength: 60 }),
    fc.string({ unit: fc.constantFrom('"', ',', '\n', '\r', ' ', 'ä', ';') })
  )
  .map((value) => value.trim())
  .filter((value) => value !== '' && value.length <= 500 && !value.includes('\0') && !value.includes('\uFFFD'))

const titleCounts = fc.uniqueArray(
  fc.record(
    { titleId, observedAt, online: count, sessions: count, lobbyPlayers: count },
    { requiredKeys: ['titleId', 'observedAt', 'online'] }
  ),
  { selector: (event) => `${event.titleId}@${event.observedAt}`, maxLength: 40, minLength: 1 }
)
const titles = fc.uniqueArray(
  fc.record(
    {
      titleId,
      observedAt,
      name: text,
      title: text,
      publisher: text,
      releaseDate: fc.integer({ min: 0, max: NOW }).map((ms) => instantOf(ms).slice(0, 10)),
      features: fc.subarray(['live-aware', 'matchmaking', 'leaderboards', 'user-content'], { minLength: 1 })
    },
    { requiredKeys: ['titleId', 'observedAt', 'name'] }
  ),
  { selector: (event) => `${event.titleId}@${event.observedAt}`, maxLength: 40, minLength: 1 }
)

/** Some rows lack measured values, but not all of a file: such a file is refused. */
const cases = fc.oneof(
  fc.record({ topic: fc.constant('title-count'), events: titleCounts }),
  fc.record({ topic: fc.constant('title'), events: titles })
)

test('events are imported unchanged from files of any format', async (t) => {
  const input = join(t.testdir(), 'input')
  await fc.assert(
    fc.asyncProperty(cases, anyWriting, async ({ topic, events }, writing: Writing) => {
      const columns = Object.keys(importables.find((each) => each.topic.name === topic)?.fields ?? {})
      await writeFile(input, written(events, columns, writing))
      const log = memoryLog()
      const result = await runImport({ topic, input, fileName: 'x' }, { log, known: log.known, now: () => NOW })
      deepEqual(log.events(topic).map(sorted), events.map(sorted))
      deepEqual({ rejected: result.rejected, published: result.published }, { rejected: 0, published: events.length })
    }),
    runs(100)
  )
  t.pass('as they were')
})

test('an import of any file fails only with a refusal, and publishes only rows of the file', async (t) => {
  const input = join(t.testdir(), 'input')
  const base = written(
    Array.from({ length: 6 }, (_, n) => ({
      titleId: `0000000${n}`,
      observedAt: `2020-01-0${n + 1}T00:00:00Z`,
      online: 1000 + n
    })),
    ['titleId', 'observedAt', 'online'],
    {
      format: 'csv',
      lineEnd: '\n',
      hasBom: false,
      hasLastLineEnd: true,
      isGzip: false,
      isPretty: false,
      isQuoted: true,
      columnOrder: 'given',
      hasOtherColumn: false
    }
  )
  const json = Buffer.from(
    `[\n${base
      .toString()
      .split('\n')
      .slice(1, 7)
      .map((line) => {
        const [id, at, online] = JSON.parse(`[${line}]`)
        return JSON.stringify({ titleId: id, observedAt: at, online: Number(online) })
      })
      .join(',\n')}\n]`
  )
  const edit = fc.record({ at: fc.nat(1000), remove: fc.nat(8), insert: fc.uint8Array({ maxLength: 4 }) })
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(base, json, gzipSync(base)),
      fc.array(edit, { maxLength: 4 }),
      async (whole, edits) => {
        let bytes = whole
        for (const { at, remove, insert } of edits) {
          const place = at % (bytes.length + 1)
          bytes = Buffer.concat([bytes.subarray(0, place), insert, bytes.subarray(place + remove)])
        }
        await writeFile(input, bytes)
        const log = memoryLog()
        try {
          const result = await runImport(
            { topic: 'title-count', input, fileName: 'x' },
            { log, known: log.known, now: () => NOW }
          )
          deepEqual(result.rowsRead, result.published + result.rejected + result.missing)
          deepEqual(log.events('title-count').length, result.published)
          if (edits.length === 0) deepEqual(result.published, 6)
        } catch (error) {
          if (!isFailure(error, 'import_refused')) throw error
          deepEqual(log.appends, [])
        }
      }
    ),
    runs(150)
  )
  t.pass('refused or imported')
})

test('after a failure of the log at any append, importing again continues after the last progress and completes', async (t) => {
  const events = Array.from({ length: 10_000 }, (_, n) => ({
    observedAt: instantOf(Date.UTC(2010, 0, 1) + n * 60_000),
    online: n
  }))
  const content = [HEADER, ...events.map((e) => `${e.observedAt},${e.online}`)].join('\n')
  // Every read of the clock is later by more than the interval of progress, so that each block of the file is reported.
  let clock = NOW
  const now = () => {
    clock += 3000
    return clock
  }
  const whole = await importBytes(t, content, { now })
  const appends = whole.log.appends.length
  t.ok(appends > 10, `${appends} appends`)
  let resumed = 0
  for (let at = 0; at < appends; at += 1) {
    for (const isWritten of [false, true]) {
      const log = memoryLog()
      log.failAt(at, isWritten)
      const failure = await importBytes(t, content, { now }, log).catch((error: unknown) => error)
      t.match(failure, { code: 'import_cut_off', message: /interrupted after [1-9]\d* rows: the disk is full/ })
      const { result } = await importBytes(t, content, { now }, log)
      if (result.skipped > 0 && !result.alreadyDone) resumed += 1
      t.match(result, { rowsRead: 10_000, published: 10_000, rejected: 0, missing: 0 }, `append ${at}, ${isWritten}`)
      deepEqual(log.distinct('network-count'), events)
    }
  }
  t.ok(resumed > 4, `${resumed} runs went on behind what was known`)
})

test('an import stops with the reason of its signal, at any append, and can be resumed', async (t) => {
  const events = Array.from({ length: 5000 }, (_, n) => ({
    observedAt: instantOf(Date.UTC(2010, 0, 1) + n * 60_000),
    online: n
  }))
  const content = [HEADER, ...events.map((e) => `${e.observedAt},${e.online}`)].join('\n')
  for (let at = 0; at < 4; at += 1) {
    const log = memoryLog()
    const abort = new AbortController()
    const stopping = {
      ...log,
      // The append that is stopped never resolves: the log is unavailable.
      append: (topic: string, messages: Parameters<typeof log.append>[1]) => {
        if (log.appends.length < at) return log.append(topic, messages)
        abort.abort(new Error('the service stops'))
        return new Promise<void>(() => undefined)
      }
    }
    await t.rejects(importBytes(t, content, { signal: abort.signal }, stopping), /the service stops/, `append ${at}`)
    const { result } = await importBytes(t, content, {}, log)
    t.equal(result.published, 5000)
    deepEqual(log.distinct('network-count'), events)
  }
  await t.rejects(importBytes(t, content, { signal: AbortSignal.abort(new Error('early')) }), /early/)
})

test('an import of a file that grows meanwhile is not finished', async (t) => {
  const input = join(t.testdir(), 'input')
  await writeFile(input, `${HEADER}\n2020-01-01,5\n`)
  const log = memoryLog()
  const growing = {
    ...log,
    append: async (topic: string, messages: Parameters<typeof log.append>[1]) => {
      await log.append(topic, messages)
      await appendFile(input, '2020-01-02,6\n')
    }
  }
  await t.rejects(
    runImport({ topic: 'network-count', fileName: 'x', input }, { log: growing, known: log.known }),
    /x was changed while it was being imported/
  )
  t.notMatch(log.events('import-run'), [{ finished: true }])
})

test('an import announces itself before its first event', async (t) => {
  const { log } = await importBytes(t, `${HEADER}\n2020-01-01,5\n`)
  t.equal(log.appends[0]?.topic, 'import-run')
  t.match(log.events('import-run'), [
    { rowsRead: 0, finished: false },
    { rowsRead: 1, finished: true }
  ])
})

test('characters that cross the end of a block stay intact', async (t) => {
  const names = Array.from({ length: 4000 }, (_, n) => `${'ä€😀'.repeat(20)}${n}`)
  const content = ['titleId,name', ...names.map((name, n) => `${n.toString(16).padStart(8, '0')},${name}`)].join('\n')
  const { log } = await importBytes(t, content, { topic: 'title', set: { observedAt: '2020-01-01' } })
  t.same(
    log.events('title').map((event) => (event as { name: string }).name),
    names
  )
})

function sorted(event: unknown): unknown {
  return Object.fromEntries(Object.entries(event as object).sort(([a], [b]) => (a < b ? -1 : 1)))
}
