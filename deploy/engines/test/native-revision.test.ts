import { test } from 'tap'
import { CleanSession } from '../src/clickhouse/clean-session.js'
import { withCatalog } from '../src/sql/catalog.js'
import { withRevision } from '../src/sql/native-revision.js'

const HEAD = Buffer.of(1, 0, 2, 255, 255, 255, 255, 0)

/** Values of every type that an allowed statement gives. */
const COLUMNS = [
  'n.number',
  'toUInt8(n.number)',
  'toInt16(1)',
  'toInt32(1)',
  'toInt128(n.number)',
  'toUInt256(1)',
  'NULL',
  'n.number = 1',
  'toFloat32(1)',
  'n.number / 3',
  'toDecimal32(1, 2)',
  'toDecimal64(1, 2)',
  'toDecimal128(1, 2)',
  'toDecimal256(1, 2)',
  `toDate('2025-03-01')`,
  `toDate32('2025-03-01')`,
  `toDateTime('2025-03-01 00:00:00', 'Asia/Kolkata')`,
  'toDateTime64(0, 3)',
  `repeat('ä', n.number)`,
  `toFixedString('abc', 5)`,
  `CAST('a' AS Enum8('a' = 1, 'b,(' = 2))`,
  'toIntervalDay(n.number)',
  `toIPv4('1.2.3.4')`,
  `toIPv6('::1')`,
  `toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')`,
  'n.number > 1',
  'if(n.number = 1, NULL, n.number)',
  `if(n.number = 1, NULL, 'abc')`,
  'range(n.number)',
  '[[], [toString(n.number)]]',
  `(n.number, 'a', [1, 2])`,
  `CAST((1, 'a') AS Tuple(\`b )\` UInt8, c Nullable(String)))`,
  `map('a', n.number, 'b', 2)`,
  `CAST(map('k', [(1, 'a')]) AS Map(String, Array(Tuple(UInt8, String))))`,
  '[]',
  `toLowCardinality('a')`,
  `toLowCardinality(if(n.number = 1, NULL, 'abc'))`,
  `arrayMap(x -> toLowCardinality(toString(x)), range(n.number))`,
  `emptyArrayString()::Array(LowCardinality(String))`,
  `(toLowCardinality('a'), map(toLowCardinality('k'), toLowCardinality('v')))`
]

test('blocks for clients that state a revision', async (t) => {
  const session = new CleanSession(t.testdir(), ['--async_load_databases=0'])
  t.teardown(() => session.close())
  const native = async (columns: readonly string[], rows: number) => {
    const shown = columns.map((column, n) => `${column} AS c${n}`)
    return Buffer.from((await session.query(`SELECT ${shown.join(', ')} FROM numbers(${rows}) AS n`, 'Native')).bytes())
  }

  await t.test('a column of any type ends where the engine ends it', async (t) => {
    const all = await native(COLUMNS, 3)
    const expected = [HEAD, all.subarray(0, 2)]
    for (const [n, column] of COLUMNS.entries()) {
      const alone = await native([column], 3)
      const values = 6 + (alone[5] ?? 0)
      const name = `c${n}`
      expected.push(
        Buffer.of(name.length),
        Buffer.from(name),
        alone.subarray(5, values),
        Buffer.of(0),
        alone.subarray(values)
      )
    }
    const block = Buffer.concat(expected)
    t.ok(block.equals(withRevision(all)))
    t.ok(Buffer.concat([block, block]).equals(withRevision(Buffer.concat([all, all]))), 'two blocks')
    t.equal(withRevision(await native(COLUMNS, 0)).length, 0, 'no rows')
  })

  await t.test('a type of another size is refused', async (t) => {
    t.throws(
      () => withRevision(Buffer.from('\x01\x01\x01a\x0aDynamic(1)\x00')),
      /type Dynamic are not sent .* toString/
    )
  })
})

test('statements of drivers and dashboards read the catalog', (t) => {
  for (const [statement, expected] of [
    ['SELECT displayName(), version(), revision(), timezone()', `SELECT 'gamenet', version(), revision(), timezone()`],
    ['SELECT currentUser() AS user', `SELECT 'analyst' AS user`],
    ['SELECT name FROM System.Tables', 'SELECT name FROM catalog.tables'],
    [
      `SELECT 'currentUser()', system.columns.a -- system.tables`,
      `SELECT 'currentUser()', catalog.columns.a -- system.tables`
    ],
    ['SHOW DATABASES', 'SELECT name FROM catalog.databases'],
    ['show tables from "default";', 'SELECT name FROM catalog.tables ORDER BY name'],
    ['SHOW TABLES FROM secret', 'SHOW TABLES FROM secret'],
    ['SELECT CURRENTUSER()', 'SELECT CURRENTUSER()']
  ] as const)
    t.equal(withCatalog(statement), expected)
  t.match(
    withCatalog('DESC TABLE `default`.`title_count`'),
    /^SELECT name, type, .* WHERE table = 'title_count' ORDER BY position$/s
  )
  t.equal(withCatalog(`DESC TABLE title_count' OR 1`), `DESC TABLE title_count' OR 1`)
  t.end()
})
