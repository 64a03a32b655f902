import { openChdb } from '@gamenet/engines'
import { codeOf } from '@gamenet/engines/sql'
import { ALL_RIGHTS } from '@gamenet/engines/testing'
import { FIRST_GENERATION, withServing } from '@gamenet/schemas'
import tap, { test } from 'tap'
import { DataVersions } from '../src/answers/data-versions.js'
import { questionEndpoints } from '../src/questions/questions.js'
import { openStoredTables } from './stored-tables.js'
import { logOfLines, type Teardown, TestTables, testApp } from './support/test-app.js'

const PEAKS = `-- Months of a title by their peak.
-- titleId: The title, 8 hexadecimal digits.
-- from: Only samples since then.
-- limits: 5 s, 64 MiB, 2 rows
SELECT toStartOfMonth(c.observed_at) AS month, max(c.online) AS peak, count() AS samples, min(c.observed_at) AS first,
  nullIf(any(t.name), '') AS name
FROM title_count AS c LEFT JOIN title AS t ON t.title_id = c.title_id
WHERE c.title_id = {titleId: String} AND c.observed_at >= {from: DateTime64(3, 'UTC')}
GROUP BY month
ORDER BY month
`

/** The user of questions has rights on the embedded database, not on those of the shared server. */
async function openOwn() {
  const clickhouse = await openChdb({ path: tap.testdir(), grants: ALL_RIGHTS })
  tap.teardown(() => clickhouse.close())
  return clickhouse
}

async function readQuestions(files: Readonly<Record<string, string>>) {
  const model = await openStoredTables(openOwn)
  const tables = model.clickhouse.readers
  const questions = await questionEndpoints({
    files: Object.entries(files).map(([file, text]) => ({ file, text })),
    tables: withServing(tables, FIRST_GENERATION),
    codeOf
  })
  return { model, tables, ...questions }
}

async function openQuestions(t: Teardown, files: Readonly<Record<string, string>>) {
  const { model, tables, endpoints } = await readQuestions(files)
  const { changes, stored } = new TestTables()
  const versions = new DataVersions({ changes: stored })
  const { app } = await testApp(t, { endpoints, tables, dataVersions: versions })
  return { model, changes, versions, get: async (url: string, headers = {}) => await app.inject({ url, headers }) }
}

test('ten lines of SQL are an endpoint with parameters, formats, an ETag and a description', async (t) => {
  const { model, changes, versions, get } = await openQuestions(t, { 'peaks-by-month.sql': PEAKS })
  const counted = (month: number, value: number) => ({ key: '4d530001', ms: Date.UTC(2026, month, 3), value })
  await model.storeTitles([counted(0, 5), counted(1, 9)])
  await model.insert('title', ['title_id', 'field', 'value', 'version'], [['4d530001', 'name', '=alpha', '1']])
  const path = '/api/questions/peaks-by-month?titleId=4d530001&from='
  const answer = await get(`${path}2026-01-15T00:00:00Z`)
  t.same(answer.json(), [
    { month: '2026-02-01', peak: 9, samples: 1, first: '2026-02-03T00:00:00.000Z', name: '=alpha' }
  ])
  const csv = await get(`${path}2026-01-01T00:00:00.500Z&format=csv`)
  t.equal(
    csv.body,
    `"month","peak","samples","first","name"
"2026-01-01",5,1,"2026-01-03T00:00:00.000Z","'=alpha"
"2026-02-01",9,1,"2026-02-03T00:00:00.000Z","'=alpha"
`
  )
  const again = { 'if-none-match': String(answer.headers.etag) }
  t.equal((await get(`${path}2026-01-15T00:00:00Z`, again)).statusCode, 304)
  changes.push({ version: 7, projection: 'title-count', fromMs: 0, toMs: Date.UTC(2106, 0, 1) })
  await versions.refresh()
  t.equal((await get(`${path}2026-01-15T00:00:00Z`, again)).statusCode, 200, 'the data has changed')
  t.match((await get('/api/questions/peaks-by-month?titleId=4d530001')).json(), {
    error: /^from must be a day or an ISO 8601 instant/
  })
  await model.storeTitles([counted(2, 1)])
  t.match(await get(`${path}2025-01-01T00:00:00Z`), { statusCode: 400, body: /exceeds its limits .*2 rows/ })
  t.match(await get(`${path}2025-01-01T00:00:00Z&format=csv`), { statusCode: 400, body: /exceeds its limits .*2 rows/ })
  const { paths } = (await get('/openapi.json')).json()
  t.match(paths['/api/questions/peaks-by-month'].get, {
    operationId: 'questionPeaksByMonth',
    summary: 'Months of a title by their peak',
    description: 'Months of a title by their peak.',
    parameters: [
      { name: 'titleId', description: 'The title, 8 hexadecimal digits.' },
      { name: 'from' },
      { name: 'format' }
    ],
    responses: { 200: { content: { 'text/csv': {} } } }
  })
})

