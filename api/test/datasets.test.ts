import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync
} from 'node:fs'
import { join } from 'node:path'
import { smallDisk } from '@gamenet/engines/testing'
import { FIRST_GENERATION, generationName, withChecksum } from '@gamenet/schemas'
import { type Test, test } from 'tap'
import { DatasetFolder } from '../src/datasets/dataset-folder.js'
import { datasets } from '../src/datasets/datasets.js'
import { DatasetList } from '../src/datasets/manifest.js'
import { openStoredTables, time } from './stored-tables.js'
import { logOfLines, testApp } from './support/test-app.js'

const MARCH = Date.UTC(2025, 2, 1)
const APRIL = Date.UTC(2025, 3, 1)
const DAY_MS = 86_400_000
const MINUTE_MS = 60_000

/** A file as a table: the server of the tests reads no files outside of its directory. */
const tableOf = (format: string, bytes: Buffer) => `format(${format}, unhex('${bytes.toString('hex')}'))`

async function open(t: Test, directory = t.testdir()) {
  const { clickhouse, insert, insertRows } = await openStoredTables()
  let version = 1
  const dataVersions = {
    serving: FIRST_GENERATION,
    revision: 1,
    isCurrent: true,
    versionOf: () => version,
    recordWrite: () => undefined,
    repeatedReads: 0,
    refreshDropped: async () => {
      dataVersions.serving = FIRST_GENERATION
    },
    onChange: () => () => undefined
  }
  const clock = { nowMs: APRIL + 2 * DAY_MS }
  let space: () => Promise<void> = async () => undefined
  const asked = { months: 0 }
  const rows: typeof clickhouse.readers.rows = async (sql, ...given) => {
    if (sql.includes('AS month')) asked.months += 1
    return await clickhouse.readers.rows(sql, ...given)
  }
  const { logger, lines } = logOfLines()
  const { app } = await testApp(t, {
    endpoints: [],
    logger,
    tables: { ...clickhouse.readers, rows },
    dataVersions,
    datasets: { directory, requireSpace: () => space() },
    now: () => clock.nowMs
  })
  const store = async (rows: readonly (readonly [titleId: string, ms: number, online: number])[]) => {
    await insert(
      'title_count',
      ['title_id', 'ts', 'online', 'position'],
      rows.map(([titleId, ms, online]) => [titleId, time(ms), online, version])
    )
    version += 1
  }
  const get = (url: string, headers: Record<string, string> = {}, method: 'GET' | 'HEAD' = 'GET') =>
    app.inject({ method, url: `/api/data${url}`, headers })
  /** Lists, once the files that the list asked for are made. */
  const listed = async () => {
    for (;;) {
      const { datasets } = DatasetList.parse((await get('')).json())
      if (datasets.every(({ files }) => files.every(({ isClosed, newest }) => !isClosed || newest !== null))) {
        return Object.fromEntries(datasets.map(({ name, files }) => [name, files]))
      }
    }
  }
  const rowsIn = (body: Buffer) => clickhouse.readers.rows(`SELECT * FROM ${tableOf('Parquet', body)}`)
  const refuseSpace = (error: Error | undefined) => {
    space = error === undefined ? async () => undefined : () => Promise.reject(error)
  }
  return {
    asked,
    clickhouse,
    dataVersions,
    insert,
    insertRows,
    directory,
    clock,
    store,
    get,
    listed,
    rowsIn,
    refuseSpace,
    lines
  }
}

const march = (count: number, titleId = '4d530064') =>
  Array.from({ length: count }, (_, n) => [titleId, MARCH + n * MINUTE_MS, n] as const)
const PATH = '/title-count/2025-03.parquet'

test('files that a killed process left unlisted are removed at a start, unless they are young', async (t) => {
  const { directory, store, get } = await open(t)
  await store(march(1))
  await get(PATH)
  const folder = join(directory, 'title-count')
  const listed = readdirSync(folder)
  t.equal(listed.length, 2)
  const old = ['.2025-03.old', '2025-03.json.old', '2025-03.1234.parquet']
  for (const name of [...old, '.2025-03.young']) writeFileSync(join(folder, name), 'half a file')
  const before = new Date(Date.now() - 2 * 3_600_000)
  for (const name of [...old, ...listed]) utimesSync(join(folder, name), before, before)
  await open(t, directory)
  t.same(readdirSync(folder), ['.2025-03.young', ...listed])
})

