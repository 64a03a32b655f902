import { deepEqual, equal } from 'node:assert/strict'
import { buffer, text } from 'node:stream/consumers'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { until } from '@gamenet/engines/testing'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import type { LaneLimits } from '../src/clickhouse/statement.js'
import { type ClickHouse, ClickHouseError, type Lane, type LaneName } from '../src/index.js'

export type OpenOptions = {
  readonly readers?: number
  readonly queueMax?: number
  readonly limits?: Partial<Record<LaneName, LaneLimits>>
}
/** Opens the engine under test and closes it with the test. */
export type Open = (t: Test, options?: OpenOptions) => Promise<ClickHouse>

const ENDLESS = 'SELECT sum(cityHash64(number)) AS s FROM system.numbers'
const LIMITS: LaneLimits = { seconds: 60, memoryBytes: 512 * 1024 * 1024, threads: 1 }

let lastTable = 0
const tableName = (): string => {
  lastTable += 1
  return `contract_${process.pid}_${lastTable}`
}

/** Identifies an endless query: a literal, because comments are lost if parameters are bound. */
const marked = (mark: string): string =>
  `SELECT sum(cityHash64(number + {one: UInt8})) AS s, '${mark}' AS mark FROM system.numbers`

export const isRunning = async (control: Lane, mark: string): Promise<boolean> => {
  const found = await control.rows(
    `SELECT count() AS n FROM system.processes AS p WHERE position(p.query, {mark: String}) > 0 AND p.query NOT LIKE '%system.processes%'`,
    { mark }
  )
  return found[0]?.n !== '0'
}

const lines = (rows: readonly unknown[]): Uint8Array =>
  new TextEncoder().encode(rows.map((row) => `${JSON.stringify(row)}\n`).join(''))

const failure = async (work: Promise<unknown>): Promise<ClickHouseError> => {
  try {
    await work
  } catch (error) {
    if (error instanceof ClickHouseError) return error
    throw error
  }
  throw new Error('The statement was expected to fail, and did not.')
}

/** The guarantees of both engines; titles begin with `name`. */
export const clickhouseContract = (name: string, open: Open): void => {
  parameters(name, open)
  answers(name, open)
  streams(name, open)
  writes(name, open)
  errors(name, open)
  waiting(name, open)
}