test('integers of 64 bits are exact in files', async (t) => {
  const { get } = await openQuestions(t, {
    'big.sql':
      '-- Big.\nSELECT toUInt64(18446744073709551615) AS a, toNullable(toUInt64(9223372036854775808)) AS b, toInt64(-9223372036854775807) AS c'
  })
  t.equal(
    (await get('/api/questions/big?format=csv')).body.split('\n')[1],
    '18446744073709551615,9223372036854775808,-9223372036854775807'
  )
})

test('every fault of every file is reported with its line', async (t) => {
  const ok = '-- What.\nSELECT 1 AS one'
  const faults: Record<string, [text: string, fault: RegExp]> = {
    'a.sql': ['-- What.\n\nSELECT 1 AS x\nWHERE )', /^a\.sql:4: Syntax error/],
    'b.sql': ['-- What.\nSELECT c.online AS o\nFROM secrets AS c', /^b\.sql:3: .*secrets/],
    'c.sql': ['-- What.\nSELECT\n  c.missing AS o\nFROM title_count AS c', /^c\.sql:3: .*missing/],
    'd.sql': ['-- What.\nDROP TABLE title_count', /^d\.sql:2: the statement begins with DROP; only SELECT is allowed/],
    'e.sql': ["-- What.\nSELECT 1 AS a\n  , file('/etc/passwd') AS b", /^e\.sql:\d: Cannot open file/],
    'f.sql': [
      '-- What.\nSELECT 1 AS a\nWHERE 1 = {n: Array(String)}',
      /^f\.sql:3: the parameter n has the type Array\(String\)/
    ],
    'g.sql': ['SELECT 1 AS a', /^g\.sql:1: the file does not begin with a comment/],
    'h.sql': ['-- What.\n-- limits: 5 hours\nSELECT 1 AS a', /^h\.sql:2: limits has "5 hours"/],
    'i.sql': ['-- What.\n-- day: The day.\nSELECT 1 AS a', /^i\.sql:2: the header describes day/],
    'j.sql': ['-- What.\nSELECT\n[1] AS list', /^j\.sql:3: the column list has the type Array\(UInt8\)/],
    'j2.sql': [
      '-- A list: of what.\nSELECT list\nFROM (SELECT 1 AS a,\n  [a] AS list)',
      /^j2\.sql:4: the column list has/
    ],
    'j3.sql': ['-- What.\nSELECT 1 AS a,\n  (1 + 2)', /^j3\.sql:2: the column plus\(1, 2\) has/],
    'k.sql': ['-- What.\nSELECT 1 AS a\nWHERE now() > 0', /^k\.sql:3: the function now changes the answer/],
    'k2.sql': ['-- What.\nSELECT\nCURRENT_TIMESTAMP AS at', /^k2\.sql:2: the function now changes/],
    'k3.sql': ['-- What.\nSELECT `curdate`() AS day', /^k3\.sql:2: the function today changes/],
    'k4.sql': ['-- What.\nSELECT toString(arrayShuffle([1, 2])) AS a', /^k4\.sql:2: the function arrayShuffle changes/],
    'l.sql': ['-- What.\nSELECT * FROM presence__0', /^l\.sql:2: .*SELECT ON default\.presence__0/],
    'm.sql': ['-- What.\nSELECT 1 AS a; SELECT 2 AS b', /^m\.sql:2: /],
    'o.sql': [
      "-- What.\nSELECT 1 AS a WHERE {title: String} != ''",
      /^o\.sql:2: the parameter title has the name of a table/
    ],
    'N.sql': [ok, /^N\.sql:1: the name/]
  }
  const files = { ...Object.fromEntries(Object.entries(faults).map(([file, [text]]) => [file, text])), 'z.sql': ok }
  const found = await readQuestions(files)
  t.same(
    found.endpoints.map(({ path }) => path),
    ['/api/questions/z']
  )
  t.equal(found.faults.length, Object.keys(faults).length)
  for (const [at, [, fault]] of Object.values(faults).entries()) t.match(found.faults[at]?.message, fault)
  t.match(found.faults[2], { file: 'c.sql', line: 3, reason: /missing/ })
})

const BY_DAY = `-- Samples by day.
-- zone: Days of this zone.
SELECT toString(toDate(toTimeZone(c.observed_at, { zone : TimeZone })) ) AS day, count() AS samples
FROM title_count AS c GROUP BY day ORDER BY day`