test('months with rows are listed, and read once per data version', async (t) => {
  const { asked, clickhouse, insert, store, get, listed } = await open(t)
  await store([...march(1), ['4d530064', Date.UTC(2024, 11, 31), 1]])
  const session = ['title_id', 'first_seen', 'host', 'nth', 'is_void', 'last_seen', 'sightings', 'version']
  await insert('match_session', session, [
    ['4d530064', time(MARCH - 1), 'ann', 1, false, time(MARCH), 1, 1],
    ['4d530064', time(APRIL), 'ann', 1, true, time(APRIL), 1, 1]
  ])
  const periods = (files: { period: string }[] | undefined) => files?.map(({ period }) => period)
  const first = await listed()
  t.same(periods(first['title-count']), ['2025-03', '2024-12'])
  t.same(periods(first.match), ['2025-03'])
  t.same(periods(first.record), [])
  const before = asked.months
  await listed()
  await get(PATH)
  t.equal(asked.months, before)
  await clickhouse.loader.execute('TRUNCATE TABLE title_count__0')
  await store([])
  t.equal((await get(PATH)).statusCode, 200)
  const [file, ...others] = (await listed())['title-count'] ?? []
  t.same(
    [file?.period, ...others.map(({ period }) => period)],
    ['2025-03', '2024-12'],
    'what was published stays listed'
  )
  t.match(file, { newest: { revision: 2, rows: 0, first: null }, earlier: [{ revision: 1, rows: 1 }] })
})

test('a file and the list are read again when a table was dropped after a swap', async (t) => {
  const { dataVersions, store, get } = await open(t)
  await store(march(3))
  const dropped = { ...FIRST_GENERATION, nameOf: (table: string) => generationName(table, 7) }
  dataVersions.serving = dropped
  t.equal((await get('')).statusCode, 200)
  await get(PATH)
  await store(march(4))
  await get('')
  dataVersions.serving = dropped
  t.equal((await get(PATH)).statusCode, 200)
})