const parameters = (name: string, open: Open): void => {
  test(`${name}: any text is returned unchanged, by itself and in arrays`, async (t) => {
    const { readers } = await open(t)
    const text = fc.string({ unit: 'binary', maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(text, fc.array(text, { maxLength: 5 }), fc.option(text), async (s, a, n) => {
        const rows = await readers.rows(
          'SELECT {s: String} AS s, {a: Array(String)} AS a, {n: Nullable(String)} AS n',
          {
            s,
            a,
            n
          }
        )
        deepEqual(rows, [{ s, a, n }])
      }),
      {
        numRuns: 30,
        examples: [
          ["'; DROP TABLE t; --", ["']), (SELECT 1", '\\', '\\N'], null],
          ['\0\b\t\n\r\f\\\'"`', ['\0', '\t', '\n', '{x: String}', '--', '/*'], 'NULL'],
          ['😀 ﷽ Ω', ['', '😀'], '']
        ]
      }
    )
  })

  test(`${name}: a parameter of any length is bound, in any type`, async (t) => {
    const { readers, projections } = await open(t)
    const keys = Array.from({ length: 100_000 }, (_, n) => `key '${n}' \\n\t{keys: String}`)
    const sql =
      'SELECT {keys: Array(String)} AS a, {text: Nullable(String)} AS s, {numbers: Array(UInt32)} AS n, {s: String} AS t'
    const text = keys.join()
    const numbers = keys.map((_, n) => n)
    t.same(await projections.rows(sql, { keys, text, numbers, s: text }), [{ a: keys, s: text, n: numbers, t: text }])
    t.same(await readers.rows('SELECT 1 AS one WHERE {key: String} IN {keys: Array(String)}', { keys, key: keys[7] }), [
      { one: 1 }
    ])
  })

  test(`${name}: integers of every width stay exact`, async (t) => {
    const { readers } = await open(t)
    const values = {
      u64: 2n ** 64n - 1n,
      i64: -(2n ** 63n),
      u128: 2n ** 128n - 1n,
      i128: -(2n ** 127n),
      u256: 2n ** 256n - 1n
    }
    const rows = await readers.rows(
      `SELECT {u64: UInt64} AS u64, {i64: Int64} AS i64, {u128: UInt128} AS u128, {i128: Int128} AS i128,
         {u256: UInt256} AS u256, {u32: UInt32} AS u32, {list: Array(UInt64)} AS list`,
      { ...values, u32: 4294967295, list: [2n ** 63n, 1] }
    )
    t.same(rows, [
      {
        ...Object.fromEntries(Object.entries(values).map(([key, value]) => [key, String(value)])),
        u32: 4294967295,
        list: ['9223372036854775808', '1']
      }
    ])
  })

  test(`${name}: booleans, fractions, dates, nulls and long lists are bound by their placeholder's type`, async (t) => {
    const { readers } = await open(t)
    const ids = Array.from({ length: 3000 }, (_, index) => `key-${index}`)
    const rows = await readers.rows(
      `SELECT {b: Bool} AS b, {f: Float64} AS f, {d: DateTime64(3, 'UTC')} AS d, {n: Nullable(UInt8)} AS n,
         {bs: Array(Nullable(UInt8))} AS bs, length({ids: Array(String)}) AS c`,
      { b: true, f: 0.1, d: '2020-02-29 23:59:59.999', n: null, bs: [1, null], ids }
    )
    t.same(rows, [{ b: true, f: 0.1, d: '2020-02-29 23:59:59.999', n: null, bs: [1, null], c: '3000' }])
  })

  test(`${name}: an identifier is bound as a name only`, async (t) => {
    const { readers, projections } = await open(t)
    const table = tableName()
    await projections.execute('CREATE TABLE {table: Identifier} (a UInt8) ENGINE = MergeTree ORDER BY a', { table })
    t.same(await readers.rows('SELECT count() AS n FROM {table: Identifier}', { table }), [{ n: '0' }])
    const hostile = `${table}; DROP TABLE ${table}`
    t.equal((await failure(readers.rows('SELECT count() FROM {table: Identifier}', { table: hostile }))).code, 60)
    t.same(await readers.rows('SELECT count() AS n FROM {table: Identifier}', { table }), [{ n: '0' }])
  })

  test(`${name}: a missing, malformed or unsupported parameter is refused, also after a valid one`, async (t) => {
    const { control } = await open(t)
    t.same(await control.rows('SELECT {x: String} AS x', { x: 'stale' }), [{ x: 'stale' }])
    t.equal((await failure(control.rows('SELECT {x: String} AS x'))).code, 456)
    t.equal((await failure(control.rows('SELECT {x: UInt8} AS x', { x: 'many' }))).code, 457)
    t.match((await failure(control.rows('SELECT {x: UInt64} AS x', { x: 2 ** 60 }))).message, /above 2\^53/)
    t.match((await failure(control.rows('SELECT {x: String} AS x', { x: { a: 1 } }))).message, /must be null/)
    t.same(await control.rows(`SELECT '{x: String}' AS x -- {y: String}`), [{ x: '{x: String}' }])
  })
}

const answers = (name: string, open: Open): void => {
  test(`${name}: json returns the same rows as bytes, and [] for none`, async (t) => {
    const { readers } = await open(t)
    const sql = `SELECT number AS n, toString(number) AS s FROM numbers({count: UInt32}) ORDER BY n`
    for (const count of [0, 1, 3]) {
      const bytes = Buffer.from(await readers.json(sql, { count }))
      t.equal(bytes.at(0), '['.charCodeAt(0))
      t.equal(bytes.at(-1), ']'.charCodeAt(0))
      t.same(JSON.parse(bytes.toString()), await readers.rows(sql, { count }))
    }
    t.equal(Buffer.from(await readers.json(sql, { count: 0 })).toString(), '[]')
  })

  test(`${name}: a large answer is complete`, async (t) => {
    const { readers } = await open(t)
    const count = 300_000
    const answer = JSON.parse(
      Buffer.from(
        await readers.json('SELECT toUInt32(number) AS n FROM numbers({count: UInt32}) ORDER BY n', { count })
      ).toString()
    ) as { n: number }[]
    t.equal(answer.length, count)
    t.ok(answer.every((row, index) => row.n === index))
  })

  test(`${name}: the format and the limits apply with unions, comments and semicolons at the end`, async (t) => {
    const { readers } = await open(t, { limits: { readers: { ...LIMITS, seconds: 1 } } })
    t.same(await readers.rows('SELECT 1 AS n UNION ALL SELECT 1 AS n; '), [{ n: 1 }, { n: 1 }])
    t.same(await readers.rows('/* a */ WITH 2 AS m SELECT m AS n -- the end'), [{ n: 2 }])
    t.equal((await failure(readers.rows(`SELECT 1 AS s UNION ALL ${ENDLESS}`))).code, 159)
  })

  test(`${name}: an exception after the first rows rejects, without a part of the answer`, async (t) => {
    const { readers } = await open(t)
    const sql = 'SELECT throwIf(number = 400000, {say: String}) AS t, number FROM numbers(600000)'
    const error = await failure(readers.json(sql, { say: 'in the middle' }))
    t.equal(error.code, 395)
    t.match(error.message, /in the middle/)
  })
}

const writes = (name: string, open: Open): void => {
  const rowsOf = (count: number): unknown[][] =>
    Array.from({ length: count }, (_, n) => [n, `name ${n}`, `${2000 + (n % 20)}-01-01 00:00:00.000`])
  const columns = ['n', 's', 'ts']
  const create = async (clickhouse: ClickHouse): Promise<string> => {
    const table = tableName()
    await clickhouse.projections.execute(
      `CREATE TABLE {table: Identifier} (n UInt32, s String, ts DateTime64(3, 'UTC'), extra UInt8 DEFAULT 7)
       ENGINE = MergeTree PARTITION BY toYear(ts) ORDER BY n`,
      { table }
    )
    return table
  }
  const countOf = async ({ readers }: ClickHouse, table: string): Promise<number> =>
    Number((await readers.rows('SELECT count() AS n FROM {table: Identifier}', { table }))[0]?.n)

  test(`${name}: an insert is stored when it resolves, with the defaults of the columns left out`, async (t) => {
    const clickhouse = await open(t)
    const table = await create(clickhouse)
    await clickhouse.loader.insert(table, columns, lines([[1, 'é 😀 \0 "\\', '2020-01-01 00:00:00.000']]))
    await clickhouse.loader.insert(table, columns, new Uint8Array())
    t.same(await clickhouse.readers.rows('SELECT * FROM {table: Identifier}', { table }), [
      { n: 1, s: 'é 😀 \0 "\\', ts: '2020-01-01 00:00:00.000', extra: 7 }
    ])
  })

  test(`${name}: the rows of a large body are stored as if one by one`, async (t) => {
    const clickhouse = await open(t)
    const text = fc.string({ unit: 'binary', maxLength: 40 })
    const instant = fc.date({
      min: new Date('1970-01-02T00:00:00Z'),
      max: new Date('2100-01-01T00:00:00Z'),
      noInvalidDate: true
    })
    const row = fc.tuple(fc.nat(), text, instant)
    const property = fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 20 }), async (rows) => {
      const [alone, together] = [await create(clickhouse), await create(clickhouse)]
      const written = rows.map(([n, s, ts]) => [n, s, ts.toISOString().slice(0, -1)])
      for (const each of written) await clickhouse.loader.insert(alone, columns, lines([each]))
      const body = lines([...written, ...rowsOf(20_000).map(([n, ...rest]) => [2 ** 31 + Number(n), ...rest])])
      await clickhouse.loader.insert(together, columns, body)
      const stored = ({ table }: { table: string }) =>
        clickhouse.readers.rows(
          'SELECT hex(c.s) AS s, c.* EXCEPT s FROM {table: Identifier} AS c WHERE c.n < 2147483648 ORDER BY c.n, s, c.ts',
          { table }
        )
      deepEqual(await stored({ table: together }), await stored({ table: alone }))
      equal(await countOf(clickhouse, together), rows.length + 20_000)
    })
    await fc.assert(property, { numRuns: 10 })
  })

  test(`${name}: a body with one bad row at any place stores nothing`, async (t) => {
    const clickhouse = await open(t)
    const table = await create(clickhouse)
    const good = rowsOf(20_000)
    const bad: unknown[][] = [
      [1, 'too short'],
      ['no number', 's', '2020-01-01 00:00:00.000'],
      [1, null, '2020-01-01 00:00:00.000'],
      [1, 's', 'yesterday']
    ]
    for (const row of bad) {
      for (const at of [0, 10_000, good.length]) {
        const error = await failure(clickhouse.loader.insert(table, columns, lines(good.toSpliced(at, 0, row))))
        t.type(error.code, 'number')
        t.equal(await countOf(clickhouse, table), 0, `row ${JSON.stringify(row)} at ${at}`)
      }
    }
    await clickhouse.loader.insert(table, columns, lines(good))
    t.equal(await countOf(clickhouse, table), good.length)
  })

  test(`${name}: a repeated insert is stored twice: the engine does not deduplicate`, async (t) => {
    const clickhouse = await open(t)
    const table = await create(clickhouse)
    for (const _ of [1, 2]) await clickhouse.loader.insert(table, columns, lines(rowsOf(10)))
    for (const _ of [1, 2]) {
      await clickhouse.projections.execute(
        `INSERT INTO {table: Identifier} (n, s, ts) SELECT number, '', toDateTime64('2020-01-01 00:00:00', 3, 'UTC') FROM numbers(10)`,
        { table }
      )
    }
    t.equal(await countOf(clickhouse, table), 40)
  })

  test(`${name}: inserts touch more partitions than the usual hundred`, async (t) => {
    const clickhouse = await open(t)
    const table = await create(clickhouse)
    const years = Array.from({ length: 120 }, (_, n) => [n, '', `${1970 + n}-01-01 00:00:00.000`])
    await clickhouse.loader.insert(table, columns, lines(years))
    const copy = await create(clickhouse)
    await clickhouse.projections.execute(
      'INSERT INTO {copy: Identifier} (n, s, ts) SELECT n, s, ts FROM {table: Identifier}',
      { table, copy }
    )
    t.equal(await countOf(clickhouse, copy), 120)
  })

  test(`${name}: values in a statement are parameters too`, async (t) => {
    const clickhouse = await open(t)
    const table = await create(clickhouse)
    const s = `it's VALUES (1), ('\\`
    await clickhouse.control.execute(
      `INSERT INTO {table: Identifier} (n, s, ts) VALUES ({n: UInt32}, {s: String}, {ts: DateTime64(3, 'UTC')})`,
      { table, n: 5, s, ts: '2020-01-01 00:00:00.000' }
    )
    t.same(await clickhouse.readers.rows('SELECT n, s FROM {table: Identifier}', { table }), [{ n: 5, s }])
  })

  test(`${name}: a table or column that is not a plain identifier is refused before it is part of a statement`, async (t) => {
    const { loader } = await open(t)
    await t.rejects(loader.insert('t; DROP TABLE t', ['a'], lines([[1]])), {
      message: /not a plain name of a table or column/
    })
    await t.rejects(loader.insert('t', ['a) SELECT 1'], lines([[1]])), {
      message: /not a plain name of a table or column/
    })
    await t.rejects(loader.insert('t', [], lines([[1]])), { message: /names no columns/ })
  })
}