test('a parameter of the type TimeZone takes names of zones alone', async (t) => {
  const { model, get } = await openQuestions(t, { 'by-day.sql': BY_DAY })
  await model.storeTitles([{ key: '4d530001', ms: Date.UTC(2026, 0, 1, 23, 30), value: 1 }])
  for (const [zone, day] of [
    ['UTC', '2026-01-01'],
    ['europe/BERLIN', '2026-01-02'],
    ['Asia/Kolkata', '2026-01-02']
  ] as const) {
    t.same((await get(`/api/questions/by-day?zone=${zone}`)).json(), [{ day, samples: 1 }], zone)
  }
  for (const zone of ['Mars/Olympus', 'file:/proc/self/fd/9', '/etc/localtime', '../UTC', '']) {
    for (const format of ['json', 'csv']) {
      const answer = await get(`/api/questions/by-day?zone=${encodeURIComponent(zone)}&format=${format}`)
      t.match(answer, { statusCode: 400, body: /zone must be the name of an IANA time zone/ }, `${zone} ${format}`)
    }
  }
  const { paths } = (await get('/openapi.json')).json()
  const [parameter] = paths['/api/questions/by-day'].get.parameters
  t.match(parameter, { name: 'zone', description: 'Days of this zone.', example: 'Europe/Berlin' })
})

test('text that reaches a time zone is refused when the question is loaded', async (t) => {
  const from = 'FROM title_count AS c'
  const reaching = [
    `SELECT toString(toTimeZone(c.observed_at, {zone: String})) AS a ${from}`,
    `SELECT toDateTime(0, concat('', {zone: String})) AS a`,
    `SELECT 1 AS a WHERE toDateTime(0, if({zone: String} = '', 'UTC', {zone: String})) > 0`,
    `SELECT if(c.online > 5, formatDateTime(c.observed_at, '%F', {zone: String}), '') AS a ${from}`,
    `SELECT dateDiff('day', c.observed_at, c.observed_at, {zone: String}) AS a ${from}`,
    `SELECT b FROM (SELECT 1 AS b, toDateTime(0, {zone: String}) AS c)`,
    `SELECT arrayMap(x -> toString(toTimeZone(x, {zone: String})), [c.observed_at])[1] AS a ${from}`,
    `WITH {zone: String} AS z SELECT toTimeZone(c.observed_at, z) AS a ${from}`,
    `SELECT if({isLocal: Bool}, toDateTime(0, {zone: String}), toDateTime(0, 'UTC')) AS a`,
    `SELECT toDateTime(0, if({n: UInt8} > 0, {zone: String}, 'UTC')) AS a`,
    `SELECT {other: String} AS o, toDateTime(0, {zone: TimeZone}) AS a, toDateTime(0, {zone: String}) AS b`
  ]
  const harmless = [
    `SELECT count() AS a ${from} WHERE c.title_id = {zone: String}`,
    `SELECT toDateTime(0, {zone: TimeZone}) AS a, {text: String} AS b`,
    `SELECT toTimeZone(c.observed_at, 'Europe/Berlin') AS a ${from} WHERE toDateOrNull({day: String}) IS NULL`
  ]
  const files = [...reaching, ...harmless].map((sql, at) => [`q${at}.sql`, `-- What.\n${sql}`])
  const { faults, endpoints } = await readQuestions(Object.fromEntries(files))
  t.equal(endpoints.length, harmless.length)
  t.equal(faults.length, reaching.length)
  for (const [at, { message }] of faults.entries())
    t.match(message, /^q\d+\.sql:2: the parameter zone is text and reaches a time zone or a type/, reaching[at] ?? '')
})

test('text that is a type, which can have a time zone, is refused when the question is loaded', async (t) => {
  const types = [
    `CAST('0', concat('DateTime', {type: String}))`,
    `accurateCastOrDefault('0', {type: String} || '', 'x')`,
    `JSONExtract('{"a":1}', 'a', {type: String})`
  ]
  const files = types.map((type, at) => [`q${at}.sql`, `-- What.\nSELECT toString(${type}) AS a`])
  const { faults } = await readQuestions(Object.fromEntries(files))
  t.equal(faults.length, types.length)
  for (const { message } of faults) t.match(message, /^q\d\.sql:2: the parameter type is text and reaches .* a type/)
})

test('a placeholder that only the engine sees is a fault: no value of another statement takes its place', async (t) => {
  const texts = [
    "$$ ' $$ AS a, {hidden: String} AS b",
    "1 AS a # '\n, {hidden: String} AS b",
    '‘"’ AS a, {hidden: String} AS b'
  ]
  const files = texts.map((text, at) => [`q${at}.sql`, `-- What.\nSELECT ${text}`])
  const { faults } = await readQuestions(Object.fromEntries(files))
  t.equal(faults.length, texts.length)
  for (const { message } of faults) t.match(message, /Substitution `hidden` is not set/)
})