test('a file of a month', async (t) => {
  const { clickhouse, directory, store, get, listed, rowsIn } = await open(t)
  await store([...march(50), ['5553001c', MARCH, 7], ['4d530064', APRIL - 1, 1], ['4d530064', APRIL, 2]])
  await store([['4d530064', MARCH, 9]])
  const answer = await get(PATH)
  t.equal(answer.statusCode, 200)
  const body = answer.rawPayload
  const sha256 = createHash('sha256').update(body).digest('hex')
  t.match(answer.headers, {
    etag: `"${sha256}"`,
    'content-type': 'application/vnd.apache.parquet',
    'content-length': String(body.length),
    'accept-ranges': 'bytes',
    'content-disposition': 'attachment; filename="title-count-2025-03.parquet"',
    'last-modified': 'Thu, 03 Apr 2025 00:00:00 GMT',
    'cache-control': 'public, max-age=0, must-revalidate'
  })
  const rows = await rowsIn(body)
  t.same(rows[0], {
    title_id: '4d530064',
    observed_at: '2025-03-01 00:00:00.000',
    online: 9,
    sessions: null,
    lobby_players: null
  })
  t.same([rows.length, rows.at(-1)?.title_id], [52, '5553001c'])

  const [april, file, ...others] = (await listed())['title-count'] ?? []
  t.same(others, [])
  t.match(april, { period: '2025-04', isClosed: false, newest: null })
  t.match(file, { period: '2025-03', isClosed: true, url: `/api/data${PATH}`, earlier: [] })
  t.match(file?.newest, {
    revision: 1,
    rows: 52,
    bytes: body.length,
    sha256,
    first: '2025-03-01T00:00:00.000Z',
    last: '2025-03-31T23:59:59.999Z',
    url: `/api/data/title-count/2025-03.${sha256.slice(0, 16)}.parquet`
  })

  await t.test('ranges, conditions and HEAD', async (t) => {
    const n = body.length
    for (const [range, status, first, last] of [
      ['bytes=0-3', 206, 0, 3],
      ['BYTES=4-', 206, 4, n - 1],
      ['bytes=-8', 206, n - 8, n - 1],
      [`bytes=${n - 1}-${n + 100}`, 206, n - 1, n - 1],
      [`bytes=-${n + 5}`, 206, 0, n - 1],
      ['bytes=0-1,4-5', 200, 0, n - 1],
      ['bytes=5-4', 200, 0, n - 1],
      ['lines=1-2', 200, 0, n - 1]
    ] as const) {
      const part = await get(PATH, { range })
      t.equal(part.statusCode, status, range)
      t.equal(part.headers['content-range'], status === 206 ? `bytes ${first}-${last}/${n}` : undefined)
      t.ok(part.rawPayload.equals(body.subarray(first, last + 1)), range)
    }
    for (const range of [`bytes=${n}-`, 'bytes=-0']) {
      const none = await get(PATH, { range })
      t.equal(none.statusCode, 416)
      t.match(none.headers, { 'content-range': `bytes */${n}`, 'x-error-code': 'range_unsatisfiable', etag: undefined })
    }
    const part = { range: 'bytes=0-3' }
    t.equal((await get(PATH, { ...part, 'if-range': `"${sha256}"` })).statusCode, 206)
    t.equal((await get(PATH, { ...part, 'if-range': String(answer.headers['last-modified']) })).statusCode, 206)
    t.equal((await get(PATH, { ...part, 'if-range': '"other"' })).statusCode, 200)
    for (const headers of [
      { 'if-none-match': `"a", W/"${sha256}"` },
      { 'if-none-match': '*' },
      { 'if-modified-since': String(answer.headers['last-modified']) }
    ]) {
      t.equal((await get(PATH, headers)).statusCode, 304, JSON.stringify(headers))
    }
    t.equal(
      (await get(PATH, { 'if-none-match': '"other"', 'if-modified-since': String(answer.headers['last-modified']) }))
        .statusCode,
      200
    )
    const [modified, earlier] = [String(answer.headers['last-modified']), new Date(0).toUTCString()]
    for (const [headers, status] of [
      [{ 'if-match': '"other"' }, 412],
      [{ 'if-match': `W/"${sha256}"` }, 412],
      [{ 'if-match': '"other"', 'if-none-match': '*' }, 412],
      [{ 'if-match': '"other"', 'if-unmodified-since': modified }, 412],
      [{ 'if-unmodified-since': earlier }, 412],
      [{ 'if-match': `"a", "${sha256}"`, 'if-unmodified-since': earlier }, 206],
      [{ 'if-match': '*' }, 206],
      [{ 'if-match': '*', 'if-none-match': '*' }, 304],
      [{ 'if-unmodified-since': modified }, 206],
      [{ 'if-unmodified-since': 'soon' }, 206]
    ] as const) {
      const { statusCode, headers: shown } = await get(PATH, { ...part, ...headers })
      t.equal(statusCode, status, JSON.stringify(headers))
      if (status === 412)
        t.match(shown, { 'x-error-code': 'precondition_failed', etag: undefined, 'cache-control': 'no-store' })
    }
    const head = await get(PATH, {}, 'HEAD')
    t.same([head.statusCode, head.headers['content-length'], head.rawPayload.length], [200, String(n), 0])
    for (const range of ['bytes=0-3', `bytes=${n}-`]) {
      const { statusCode, headers } = await get(PATH, { range }, 'HEAD')
      t.equal(statusCode, 200, 'only GET has ranges')
      t.match(headers, { 'content-length': String(n), 'content-range': undefined })
    }
    const named = await get(`/title-count/2025-03.${sha256.slice(0, 16)}.parquet`)
    t.equal(named.headers['cache-control'], 'public, max-age=31536000, immutable')
    t.ok(named.rawPayload.equals(body))
  })

  await t.test('the same bytes from other parts, after the file was deleted or cut short by hand', async (t) => {
    await clickhouse.loader.execute('SYSTEM START MERGES title_count__0')
    await clickhouse.loader.execute('OPTIMIZE TABLE title_count__0 FINAL')
    for (const name of readdirSync(join(directory, 'title-count'))) {
      if (name.endsWith('.parquet')) rmSync(join(directory, 'title-count', name))
    }
    t.equal((await get(PATH)).headers.etag, `"${sha256}"`)
    const named = `2025-03.${sha256.slice(0, 16)}.parquet`
    for (const url of [PATH, `/title-count/${named}`]) {
      truncateSync(join(directory, 'title-count', named), body.length - 1)
      t.ok((await get(url)).rawPayload.equals(body), url)
    }
    rmSync(join(directory, 'title-count', '2025-03.json'))
    t.equal((await get(PATH)).headers.etag, `"${sha256}"`)
    writeFileSync(join(directory, 'title-count', '2025-03.json'), '{"half')
    t.equal((await get(PATH)).headers.etag, `"${sha256}"`)
  })
})