const errors = (name: string, open: Open): void => {
  test(`${name}: an error has the engine's code and the beginning of its statement`, async (t) => {
    const { readers, loader, projections } = await open(t)
    const cases: [number, () => Promise<unknown>][] = [
      [62, () => readers.rows('SELEC 1')],
      [47, () => readers.rows('SELECT nothing_of_that_name')],
      [60, () => readers.rows('SELECT 1 FROM no_such_table')],
      [60, () => loader.insert('no_such_table', ['a'], lines([[1]]))],
      [60, () => projections.execute('INSERT INTO no_such_table SELECT 1')]
    ]
    for (const [code, work] of cases) {
      const error = await failure(work())
      t.equal(error.code, code, error.message)
      t.not(error.statement, '')
      t.ok(error.statement.length < 200)
    }
  })

  test(`${name}: the answer of a statement contains nothing of a failed one before`, async (t) => {
    const limits = { readers: { seconds: 1, memoryBytes: 512 * 1024 * 1024, threads: 1 } }
    const { readers } = await open(t, { readers: 1, limits })
    const failing: [number, string][] = [
      [395, 'SELECT throwIf(number = 400000) FROM numbers(600000)'],
      [159, ENDLESS],
      [159, 'SELECT number FROM system.numbers WHERE number % 100000 = 0'],
      [47, 'SELECT nothing_of_that_name']
    ]
    for (const [code, sql] of failing) {
      t.equal((await failure(readers.rows(sql))).code, code, sql)
      t.equal(Buffer.from(await readers.json('SELECT 1 AS n')).toString(), '[\n{"n":1}\n]', `after ${sql}`)
    }
  })

  test(`${name}: only the statement that exceeds the memory or time of its lane fails`, async (t) => {
    const limits = { readers: { seconds: 1, memoryBytes: 30_000_000, threads: 1 } }
    const { readers } = await open(t, { limits })
    const greedy = 'SELECT length(groupArray(number)) AS n FROM numbers(100000000)'
    t.equal((await failure(readers.rows(greedy))).code, 241)
    t.equal((await failure(readers.rows(ENDLESS))).code, 159)
    t.same(await readers.rows('SELECT 1 AS n'), [{ n: 1 }])
  })
}

