import { deepStrictEqual as deepEqual } from 'node:assert'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runs } from '@gamenet/engines/testing'
import { instantOf, isFailure, type MatchesListed } from '@gamenet/schemas'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import { matchListGathering } from '../src/import/match-list-gathering.js'
import { type ImportRequest, importInWorker, runImport } from '../src/index.js'
import { anyWriting, written } from './import-files.js'
import { memoryLog } from './import-log.js'

const NOW = Date.UTC(2026, 2, 1)
const HEADER = 'titleId,observedAt,hostName,currentPlayers,maxPlayers'

async function importText(
  t: Pick<Test, 'testdir'>,
  content: string | Buffer,
  given: Partial<ImportRequest> & { readonly now?: () => number } = {},
  log = memoryLog()
) {
  const { now = () => NOW, ...options } = given
  const input = join(t.testdir(), 'input')
  await writeFile(input, content)
  const request = { topic: 'match-list', fileName: 'lists', input, ...options }
  const result = await runImport(request, { log, known: log.known, now })
  return { result, log, lists: log.events('match-list') as MatchesListed[] }
}

const lobby = (hostName: string, currentPlayers: number, maxPlayers = 0) => ({ hostName, currentPlayers, maxPlayers })
const at = (hour: number) => `2020-01-01T0${hour}:00:00Z`

test('flat rows of one title and instant are one list, wherever they are, and of one host the last row counts', async (t) => {
  const lines = [
    '4d530064,2020-01-01 01:00:00,Ann,3,8',
    '4d530064,2020-01-01 00:00:00,Bob,1,',
    '4d53004b,2020-01-01 01:00:00,Ann,2,4',
    '4D530064,1577840400,Cid,0,8',
    '4d530064,2020-01-01T01:00:00Z,Ann,5,8',
    '4d530064,2020-01-01 02:00:00,Ann,-1,',
    '4d530064,2020-01-01 02:00:00,Bob,-1,-1',
    '4d530064,2020-01-01 03:00:00,Ann,4,',
    '4d530064,2020-01-01 03:00:00,Ann,-1,',
    '4d530064,2020-01-01 04:00:00,Ann,-1,',
    '4d530064,2020-01-01 04:00:00, Ann ,2,',
    '4d530064,2020-01-01 05:00:00,,-1,'
  ]
  const { result, lists } = await importText(t, [HEADER, ...lines].join('\n'))
  const list = (titleId: string, hour: number, ...matches: unknown[]) => ({ titleId, observedAt: at(hour), matches })
  t.same(lists, [
    list('4d530064', 0, lobby('Bob', 1)),
    list('4d53004b', 1, lobby('Ann', 2, 4)),
    list('4d530064', 1, lobby('Ann', 5, 8), lobby('Cid', 0, 8)),
    list('4d530064', 2),
    list('4d530064', 3),
    list('4d530064', 4, lobby('Ann', 2)),
    list('4d530064', 5)
  ])
  t.match(result, { rowsRead: 12, published: 12, rejected: 0, missing: 0, finished: true })
})