test('a late import makes a revision; the one before stays readable', async (t) => {
  const { directory, clock, store, get, listed } = await open(t)
  await store(march(10))
  const bodies: Buffer[] = []
  for (const count of [11, 12, 13]) {
    bodies.push((await get(PATH)).rawPayload)
    await store([march(count).at(-1) ?? ['', 0, 0]])
  }
  bodies.push((await get(PATH)).rawPayload)
  clock.nowMs += DAY_MS
  await store([['4d530064', APRIL + DAY_MS, 4]])
  t.ok((await get(PATH)).rawPayload.equals(bodies[3] ?? Buffer.of()), 'a change elsewhere makes none')
  const file = (await listed())['title-count']?.find(({ period }) => period === '2025-03')
  t.same(
    [file?.newest, ...(file?.earlier ?? [])].map((each) => [each?.revision, each?.rows]),
    [
      [4, 13],
      [3, 12]
    ]
  )
  const statuses = []
  for (const each of [file?.newest, ...(file?.earlier ?? [])]) {
    statuses.push((await get(String(each?.url).slice('/api/data'.length))).statusCode)
  }
  t.same(statuses, [200, 200])
  t.same(readdirSync(join(directory, 'title-count')).filter((name) => name.startsWith('2025-03')).length, 3)
})

test('the open month is at most ten minutes old', async (t) => {
  const { clock, store, get, listed, directory } = await open(t)
  clock.nowMs = APRIL - DAY_MS
  await store(march(10))
  const first = (await get(PATH)).headers.etag
  await store(march(11))
  clock.nowMs += 9 * MINUTE_MS
  t.equal((await get(PATH)).headers.etag, first)
  clock.nowMs += 2 * MINUTE_MS
  t.not((await get(PATH)).headers.etag, first)
  t.match((await listed())['title-count'], [
    { period: '2025-03', isClosed: false, newest: { revision: 0, rows: 11 }, earlier: [] }
  ])
  clock.nowMs = APRIL + DAY_MS
  await get(PATH)
  const [closed] = (await listed())['title-count'] ?? []
  t.match(closed, { isClosed: true, newest: { revision: 1, rows: 11 }, earlier: [] })
  t.notOk(existsSync(join(directory, 'title-count', '2025-05.json')))
})

test('a file deleted by hand is not listed until it is made again', async (t) => {
  const { directory, store, get, listed } = await open(t)
  await store(march(10))
  await store([['4d530064', Date.UTC(2025, 1, 1), 1]])
  const listedMonths = async () =>
    (await get('')).json().datasets[1].files.map((each: { newest: unknown }) => each.newest)
  const before = (await listed())['title-count']?.map(({ newest }) => newest)
  const folder = join(directory, 'title-count')
  for (const suffix of ['.parquet', '.json']) {
    for (const name of readdirSync(folder)) if (name.endsWith(suffix)) rmSync(join(folder, name))
    t.same(await listedMonths(), [null, null], suffix)
    const after = (await listed())['title-count']?.map(({ newest }) => newest)
    t.match(
      after,
      before?.map((each) => ({ sha256: each?.sha256, revision: 1 })),
      suffix
    )
  }
})

