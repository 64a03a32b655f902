import { deepEqual, equal } from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { eventTables } from '../src/events/event-tables.js'
import { foldNamed } from '../src/folds/folds.js'
import { projections } from '../src/projections/projections.js'
import { type ColumnType, columnOf, type Value } from '../src/rows/columns.js'
import { readRows } from '../src/rows/read-rows.js'
import { type ColumnTypes, RowWriter } from '../src/rows/row-writer.js'
import { DEAD_LETTER_TYPES } from '../src/store/dead-letter.js'
import { openTables } from './pipeline.js'

const INSTANT = `DateTime64(3, 'UTC')`

/** All tables that are written by column, with their declared columns. */
const WRITTEN: readonly (readonly [table: string, types: ColumnTypes])[] = [
  ...eventTables.map(({ table, types }) => [`${table}__0`, types] as const),
  ...projections.flatMap((each) =>
    each.form === 'fold'
      ? Object.entries(foldNamed(each.name).tables).map(([table, types]) => [`${table}__0`, types] as const)
      : []
  ),
  ['dead_letter', DEAD_LETTER_TYPES]
]

test('columns that are written have the names and types of the migrations', async (t) => {
  const { control } = await openTables()
  for (const [table, types] of WRITTEN) {
    const rows = await control.rows(
      `SELECT c.name AS name, c.type AS type FROM system.columns AS c
       WHERE c.database = currentDatabase() AND c.table = {table: String} AND c.default_kind = '' ORDER BY c.position`,
      { table }
    )
    t.same(types, Object.fromEntries(rows.map(({ name, type }) => [name, type])), table)
  }
})

/** Lengths around which the length prefix or the encoder of a text changes; and halves of surrogate pairs. */
const edges = [
  ...[0, 40, 41, 127, 128, 16_384].map((length) => 'a'.repeat(length)),
  'é'.repeat(64),
  '\ud800',
  'a\udc00'
]
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.string({ maxLength: 60 }),
  fc.constantFrom(...edges, '__proto__')
)
const whole = (bits: number) => fc.oneof(fc.integer({ min: 0, max: 2 ** bits - 1 }), fc.constant(2 ** bits - 1))
const instant = fc.oneof(
  fc.constantFrom(0, 1, 999, 1000, 20_123, 1_234_500, 999_999_999_999, -1, Date.UTC(1900, 0, 1), Date.UTC(2299, 0, 1)),
  fc.integer({ min: 0, max: Date.UTC(2106, 0, 1) - 1 })
)

const VALUES: Readonly<Record<string, fc.Arbitrary<Value>>> = {
  Bool: fc.boolean(),
  UInt8: whole(8),
  UInt16: whole(16),
  UInt32: whole(32),
  UInt64: fc.oneof(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), fc.maxSafeNat()),
  Int32: fc.integer(),
  Int64: fc.maxSafeInteger(),
  String: text,
  'LowCardinality(String)': text,
  [INSTANT]: instant,
  'Map(String, String)': fc.dictionary(text, text, { maxKeys: 3 })
}

const anyOf = (type: string): fc.Arbitrary<Value> => {
  const inner = /^(?:Nullable|Array)\((.*)\)$/.exec(type)?.[1]
  if (inner === undefined) return VALUES[type] ?? fc.constant(null)
  if (type.startsWith('Nullable')) return fc.option(anyOf(inner))
  return fc.array(anyOf(inner) as fc.Arbitrary<string>, { maxLength: 5 })
}

/** A value as JSON spells it for ClickHouse. */
const spelt = (type: string, value: Value): unknown => {
  if (value === null) return null
  if (Array.isArray(value)) return value.map((each) => spelt(type.slice('Array('.length, -1), each))
  if (type.includes(INSTANT)) return new Date(Number(value)).toISOString().replace('T', ' ').slice(0, -1)
  return typeof value === 'bigint' ? String(value) : value
}

/** A value as it is read from a block. */
const read = (value: unknown): unknown => {
  if (typeof value === 'string') return Buffer.from(value).toString()
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : value
  if (Array.isArray(value)) return value.map(read)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [read(key), read(each)]))
}