test('a bad row of a list is reported with its line, and the others form the list', async (t) => {
  const lines: [string, RegExp | undefined][] = [
    ['4d530064,2020-01-01 00:00:00,Ann,3,8', undefined],
    ['4d530064,2020-01-01 00:00:00,Bob,-2,8', /currentPlayers is -2/],
    ['4d530064,2020-01-01 00:00:00,Bob,2,-1', /maxPlayers is -1/],
    ['4d530064,2020-01-01 00:00:00,Bob,1.5,8', /currentPlayers is "1.5"/],
    ['4d530064,2020-01-01 00:00:00,,2,8', /hostName is missing/],
    [`4d530064,2020-01-01 00:00:00,${'n'.repeat(501)},2,8`, /hostName is/],
    ['4d530064,,Bob,2,8', /observedAt is missing/],
    [',2020-01-01 00:00:00,Bob,2,8', /titleId is missing/],
    ['halo,2020-01-01 00:00:00,Bob,2,8', /titleId is "halo"/],
    [',2020-01-01 00:00:00,Bob,,', /titleId is missing/],
    ['4d530064,2026-03-01 00:01:01,Bob,2,8', /more than a minute in the future/],
    ['4d530064,2020-01-01 00:00:00,Dan,4294967295,4294967295', undefined]
  ]
  const missing = ['4d530064,2020-01-01 07:00:00,Eve,,', '4d530064,2020-01-01 08:00:00,,,9']
  const { result, lists } = await importText(t, [HEADER, ...lines.map(([line]) => line), ...missing].join('\n'))
  const bad = lines.flatMap(([, reason], n) => (reason === undefined ? [] : [{ line: n + 2, reason }]))
  t.match(result.faults, bad)
  t.match(result, { rowsRead: 14, published: 2, rejected: bad.length, missing: 2 })
  t.same(lists, [
    { titleId: '4d530064', observedAt: at(0), matches: [lobby('Ann', 3, 8), lobby('Dan', 4294967295, 4294967295)] }
  ])
})

test('a list in one row has two lobbies of a host that occurs twice', async (t) => {
  const rows: [unknown, RegExp | undefined][] = [
    [
      {
        titleId: '4D530064',
        observedAt: at(0),
        matches: [lobby('Ann', 3, 8), { hostName: ' Ann ', currentPlayers: 1 }, lobby('Bob', -1)]
      },
      undefined
    ],
    [{ titleId: '4d530064', observedAt: at(1), matches: [] }, undefined],
    [{ titleId: '4d530064', observedAt: at(2) }, undefined],
    [{ titleId: '4d530064', observedAt: at(2), matches: 'none' }, /matches is "none"/],
    [{ titleId: '4d530064', observedAt: at(2), matches: [7] }, /matches.0 is 7/],
    [{ titleId: '4d530064', observedAt: at(2), matches: [lobby('Bob', -2)] }, /matches.0.currentPlayers is -2/],
    [{ titleId: '4d530064', observedAt: at(2), matches: [{ hostName: 'Bob' }] }, /matches.0.currentPlayers is missing/],
    [{ titleId: '4d530064', observedAt: at(3), hostName: 'Eve', currentPlayers: 2, maxPlayers: null }, undefined]
  ]
  const ndjson = rows.map(([row]) => JSON.stringify(row)).join('\n')
  for (const content of [ndjson, `[\n${ndjson.replaceAll('\n', ',\n')}\n]`]) {
    const { result, lists } = await importText(t, content)
    t.same(lists, [
      { titleId: '4d530064', observedAt: at(0), matches: [lobby('Ann', 3, 8), lobby('Ann', 1)] },
      { titleId: '4d530064', observedAt: at(1), matches: [] },
      { titleId: '4d530064', observedAt: at(3), matches: [lobby('Eve', 2)] }
    ])
    t.match(
      result.faults.map(({ reason }) => reason),
      rows.flatMap(([, reason]) => reason ?? [])
    )
    t.match(result, { rowsRead: 8, published: 3, missing: 1, rejected: 4 })
  }
})

test('columns with other names, and a title that the file lacks, are mapped', async (t) => {
  const content = [
    '{"ts":"2024-05-22 17:00:00","id":"w1","players":3,"visits":9}',
    '{"ts":"2024-05-22 17:00:00","id":"w2","players":-1}'
  ]
  const { result, lists } = await importText(t, content.join('\n'), {
    columns: { observedAt: 'ts', hostName: 'id', currentPlayers: 'players' },
    set: { titleId: '4d530064' }
  })
  t.same(lists, [{ titleId: '4d530064', observedAt: '2024-05-22T17:00:00Z', matches: [lobby('w1', 3)] }])
  t.same(result.ignoredColumns, ['visits'])
  await t.rejects(
    importText(t, 'titleId,observedAt,host\n4d530064,2020-01-01,A\n'),
    /has any of matches, currentPlayers/
  )
  await t.rejects(importText(t, 'observedAt,currentPlayers\n2020-01-01,1\n'), /takes titleId from the column/)
})