test('a description names no file outside its folder', async (t) => {
  const folder = t.testdir()
  const revision = {
    ...{ revision: 0, rows: 1, bytes: 1, first: null, last: null, rowsHash: '0', position: '', sha256: '0'.repeat(64) },
    madeAt: '2025-03-01T00:00:00.000Z'
  }
  const read = async (file: string) => {
    const text = JSON.stringify({ version: 1, checkedMs: 0, revisions: [{ ...revision, file }] })
    writeFileSync(join(folder, '2025-03.json'), withChecksum(text))
    return (await new DatasetFolder(folder).file('2025-03'))?.revisions[0]?.file
  }
  t.equal(await read('2025-03.0123456789abcdef.parquet'), '2025-03.0123456789abcdef.parquet')
  for (const name of ['../../service.json', '/etc/passwd', '2025-03.a/../../x.parquet', '2025-03.json'])
    t.equal(await read(name), undefined, name)
})

test('descriptions are read once per change of the folder', async (t) => {
  const folder = t.testdir()
  const later = () => Date.now() + DAY_MS
  const stored = (version: number) => ({ version, checkedMs: 0, revisions: [] })
  const known = new DatasetFolder(folder, later)
  /** File systems stamp changes within a tick with one instant. */
  const ticked = async (change: () => Promise<void> | void) => {
    const before = statSync(folder).ctimeMs
    do await change()
    while (statSync(folder).ctimeMs === before)
  }
  const agrees = async (what: string) => {
    const content = await known.content()
    t.same(content, await new DatasetFolder(folder).content(), what)
    t.equal(await known.content(), content, `${what}: from memory`)
    return content
  }
  await ticked(() => known.describe('2025-03', stored(1)))
  await agrees('new')
  await ticked(() => known.describe('2025-03', stored(2)))
  t.equal((await agrees('replaced')).files.get('2025-03')?.version, 2)
  await ticked(() => writeFileSync(join(folder, `2025-03.${Math.random()}.parquet`), ''))
  await agrees('bytes')
  await ticked(() => writeFileSync(join(folder, `${Math.random()}.json`), '{"half'))
  await agrees('no description')
  await ticked(() => {
    for (const name of ['half.json', ...readdirSync(folder)]) {
      writeFileSync(join(folder, name), '')
      rmSync(join(folder, name))
    }
  })
  t.same(await agrees('deleted'), { names: new Set(), files: new Map() })
  rmSync(folder, { recursive: true })
  await agrees('without a folder')

  await t.test('a change in the tick of a reading is seen', async (t) => {
    mkdirSync(folder)
    const young = new DatasetFolder(folder)
    for (let n = 0; n < 50; n += 1) {
      await young.describe('2025-03', stored(n))
      t.equal((await young.content()).files.get('2025-03')?.version, n)
    }
  })
})

test('bad input, and a full disk', async (t) => {
  const { store, get, refuseSpace, directory } = await open(t)
  await store(march(10))
  for (const [path, status, code] of [
    ['/presence/2025-03.parquet', 404, 'dataset_unknown'],
    ['/title-count/2025-02.parquet', 404, 'dataset_file_unknown'],
    ['/title-count/2099-01.parquet', 404, 'dataset_file_unknown'],
    ['/title-count/2025-13.parquet', 404, 'dataset_file_unknown'],
    ['/title-count/newest.parquet', 404, 'dataset_file_unknown'],
    ['/title/2025-03.parquet', 404, 'dataset_file_unknown'],
    ['/title-count/2025-03.csv', 404, 'dataset_file_unknown'],
    ['/title-count/..%2F..%2Fetc%2Fpasswd', 404, 'dataset_file_unknown'],
    ['/title-count/2025-03.0123456789abcdef.parquet', 404, 'dataset_file_unknown']
  ] as const) {
    const answer = await get(path)
    t.same([answer.statusCode, answer.headers['x-error-code']], [status, code], path)
  }
  refuseSpace(new Error('less than 105 MB are free'))
  const full = await get(PATH)
  t.same([full.statusCode, full.headers['x-error-code']], [503, 'disk_full'])
  t.notOk(existsSync(join(directory, 'title-count')), 'no half file')
  refuseSpace(undefined)
  t.equal((await get(PATH)).statusCode, 200)
})