const waiting = (name: string, open: Open): void => {
  test(`${name}: an abandoned query rejects at once and is killed in the engine`, async (t) => {
    const { readers, control, stats } = await open(t, { readers: 1 })
    const mark = `abandoned ${tableName()}`
    const caller = new AbortController()
    const query = readers.rows(marked(mark), { one: 1 }, { signal: caller.signal })
    await until(() => isRunning(control, mark), nextTurn)
    const reason = new Error('the caller went away')
    caller.abort(reason)
    await t.rejects(query, reason)
    await until(async () => !(await isRunning(control, mark)))
    t.same(await readers.rows('SELECT 1 AS n'), [{ n: 1 }], 'the connection serves again')
    t.match(stats().lanes.readers, { slots: 1, running: 0, waiting: 0, aborted: 1, failed: 0 })
  })

  test(`${name}: an aborted write is killed, and has ended when it rejects`, async (t) => {
    const { rebuild, control, stats } = await open(t)
    const table = tableName()
    await control.execute(`CREATE TABLE ${table} (number UInt64) ENGINE = MergeTree ORDER BY number`)
    const mark = `written ${tableName()}`
    const caller = new AbortController()
    const write = rebuild.execute(`INSERT INTO ${table} SELECT m.s FROM (${marked(mark)}) AS m`, { one: 1 }, caller)
    await until(() => isRunning(control, mark), nextTurn)
    const reason = new Error('the service stops')
    caller.abort(reason)
    await t.rejects(write, reason)
    await until(async () => !(await isRunning(control, mark)))
    t.match(stats().lanes.rebuild, { running: 0, aborted: 1 })
    await rebuild.execute(`INSERT INTO ${table} SELECT 1`, {}, { signal: new AbortController().signal })
    await t.rejects(rebuild.execute(`INSERT INTO ${table} SELECT 2`, {}, caller), reason)
    await control.execute(`DROP TABLE ${table}`)
  })

  test(`${name}: a lane with a full queue is busy, and a statement that is aborted in the queue never runs`, async (t) => {
    const { readers, control, stats } = await open(t, { readers: 1, queueMax: 1 })
    const mark = `holding ${tableName()}`
    const holder = new AbortController()
    const holding = readers.rows(marked(mark), { one: 1 }, { signal: holder.signal })
    await until(() => isRunning(control, mark), nextTurn)
    const leaver = new AbortController()
    const leaving = readers.rows(`SELECT throwIf(1, 'it ran')`, {}, { signal: leaver.signal })
    await until(() => stats().lanes.readers.waiting === 1, nextTurn)
    await t.rejects(readers.rows('SELECT 1'), { name: 'Refusal', code: 'engine_busy', retryAfterSeconds: 1 })
    leaver.abort(new Error('left'))
    await t.rejects(leaving, { message: 'left' })
    const next = readers.rows('SELECT 2 AS n')
    await until(() => stats().lanes.readers.waiting === 1, nextTurn)
    holder.abort(new Error('stop'))
    await t.rejects(holding, { message: 'stop' })
    t.same(await next, [{ n: 2 }])
    t.match(stats().lanes.readers, { refused: 1, aborted: 2 })
    await t.rejects(readers.rows('SELECT 1', {}, { signal: AbortSignal.abort(new Error('before')) }), {
      message: 'before'
    })
  })

  test(`${name}: a long statement with parameters delays no other lane`, async (t) => {
    const { rebuild, readers, loader, projections, control } = await open(t)
    const mark = `long ${tableName()}`
    const caller = new AbortController()
    let isOver = false
    const long = rebuild.rows(marked(mark), { one: 1 }, caller).finally(() => {
      isOver = true
    })
    await until(() => isRunning(control, mark), nextTurn)
    const lanes = [readers, loader, projections, control]
    const found = await Promise.all(lanes.map((lane, n) => lane.rows('SELECT {n: UInt8} AS n', { n })))
    t.same(
      found,
      lanes.map((_, n) => [{ n }])
    )
    t.equal(isOver, false)
    caller.abort(new Error('enough'))
    await t.rejects(long, { message: 'enough' })
  })

  test(`${name}: concurrent statements do not see one another's parameters`, async (t) => {
    const { readers, projections, loader } = await open(t, { queueMax: 256 })
    const lanes = [readers, readers, readers, projections, loader]
    const asked = Array.from({ length: 200 }, (_, n) => n)
    const found = await Promise.all(
      asked.map((n) => lanes[n % lanes.length]?.rows('SELECT {n: UInt32} AS n, {s: String} AS s', { n, s: `s${n}` }))
    )
    t.same(
      found,
      asked.map((n) => [{ n, s: `s${n}` }])
    )
  })

  test(`${name}: closing lets running statements finish, and refuses waiting and new ones`, async (t) => {
    const clickhouse = await open(t, { readers: 1 })
    const running = clickhouse.readers.rows('SELECT sleepEachRow(0.2) AS s FROM numbers(2)')
    const queued = clickhouse.readers.rows('SELECT 1')
    await until(() => clickhouse.stats().lanes.readers.waiting === 1, nextTurn)
    const closed = Promise.all([clickhouse.close(), clickhouse.close()])
    await t.rejects(queued, { message: /is closed/ })
    t.same(await running, [{ s: 0 }, { s: 0 }])
    await closed
    await t.rejects(clickhouse.readers.rows('SELECT 1'), { message: /is closed/ })
    await t.rejects(clickhouse.control.rows('SELECT 1'), { message: /is closed/ })
  })

  test(`${name}: closing does not wait forever for an endless statement`, async (t) => {
    const clickhouse = await open(t)
    const mark = `stubborn ${tableName()}`
    const outcome = clickhouse.rebuild.rows(marked(mark), { one: 1 }).then(
      () => 'answered',
      () => 'rejected'
    )
    await until(() => isRunning(clickhouse.control, mark))
    await clickhouse.close()
    t.equal(await outcome, 'rejected')
    const again = await open(t)
    await until(async () => !(await isRunning(again.control, mark)))
  })
}