const flatRow = fc.record(
  {
    titleId: fc.constantFrom('4d530064', '4d53004b'),
    observedAt: fc.integer({ min: 0, max: 6 }).map((hour) => instantOf(Date.UTC(2020, 0, 1) + hour * 3_600_000)),
    hostName: fc.constantFrom('Ann', 'ann', 'B"o,b', 'C d', 'é\u0301', '😀'),
    currentPlayers: fc.integer({ min: -1, max: 4 }),
    maxPlayers: fc.integer({ min: 0, max: 8 })
  },
  { requiredKeys: ['titleId', 'observedAt', 'hostName', 'currentPlayers'] }
)
type FlatRow = { titleId: string; observedAt: string; hostName: string; currentPlayers: number; maxPlayers?: number }

/** Expected lists by the documentation: the last row of each title, instant and host, without closed lobbies. */
function plainly(rows: readonly FlatRow[]): unknown[] {
  const instants = new Map<string, Map<string, FlatRow>>()
  for (const row of rows) {
    const key = `${row.observedAt} ${row.titleId}`
    instants.set(key, (instants.get(key) ?? new Map()).set(row.hostName, row))
  }
  return [...instants]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, hosts]) => {
      const [observedAt, titleId] = key.split(' ')
      const open = [...hosts.values()].filter(({ currentPlayers }) => currentPlayers !== -1)
      return {
        titleId,
        observedAt,
        matches: open.map((row) => lobby(row.hostName, row.currentPlayers, row.maxPlayers))
      }
    })
}

test('rows in any order and format form the documented lists', async (t) => {
  const input = join(t.testdir(), 'input')
  await fc.assert(
    fc.asyncProperty(fc.array(flatRow, { minLength: 1, maxLength: 60 }), anyWriting, async (rows, writing) => {
      await writeFile(input, written(rows, HEADER.split(','), writing))
      const log = memoryLog()
      const result = await runImport({ topic: 'match-list', input, fileName: 'x' }, { log, known: log.known })
      deepEqual(log.events('match-list'), plainly(rows as FlatRow[]))
      deepEqual([result.published, result.rejected, result.missing], [rows.length, 0, 0])
    }),
    runs(40)
  )
  t.pass('as they were')
})

test('after a failure of the log at any append, importing lists again completes the import', async (t) => {
  const rows = Array.from(
    { length: 3000 },
    (_, n) => `4d530064,${instantOf(Date.UTC(2020, 0, 1) + (n % 1300) * 60_000)},H${n},1,`
  )
  const nested = Array.from({ length: 300 }, (_, n) =>
    JSON.stringify({
      titleId: '4d53004b',
      observedAt: instantOf(Date.UTC(2020, 0, 2) + n * 60_000),
      matches: [lobby('Ann', n)]
    })
  )
  const flat = rows.map((row) => {
    const [titleId, observedAt, hostName] = row.split(',')
    return JSON.stringify({ titleId, observedAt, hostName, currentPlayers: 1, filler: 'f'.repeat(300) })
  })
  let clock = NOW
  const now = () => {
    clock += 3000
    return clock
  }
  for (const content of [[HEADER, ...rows].join('\n'), [...nested, ...flat].join('\n')]) {
    const whole = await importText(t, content, { now })
    const count = whole.log.appends.length
    t.ok(count >= 3, `${count} appends`)
    for (let failing = 0; failing < count; failing += 1) {
      for (const isWritten of [false, true]) {
        const log = memoryLog()
        log.failAt(failing, isWritten)
        t.ok(isFailure(await importText(t, content, { now }, log).catch((error: unknown) => error), 'import_cut_off'))
        const { result } = await importText(t, content, { now }, log)
        const { rowsRead, published, missing, rejected } = whole.result
        t.match(result, { rowsRead, published, missing, rejected }, `append ${failing}, ${isWritten}`)
        deepEqual(byInstant(log.distinct('match-list')), byInstant(whole.lists))
      }
    }
    const appends = whole.log.appends.length
    t.match((await importText(t, content, {}, whole.log)).result, { alreadyDone: true, missing: 0, rejected: 0 })
    t.equal(whole.log.appends.length, appends, 'a second import publishes nothing')
  }
})