test('a file that cannot be used is refused with 503, and the log names it', async (t) => {
  const { directory, store, get, lines } = await open(t)
  const folder = join(directory, 'title-count')
  const asFolder = (path: string) => () => {
    rmSync(path)
    mkdirSync(path)
  }
  const asFile = () => {
    rmSync(folder, { recursive: true })
    writeFileSync(folder, '')
  }
  const bytes = () => join(folder, readdirSync(folder).find((name) => /^2025-03.*parquet$/.test(name)) ?? '')
  const description = join(folder, '2025-03.json')
  for (const [what, damage, urls] of [
    ['bytes', () => asFolder(bytes())(), [PATH]],
    ['a description', asFolder(description), [PATH, '']],
    ['a folder', asFile, [PATH, '']]
  ] as const) {
    await store(march(10))
    t.equal((await get(PATH)).statusCode, 200)
    damage()
    for (const url of urls) {
      const { statusCode, headers } = await get(url)
      t.same([statusCode, headers['x-error-code']], [503, 'data_damaged'], `${what}: ${url}`)
    }
    t.match(lines.at(-1), /title-count/)
    rmSync(folder, { recursive: true, force: true })
  }
})

test('a file whose description is deleted or damaged is made again, with the same bytes', async (t) => {
  const { directory, store, get, listed } = await open(t)
  const description = join(directory, 'title-count', '2025-03.json')
  await store(march(10))
  await get(PATH)
  await store(march(11))
  const { rawPayload } = await get(PATH)
  t.match((await listed())['title-count'], [{ newest: { revision: 2 } }])
  for (const damage of [
    () => rmSync(description),
    () => writeFileSync(description, readFileSync(description).subarray(1))
  ]) {
    damage()
    t.same((await get(PATH)).rawPayload, rawPayload)
    t.match((await listed())['title-count'], [{ newest: { revision: 1 }, earlier: [] }])
  }
})

test('a reader of one of 200 titles skips 19 of 20 bytes', async (t) => {
  const { clickhouse, get } = await open(t)
  await clickhouse.loader.execute(
    `INSERT INTO title_count__0 (title_id, ts, online, position)
     SELECT leftPad(toString(number % 200), 8, '0'), toDateTime64('2025-03-01 00:00:00', 3, 'UTC') + intDiv(number, 200), number % 300, 1
     FROM numbers(500000)`
  )
  const file = tableOf('ParquetMetadata', (await get(PATH)).rawPayload)
  // Readers keep a group whose statistics have no number of nulls.
  const [facts] = await clickhouse.readers.rows(
    `SELECT sumIf(f.bytes, isNull(f.title.null_count) OR '00000100' BETWEEN f.title.min AND f.title.max) AS bytes,
       sum(f.bytes) AS all_bytes
     FROM (SELECT arrayJoin(m.row_groups) AS g, g.total_compressed_size AS bytes, g.columns[1].statistics AS title
       FROM ${file} AS m) AS f`
  )
  t.ok(Number(facts?.bytes) <= Number(facts?.all_bytes) / 20, `${facts?.bytes} of ${facts?.all_bytes} bytes`)
})

