import { type Test, test } from 'tap'
import { codeOf } from '../src/clickhouse/parameters.js'
import { allowedFunctions, type Lines } from '../src/sql/allowed-functions.js'
import { checkSelect, type SelectRules, StatementRefused } from '../src/sql/check-select.js'
import { startClickHouseServer } from '../testing/clickhouse-server.js'
import { HOSTILE_STATEMENTS, HUGE_STATEMENTS } from '../testing/hostile-statements.js'

const TABLES = new Set(['title_count', 'default.title_count', 'catalog.tables'])

async function open(t: Test) {
  const { ask, kill } = await startClickHouseServer({ path: t.testdir() })
  t.teardown(kill)
  const linesWith =
    (parameters: Readonly<Record<string, string>>): Lines =>
    async (text) => {
      const { bytes } = await ask(text, { format: 'TSVRaw', parameters })
      return new TextDecoder().decode(bytes).split('\n').slice(0, -1)
    }
  const lines = linesWith({})
  await lines('CREATE TABLE title_count (a UInt8, title_id String, online UInt32) ENGINE = Memory')
  await lines('CREATE TABLE secret (a UInt8) ENGINE = Memory')
  await lines(`INSERT INTO title_count VALUES (1, 'a', 3)`)
  const rules: SelectRules = {
    functions: await allowedFunctions(lines),
    tables: TABLES,
    hidden: new Set(['secret', ...(await lines('SELECT d.name FROM system.databases AS d'))])
  }
  const check = (statement: string) => checkSelect(lines, statement, rules)
  const outcome = (statement: string) =>
    check(statement).then(
      () => 'allowed',
      (error: unknown) => (error instanceof StatementRefused ? 'refused' : error)
    )
  return { lines, linesWith, rules, check, outcome }
}

test('strings, quoted names and comments are not code, closed or not', (t) => {
  for (const [statement, code] of [
    [`a 'b''\\'{' {c}`, 'a{c}'],
    ['a `b\\`"{`, "c\\\\" d', 'a,d'],
    ['a -- {\nb /* { */ c', 'a\nbc'],
    [`a 'b\\'{\\'{`, 'a'],
    ['a "b\\"{', 'a'],
    ['a `{\\', 'a'],
    ['a /*{ /* {', 'a']
  ] as const)
    t.equal(codeOf(statement).replaceAll(' ', ''), code, statement)
  t.end()
})

test('statements', async (t) => {
  const { lines, linesWith, rules, check, outcome } = await open(t)

  await t.test('hostile statements are refused', async (t) => {
    t.ok(HOSTILE_STATEMENTS.length >= 300, `${HOSTILE_STATEMENTS.length}`)
    t.equal(new Set(HOSTILE_STATEMENTS).size, HOSTILE_STATEMENTS.length)
    for (const statement of [...HOSTILE_STATEMENTS, ...HUGE_STATEMENTS]) {
      const found = await outcome(statement)
      if (found !== 'refused') t.fail(statement.slice(0, 200), { found })
    }
  })

  await t.test('every table of the engine and every table function except numbers is refused', async (t) => {
    const tables = await lines(
      `SELECT concat(t.database, '.', t.name) FROM system.tables AS t WHERE t.database != 'default'`
    )
    const functions = await lines(
      `SELECT concat(f.name, '(1)') FROM system.table_functions AS f WHERE f.name != 'numbers'`
    )
    t.ok(tables.length > 100 && functions.length > 50)
    for (const name of [...tables, ...functions]) {
      const found = await outcome(`SELECT * FROM ${name}`)
      if (found !== 'refused') t.fail(name, { found })
    }
  })

  await t.test('functions outside the list are refused', async (t) => {
    const rows = await lines(
      `SELECT f.name FROM system.functions AS f
       WHERE f.categories IN ('Other', 'Introspection', 'Dictionary', 'Embedded Dictionary', 'Machine Learning', 'AI', 'Internal', 'Encryption')`
    )
    const allowed: string[] = []
    for (const name of rows) {
      if ((await outcome(`SELECT \`${name}\`(1, 2)`)) !== 'refused') allowed.push(name)
    }
    t.same(allowed.sort(), [
      '_CAST',
      'bar',
      'caseWithExpression',
      'currentDatabase',
      'formatReadableDecimalSize',
      'formatReadableQuantity',
      'formatReadableSize',
      'formatReadableTimeDelta',
      'identity',
      'revision',
      'runningDifference',
      'toColumnTypeName',
      'toTypeName',
      'transform',
      'version'
    ])
  })

  await t.test('ordinary statements run as they are returned', async (t) => {
    for (const [statement, ...expected] of [
      [`select count(*) as n from title_count`, '1'],
      ['SELECT SUM(online) AS n, Max(title_id) AS m FROM default.title_count -- comment', '3\ta'],
      ['WITH c AS (SELECT online FROM title_count) SELECT c.online FROM c JOIN c AS d USING (online)', '3'],
      ['SELECT 1 AS a UNION ALL (SELECT 1 AS a)', '1', '1'],
      ['SELECT quantileExact(0.5)(number) AS q, sumIf(number, number > 1) AS s FROM numbers(4)', '2\t5'],
      [`SELECT 1 FROM title_count WHERE title_id IN ('a', 'b') AND online IN (SELECT online FROM title_count)`, '1'],
      [
        `SELECT toStartOfMonth(toDateTime('2026-03-05 00:00:00', 'UTC'))::String AS m, CASE 1 WHEN 1 THEN 'x' ELSE 'y' END AS c`,
        '2026-03-01\tx'
      ],
      ['SELECT number, row_number() OVER (ORDER BY number DESC) AS r FROM numbers(1)', '0\t1'],
      ["SELECT arrayMap(x -> x + 1, [1, 2]) AS a, 'a; --' AS b, now() > '2000-01-01' AS c", '[2,3]\ta; --\t1']
    ] as const) {
      t.same(await lines(await check(statement)), expected, statement)
    }
  })

  await t.test('the engine has no function whose name imitates a node', async (t) => {
    for (const name of ['count (alias file)', 'count (children 1)']) {
      const text = await check(`SELECT \`${name}\`(1)`)
      await t.rejects(lines(text), /UNKNOWN_FUNCTION/)
    }
  })

  await t.test('parameters are values', async (t) => {
    const bound = linesWith({ id: `a'; DROP TABLE title_count` })
    const statement = 'SELECT count() AS n FROM title_count WHERE title_id = {id:String}'
    t.same(await bound(await checkSelect(bound, statement, rules)), ['0'])
  })

  await t.test('a refusal says what was found', async (t) => {
    const reason = async (statement: string) => (await check(statement).catch((error) => error)).message
    t.equal(await reason(`SELECT file('a')`), 'The function file is not allowed.')
    t.equal(
      await reason('SELECT * FROM secret'),
      `The table secret is not allowed; allowed are ${[...TABLES].sort().join(', ')}.`
    )
    t.equal(await reason('SELECT 1 SETTINGS max_threads = 2'), 'SETTINGS is not allowed in a statement.')
    t.match(await reason('SELECT 1 +'), /^ClickHouse cannot read the statement: Syntax error: failed at position/)
    t.equal(await reason('DROP TABLE a'), 'The statement begins with DROP; only SELECT is allowed.')
  })
})