function byInstant(lists: readonly unknown[]): unknown[] {
  return lists.map((list) => JSON.stringify(list)).sort()
}

test('rows that exceed the memory limit of an import are refused with the way out', (t) => {
  const add = (rows: number, of: (n: number) => object) => {
    const gathering = matchListGathering({ bytesMax: 1_000_000 })
    for (let n = 0; n < rows; n += 1) {
      gathering.add({ titleId: '4d530064', observedAt: at(0), hostName: 'Ann', currentPlayers: 1, ...of(n) }, n + 2)
    }
    return [...gathering.finish()]
  }
  t.equal(add(20_000, () => ({})).length, 1, 'the same lobby repeated')
  const sentence =
    /^The rows up to line \d+ make \d+ lists of \d+ lobbies, .*nothing was published of them. Split the file by time/
  t.throws(() => add(30_000, () => ({})), { code: 'import_refused', message: sentence }, 'many rows')
  t.throws(() => add(9_000, (n) => ({ observedAt: instantOf(n * 1000) })), sentence, 'many lists')
  t.throws(() => add(9_000, (n) => ({ hostName: `${'h'.repeat(400)}${n}` })), sentence, 'many names')
  t.end()
})

test('a list with more lobbies than the log accepts is a fault of all its rows, and no other list is', async (t) => {
  const rows = Array.from({ length: 10_001 }, (_, n) => `4d530064,2020-01-01 00:00:00,H${n},1,`)
  const other = '4d530064,2020-01-01 01:00:00,Ann,1,'
  const { result, lists } = await importText(t, [HEADER, other, ...rows].join('\n'))
  t.match(result, {
    rowsRead: 10_002,
    published: 1,
    rejected: 10_001,
    faults: [{ line: 3, reason: /10001 lobbies; at most 10000/ }]
  })
  t.same(lists, [{ titleId: '4d530064', observedAt: at(1), matches: [lobby('Ann', 1)] }])
  const strict = await importText(t, [HEADER, other, ...rows].join('\n'), { strict: true })
  t.match(strict.result, { published: 0, rejected: 10_001, finished: false })
  t.same(strict.lists, [])
  const exact = await importText(t, [HEADER, ...rows.slice(1)].join('\n'), { strict: true })
  t.equal(exact.lists[0]?.matches.length, 10_000)
})

test('a hundred thousand flat rows go through the thread of an import', async (t) => {
  const input = join(t.testdir(), 'input')
  const rows = Array.from({ length: 100_000 }, (_, n) => {
    const observedAt = instantOf(Date.UTC(2020, 0, 1) + (n % 500) * 60_000)
    return { titleId: '4d530064', observedAt, hostName: `Host ${n % 211}`, currentPlayers: (n % 7) - 1 }
  })
  await writeFile(input, [HEADER, ...rows.map((row) => Object.values(row).join(',').concat(','))].join('\n'))
  const log = memoryLog()
  const result = await importInWorker({ topic: 'match-list', input, fileName: 'x' }, { log, known: log.known })
  t.match(result, { rowsRead: 100_000, published: 100_000 })
  deepEqual(log.events('match-list'), plainly(rows))
  t.equal(log.mostUnderWay(), 1, 'one append at a time')
})