const streams = (name: string, open: Open): void => {
  const rows = `SELECT toDateTime64(n.number, 3, 'UTC') AS at, toUInt64(n.number) AS n, if(n.number = 1, NULL, {text: String}) AS text
    FROM numbers({count: UInt64}) AS n ORDER BY n.number`

  test(`${name}: a stream of any length is one file, and holds its connection until its end`, async (t) => {
    const { readers, stats } = await open(t)
    const csv = await readers.stream(rows, { count: 2, text: 'ä "b"' }, { format: 'CSVWithNames' })
    t.equal(await text(csv), '"at","n","text"\n"1970-01-01T00:00:00.000Z",0,"ä ""b"""\n"1970-01-01T00:00:01.000Z",1,\n')
    const lines = await readers.stream(rows, { count: 1, text: 'x'.repeat(5000) }, { format: 'JSONEachRow' })
    t.same(JSON.parse(await text(lines)), { at: '1970-01-01T00:00:00.000Z', n: 0, text: 'x'.repeat(5000) })
    t.equal(await text(await readers.stream(rows, { count: 0, text: '' }, { format: 'JSONEachRow' })), '')
    const parquet = await buffer(await readers.stream(rows, { count: 200_000, text: '' }, { format: 'Parquet' }))
    t.same([parquet.subarray(0, 4).toString(), parquet.subarray(-4).toString()], ['PAR1', 'PAR1'])
    t.equal(parquet.indexOf('PAR1', 4), parquet.length - 4, 'one file, not one for each block')
    await until(() => stats().lanes.exports.running === 0, nextTurn)
    t.match(stats().lanes, { readers: { finished: 0 }, exports: { finished: 4, failed: 0 } })
  })

  test(`${name}: a stream fails before its first byte, or breaks off`, async (t) => {
    const { readers, stats } = await open(t)
    const error = await failure(readers.stream('SELECT missing FROM numbers(1)', {}, { format: 'Parquet' }))
    t.equal(error.code, 47)
    const late = 'SELECT throwIf(n.number = 3000000) AS x FROM numbers(4000000) AS n'
    for (const format of ['CSVWithNames', 'ArrowStream'] as const) {
      const whole = readers.stream(late, {}, { format }).then((body) => buffer(body))
      await t.rejects(whole, { code: 395 })
    }
    await until(() => stats().lanes.exports.running === 0, nextTurn)
  })
}