test('rows by column are stored like the same rows in JSON', async () => {
  const { control } = await openTables()
  const every = [...Object.keys(VALUES), 'Nullable(String)', `Nullable(${INSTANT})`, 'Array(String)', 'Array(UInt16)']
  const types = Object.fromEntries(
    [...every, 'Nullable(Int64)', 'Nullable(UInt8)', `Array(Nullable(${INSTANT}))`].map((type, n) => [`c${n}`, type])
  ) as Readonly<Record<string, ColumnType>>
  const names = Object.keys(types)
  const columns = names.map((name) => `${name} ${types[name]}`).join(', ')
  for (const table of ['by_column', 'by_line'])
    await control.execute(`CREATE TABLE ${table} (n UInt32, ${columns}) ENGINE = MergeTree ORDER BY n`)
  const row = fc.tuple(...Object.values(types).map(anyOf))
  const property = fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 600, size: 'max' }), async (rows) => {
    const writer = new RowWriter({ n: 'UInt32', ...types })
    for (const [n, values] of rows.entries()) writer.add([n, ...values])
    const block = writer.take()
    deepEqual(
      readRows(block).rows.map(Object.values),
      rows.map((values, n) => [n, ...values.map(read)])
    )
    await control.insert('by_column', ['n', ...names], block)
    const lines = rows.map((values, n) => {
      const line = [n, ...values.map((value, at) => spelt(types[`c${at}`] ?? '', value))]
      return `${JSON.stringify(line).replaceAll(/\\ud[89a-f]../g, '\ufffd')}\n`
    })
    await control.insert('by_line', ['n', ...names], new TextEncoder().encode(lines.join('')))
    const [differing] = await control.rows(
      'SELECT count() AS n FROM (SELECT * FROM by_column EXCEPT ALL SELECT * FROM by_line)'
    )
    equal(Number(differing?.n), 0)
    const [counted] = await control.rows('SELECT count() AS n FROM by_column')
    equal(Number(counted?.n), rows.length)
    for (const table of ['by_column', 'by_line']) await control.execute(`TRUNCATE TABLE ${table}`)
  })
  await fc.assert(property, { numRuns: 15 })
})

test('a block of other names or types is refused', async (t) => {
  const { control } = await openTables()
  await control.execute(`CREATE TABLE typed (ts ${INSTANT}, s String) ENGINE = MergeTree ORDER BY ts`)
  const blockOf = (types: ColumnTypes, values: readonly Value[]) => {
    const writer = new RowWriter(types)
    writer.add(values)
    return writer.take()
  }
  await t.rejects(control.insert('typed', ['ts', 's'], blockOf({ ts: 'Int64', s: 'String' }, [5, '']))) // seconds
  await t.rejects(control.insert('typed', ['ts', 's'], blockOf({ ts: INSTANT, s: 'Nullable(String)' }, [5, null])))
  const expected = { message: /^A block for typed has the columns .*; expected are ts, s\.$/ }
  await t.rejects(control.insert('typed', ['ts', 's'], blockOf({ ts: INSTANT }, [5])), expected)
  await t.rejects(
    control.insert('typed', ['ts', 's'], blockOf({ ts: INSTANT, s: 'String', n: 'UInt8' }, [5, '', 1])),
    expected
  )
  t.same(await control.rows('SELECT count() AS n FROM typed'), [{ n: '0' }])
  await control.insert('typed', ['ts', 's'], blockOf({ s: 'String', ts: INSTANT }, ['any order', 5]))
  t.same(await control.rows('SELECT t.s AS s, toUnixTimestamp64Milli(t.ts) AS ts FROM typed AS t'), [
    { s: 'any order', ts: '5' }
  ])
})

test('a row with a value that does not fit is left out as a whole', (t) => {
  const bad: readonly (readonly [ColumnType, unknown])[] = [
    ['UInt8', 256],
    ['UInt32', -1],
    ['UInt32', null],
    ['UInt32', 0.5],
    ['UInt32', '5'],
    ['UInt64', -1],
    ['UInt64', 2 ** 53],
    ['UInt64', 2n ** 64n],
    ['Int64', Number.NaN],
    ['Bool', 1],
    ['String', undefined],
    ['LowCardinality(String)', undefined],
    ['Nullable(UInt32)', undefined],
    ['Array(String)', ['a', null]],
    ['Array(UInt8)', 'text'],
    ['Map(String, String)', { a: 'b', c: 5 }],
    ['Map(String, String)', null],
    ['Map(String, String)', ['a']],
    ['Map(String, String)', 'a']
  ]
  for (const [type, value] of bad) {
    const writer = new RowWriter({
      list: 'Array(String)',
      map: 'Map(String, String)',
      key: 'LowCardinality(String)',
      last: type
    })
    const good: Record<string, Value> = {}
    const sample = fc.sample(anyOf(type), { numRuns: 1, seed: 5 })[0] as Value
    writer.add([['a'], { b: 'c' }, 'd', sample])
    t.throws(
      () => writer.add([['x', 'y'], { z: 'z' }, 'e', value as Value]),
      { message: /^The column last does not hold this row: .* is not .*\.$/ },
      `${type} ${String(value)}`
    )
    t.throws(() => writer.add([['x'], {}, 'e', sample, sample]), { message: /^A row has 5 values; expected are 4/ })
    writer.add([[], {}, 'd', sample])
    Object.assign(good, readRows(writer.take()).rows[1])
    t.match(good, { list: [], map: {}, key: 'd' })
  }
  t.throws(() => columnOf('Float64'), { message: /add one to columns\.ts/ })
  t.end()
})