test('a disk that becomes full while a file is written leaves nothing', async (t) => {
  const small = await smallDisk(t, 1)
  if (small === undefined) return t.comment('NO SMALL DISK: this user may not mount one.')
  const { clickhouse, store, get } = await open(t, small)
  await clickhouse.loader.execute(
    `INSERT INTO title_count__0 (title_id, ts, online, position) SELECT '4d530064',
      toDateTime64('2025-03-01 00:00:00', 3, 'UTC') + number, rand(), 1 FROM numbers(500000)`
  )
  const full = await get(PATH)
  t.same([full.statusCode, full.headers['x-error-code']], [503, 'disk_full'])
  t.match(full.json().error, /disk of the service is full/)
  t.match((await get('')).json().datasets[1].files, [{ period: '2025-03', newest: null }])
  t.same(readdirSync(join(small, 'title-count')), [])
  await clickhouse.loader.execute('TRUNCATE TABLE title_count__0')
  await store(march(1))
  t.equal((await get(PATH)).statusCode, 200)
})

test('every dataset has the columns that it says', async (t) => {
  const { get, insert, insertRows, store, listed, rowsIn } = await open(t)
  await store(march(1))
  await insert('network_count', ['metric', 'ts', 'value', 'position'], [['online', time(MARCH), 5, 1]])
  await insert(
    'title',
    ['title_id', 'field', 'value', 'name_key', 'version'],
    [['4d530064', 'name', 'Halo', 'halo', 1]]
  )
  await insert(
    'scrape',
    ['source', 'ts', 'duration_ms', 'outcome', 'published', 'reason', 'position'],
    [['network', time(MARCH), 3, 'succeeded', 1, '', 1]]
  )
  await insertRows('match_session', [
    {
      title_id: '4d530064',
      first_seen: time(MARCH),
      host: 'ann',
      nth: 1,
      is_void: false,
      last_seen: time(MARCH),
      peak_players: 4,
      max_players: 8,
      players_sum: 7,
      sightings: 2,
      version: 1
    }
  ])
  const board = { title_id: '4d530064', leaderboard_id: 1 }
  // A board whose events were all retracted.
  await insert('record_history', ['title_id', 'leaderboard_id', 'version'], [['4d530064', 2, 1]])
  await insertRows('record_history', [
    {
      ...board,
      players: ['ann'],
      occurrences: [1],
      ratings: ['9'],
      times_ms: [null],
      set_at: [time(MARCH)],
      from_at: [time(MARCH)],
      to_at: [null],
      version: 1
    }
  ])
  const states = [
    ['ann', 1, '9', 10, 1, MARCH],
    ['bob', 2, '8', 20, 1, MARCH],
    ['cid', 3, '7', 30, 1, APRIL],
    // A worse state of the same instant, recorded later.
    ['ann', 4, '8.5', 40, 1, MARCH]
  ] as const
  await insertRows(
    'leaderboard_history',
    states.map(([player, n, rating, ord, step, ms]) => ({
      ...board,
      player,
      occurrence: 1,
      ts: time(ms),
      content: n,
      player_key: player,
      is_gone: false,
      rating,
      ord,
      step,
      details: '',
      epoch: 1,
      partition: 0,
      offset: n
    }))
  )
  await insertRows('leaderboard_change', [
    {
      ts: time(MARCH),
      ...board,
      epoch: 1,
      partition: 0,
      offset: 1,
      recorded_epoch: 1,
      recorded_partition: 0,
      recorded_offset: 1,
      is_change: true,
      change: 'new',
      player: 'ann',
      player_key: 'ann',
      occurrence: 1,
      new_rank: 1,
      new_rating: '9',
      is_time: false,
      version: 1
    }
  ])
  const files = await listed()
  for (const dataset of datasets) {
    const month = dataset.files === 'newest' ? 'newest' : '2025-03'
    t.ok(
      files[dataset.name]?.some(({ period }) => period === month),
      dataset.name
    )
    const rows = await rowsIn((await get(`/${dataset.name}/${month}.parquet`)).rawPayload)
    t.same(
      Object.keys(rows[0] ?? {}),
      dataset.columns.map(({ name }) => name),
      dataset.name
    )
    if (dataset.name === 'leaderboard-entry')
      t.same(
        rows.map(({ player, rank }) => [player, rank]),
        [
          ['ann', '1'],
          ['bob', '2']
        ]
      )
  }
})