test('text that is a zone only for some values or rows names no file', async (t) => {
  const from = 'FROM title_count AS c'
  const { get } = await openQuestions(t, {
    'by-value.sql': `-- What.\nSELECT toString(toDateTime(0, if({z: String} LIKE '%:%', {z: String}, 'UTC'))) AS a`,
    'by-row.sql': `-- What.\nSELECT toString(c.observed_at, concat(left(c.title_id, 0), {z: String})) AS a ${from}`
  })
  const paths = ['file:/proc/self/fd/9', 'FILE:/etc/passwd', '/etc/passwd', '../../../etc/passwd', 'a/../../etc/passwd']
  paths.push(`DateTime('file:/etc/passwd')`, 'DateTime($$/etc/passwd$$)')
  for (const question of ['by-value', 'by-row'])
    for (const z of paths) {
      const answer = await get(`/api/questions/${question}?z=${encodeURIComponent(z)}`)
      t.match(answer, { statusCode: 400, body: /z must be .* no path of a file; got/ }, `${question} ${z}`)
    }
  for (const z of ['Ride & Die / #1', "it's", 'The "/" \\', 'Case file: 7', 'x']) {
    const answer = await get(`/api/questions/by-value?z=${encodeURIComponent(z)}`)
    t.notMatch(answer.body, /no path of a file/, z)
  }
})

test('an error that the values of a client cause in the engine is a fault of the request', async (t) => {
  const from = 'FROM title_count AS c'
  const failing: readonly (readonly [sql: string, value: string])[] = [
    [`SELECT toInt32OrZero({v: String}) + toInt32(concat('0', {v: String})) AS a`, 'x'],
    [`SELECT toDate(if({v: String} = '', '2026-01-01', {v: String})) AS a`, 'x'],
    [`SELECT toDateTime(if({v: String} = '', '2026-01-01 00:00:00', {v: String})) AS a`, '2026-13-45'],
    [`SELECT toFloat64(concat('1', {v: String})) AS a`, 'x'],
    [
      `SELECT toString(toUUID(if({v: String} = '', toString(toUUID('00000000-0000-0000-0000-000000000000')), {v: String}))) AS a`,
      'x'
    ],
    [`SELECT toBool(if({v: String} = '', 'true', {v: String})) AS a`, 'x'],
    [`SELECT count() AS a ${from} WHERE c.title_id LIKE {v: String}`, '%\\'],
    [`SELECT count() AS a ${from} WHERE match(c.title_id, {v: String})`, '('],
    [`SELECT replaceRegexpAll(c.title_id, {v: String}, '') AS a ${from}`, '['],
    [`SELECT base64Decode({v: String}) AS a`, '!'],
    [`SELECT formatDateTime(c.observed_at, {v: String}) AS a ${from}`, '%'],
    [`SELECT toFixedString({v: String}, 3) AS a`, 'abcd'],
    [`SELECT dateTrunc(if({v: String} = '', 'day', {v: String}), c.observed_at) AS a ${from}`, 'x'],
    [`SELECT count() AS a ${from} WHERE c.online = if({v: String} = '', '0', {v: String})`, 'x'],
    [`SELECT intDiv(c.online, {v: Int64} - 5) AS a ${from}`, '5'],
    [`SELECT toDecimal64({v: Int64}, 10) AS a`, '9007199254740991'],
    [`SELECT repeat('a', {v: UInt64}) AS a`, '9007199254740991'],
    [`SELECT length(range({v: UInt64})) AS a`, '9007199254740991'],
    [`SELECT toDateTime64(c.observed_at, {v: UInt8}) AS a ${from}`, '200'],
    [`SELECT accurateCast({v: Int64}, 'UInt8') AS a`, '300'],
    [`SELECT quantile({v: Float64})(c.online) AS a ${from}`, '2.5'],
    [`SELECT substring(c.title_id, {v: Int64} + 1) AS a ${from}`, '-1']
  ]
  const files = failing.map(([sql], at) => [`q${at}.sql`, `-- What.\n${sql}`])
  const { model, tables, endpoints, faults } = await readQuestions(Object.fromEntries(files))
  t.same(faults, [])
  await model.storeTitles([{ key: '4d530001', ms: Date.UTC(2026, 0, 1), value: 1 }])
  const { logger, lines } = logOfLines('warn')
  const { app } = await testApp(t, { endpoints, tables, logger })
  for (const [at, [sql, value]] of failing.entries()) {
    for (const format of ['json', 'csv']) {
      const answer = await app.inject(`/api/questions/q${at}?v=${encodeURIComponent(value)}&format=${format}`)
      const said = `${format} ${sql} ${answer.body}`
      t.match(answer, { statusCode: 400, headers: { 'x-error-code': 'request_invalid' } }, said)
      t.match(answer.json(), { error: /^The question q\d+ has no answer for these values: \S.*\.$/ }, said)
      t.notMatch(answer.body, /SELECT|Exception|__table/, said)
    }
  }
  t.same(lines, [], 'nothing is logged as a failure')
})
