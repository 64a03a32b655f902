import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { decodeEvent, leaderboardEntryTopic } from '@gamenet/schemas'
import { type Test, test } from 'tap'
import { type ImportRequest, runImport } from '../src/index.js'
import { memoryLog } from './import-log.js'

const NOW = Date.UTC(2026, 2, 1)
const HEADER = 'titleId,leaderboardId,playerName,changeType,rank,rating,timeMs,changedAt'

async function importText(t: Test, content: string | Buffer, given: Partial<ImportRequest> = {}, log = memoryLog()) {
  const input = join(t.testdir(), 'input')
  await writeFile(input, content)
  const request = { topic: 'leaderboard-entry', fileName: 'entries', input, ...given }
  const result = await runImport(request, { log, known: log.known, now: () => NOW })
  return { result, log, events: log.events(request.topic) as Readonly<Record<string, unknown>>[] }
}

const entry = {
  titleId: '4d530064',
  leaderboardId: 7,
  playerName: 'Ann',
  changeType: 'new',
  changedAt: '2020-01-01T00:00:00Z'
}

test('an entry is a time if it has milliseconds or its rating is time text, and each is derived from the other', async (t) => {
  const cells: [string, Record<string, unknown>][] = [
    ['1:23.456,', { rating: '1:23.456', timeMs: 83_456 }],
    ['01:23.456,83456', { rating: '01:23.456', timeMs: 83_456 }],
    [',83456', { rating: '1:23.456', timeMs: 83_456 }],
    [',0', { rating: '0:00.000', timeMs: 0 }],
    ['2147483647,0', { rating: '2147483647', timeMs: 0 }],
    ['12.5,0', { rating: '12.5' }],
    ['-7,0', { rating: '-7' }],
    ['1200,', { rating: '1200' }],
    ['-5,', { rating: '-5' }],
    ['2147400000,', { rating: '2147400000' }],
    ['83.456,', { rating: '83.456' }],
    ['1:02,', { rating: '1:02', timeMs: 62_000 }],
    ['1:02.3,', { rating: '1:02.3', timeMs: 62_300 }],
    ['1:02.34,', { rating: '1:02.34', timeMs: 62_340 }],
    ['00:59:01.250,', { rating: '00:59:01.250', timeMs: 3_541_250 }],
    ['01:00:01.250,', { rating: '01:00:01.250', timeMs: 3_601_250 }],
    ['1:00:01,', { rating: '1:00:01', timeMs: 3_601_000 }]
  ]
  const lines = cells.map(([cell], n) => `4D530064,7,P${n},new,,${cell},2020-01-01`)
  const { result, events } = await importText(t, [HEADER, ...lines].join('\n'))
  t.match(result, { published: cells.length, rejected: 0 })
  t.same(
    events,
    cells.map(([, state], n) => ({ ...entry, playerName: `P${n}`, ...state }))
  )
})

test('a row that lacks required values or contradicts itself is reported, and nothing is invented', async (t) => {
  const lines: [string, RegExp | undefined][] = [
    ['4d530064,7,Ann,new,1,100,,2020-01-01', undefined],
    ['4d530064,7,Ann,new,1,,,2020-01-01', /rating and timeMs are both missing/],
    ['4d530064,7,Ann,updated,,  ,,2020-01-01', /rating and timeMs are both missing/],
    ['4d530064,7,Ann,removed,,,,2020-01-01', undefined],
    ['4d530064,7,Ann,moved,1,100,,2020-01-01', /changeType is "moved": expected new, updated, removed/],
    ['4d530064,7,Ann,,1,100,,2020-01-01', /changeType is missing/],
    ['4d530064,7,Ann,,,,,2020-01-01', /changeType is missing/],
    ['4d530064,7,Ann,new,1,100,,', /changedAt is missing/],
    ['4d530064,7,Ann,new,1,100,,yesterday', /changedAt is "yesterday"/],
    ['4d530064,7,,new,1,100,,2020-01-01', /playerName is missing/],
    ['4d530064,,Ann,new,1,100,,2020-01-01', /leaderboardId is missing/],
    ['4d530064,-7,Ann,new,1,100,,2020-01-01', /leaderboardId is -7/],
    ['4d53006,7,Ann,new,1,100,,2020-01-01', /titleId is "4d53006"/],
    ['4d530064,7,Ann,new,first,100,,2020-01-01', /rank is "first": expected a whole number/],
    ['4d530064,7,Ann,new,1,1:00.000,59999,2020-01-01', /rating is "1:00.000", which is 60000 ms, but timeMs is 59999/],
    ['4d530064,7,Ann,new,1,1:60.000,,2020-01-01', /rating is "1:60.000": expected a time as M:SS.mmm.*, or a number/],
    ['4d530064,7,Ann,new,1,DNF,,2020-01-01', /rating is "DNF": expected a time/],
    ['4d530064,7,Ann,new,1,1e5,,2020-01-01', /rating is "1e5"/],
    ['4d530064,7,Ann,new,1,"12,5",,2020-01-01', /rating is "12,5"/],
    ['4d530064,7,Ann,new,1,,-1,2020-01-01', /timeMs is -1/],
    ['4d530064,7,Ann,new,1,,4294967296,2020-01-01', /timeMs is 4294967296/],
    [`4d530064,7,Ann,new,1,${'9'.repeat(201)},,2020-01-01`, /rating is/],
    [`4d530064,7,${'n'.repeat(501)},new,1,9,,2020-01-01`, /playerName is/],
    ['4d530064,7,Ann,new,-3,100,,2026-03-01T00:01:00Z', undefined],
    ['4d530064,7,Ann,new,1,100,,2026-03-01T00:01:00.001Z', /changedAt is .*more than a minute in the future/]
  ]
  const { result, events } = await importText(t, [HEADER, ...lines.map(([line]) => line)].join('\n'))
  const bad = lines.flatMap(([, reason], n) => (reason === undefined ? [] : [{ line: n + 2, reason }]))
  t.match(result.faults, bad)
  t.equal(result.faults.length, bad.length)
  t.match(result, { published: 3, rejected: bad.length, missing: 0, finished: true })
  t.same(events, [
    { ...entry, rank: 1, rating: '100' },
    { ...entry, changeType: 'removed' },
    { ...entry, rank: -3, rating: '100', changedAt: '2026-03-01T00:01:00Z' }
  ])
})

/** Imports one board with these ratings, and returns its milliseconds by rating, and the report. */
async function ratingsOf(t: Test, ratings: readonly string[], spelling?: ImportRequest['spelling']) {
  const lines = ratings.map((rating, n) => `4d530064,7,P${n},new,,"${rating}",,2020-01-01`)
  const { result, events } = await importText(t, [HEADER, ...lines, ''].join('\n'), { spelling })
  return { times: events.map(({ rating, timeMs }) => [rating, timeMs]), result }
}

test('seconds are times on a board of times, and the report says how they were read', async (t) => {
  const alone = await ratingsOf(t, ['21.480', '22.016', 'DNF', '39.900'])
  t.same(alone.times, [
    ['21.480', 21_480],
    ['22.016', 22_016],
    ['39.900', 39_900]
  ])
  t.match(alone.result, {
    rejected: 1,
    notes: [/ratings such as 21.480 of one board were read as times.*--ratings score/]
  })
  const mixed = await ratingsOf(t, ['1:02.000', '59.900', '83.456'])
  t.same(mixed.times, [
    ['1:02.000', 62_000],
    ['59.900', 59_900],
    ['83.456', 83_456]
  ])
  const scores = await ratingsOf(t, ['21.480', '22', '39.900'])
  t.same(scores.times, [
    ['21.480', undefined],
    ['22', undefined],
    ['39.900', undefined]
  ])
  t.match(scores.result.notes, [/ratings such as 21.480 of one board were read as scores; --ratings seconds/])
  t.same((await ratingsOf(t, ['21.480', '83.456'])).times, [
    ['21.480', undefined],
    ['83.456', undefined]
  ])
  for (const number of ['59', '59.9', '59.91']) {
    const [note = ''] = (await ratingsOf(t, ['1:02.3', number])).result.notes
    t.match(note, `ratings such as ${number} of one board were read as scores; --ratings seconds reads them as times`)
  }
  t.same((await ratingsOf(t, ['59', '59.91'])).result.notes, [], 'a board of scores')
})

test('a file can say how its ratings are spelled', async (t) => {
  const seconds = await ratingsOf(t, ['21.48', '83', '1:02.5', '-1'], { ratings: 'seconds' })
  t.same(seconds.times, [
    ['21.48', 21_480],
    ['83', 83_000],
    ['1:02.5', 62_500]
  ])
  t.match(seconds.result.faults, [{ line: 5, reason: /rating is "-1": expected seconds/ }])
  const milliseconds = await ratingsOf(t, ['21480', '5.0', '21.48'], { ratings: 'milliseconds' })
  t.same(milliseconds.times, [
    ['21480', 21_480],
    ['5.0', 5]
  ])
  t.match(milliseconds.result.faults, [{ line: 4, reason: /expected whole milliseconds/ }])
  const times = await ratingsOf(t, ['21.480', '83.4', '83'], { ratings: 'time' })
  t.same(times.times, [
    ['21.480', 21_480],
    ['83.4', 83_400]
  ])
  t.match(times.result.faults, [{ line: 4, reason: /--ratings seconds or milliseconds reads numbers/ }])
  const scores = await ratingsOf(t, ['21.480', '5', '1:02.345'], { ratings: 'score' })
  t.same(scores.times, [
    ['21.480', undefined],
    ['5', undefined]
  ])
  t.match(scores.result, { rejected: 1, notes: [] })
  const lower = [HEADER, '4d530064,7,Ann,new,,54,,2020-01-01', '4d530064,7,Bob,new,,DNF,,2020-01-01'].join('\n')
  const ascending = await importText(t, lower, { spelling: { ratings: 'score-ascending' } })
  t.same(ascending.events, [{ ...entry, rating: '54', isAscending: true }])
  t.match(ascending.result.faults, [{ line: 3, reason: /expected a number, because of --ratings score-ascending/ }])
})

test('the spelling belongs to the identity of an import', async (t) => {
  const ids = new Set<string>()
  for (const spelling of [undefined, { ratings: 'time' as const }, { ratings: 'score' as const }]) {
    ids.add((await ratingsOf(t, ['21.480'], spelling)).result.importId)
  }
  t.equal(ids.size, 3)
})

test('the report counts entries with several states at one instant', async (t) => {
  const line = (player: string, rating: string, date: string) => `4d530064,7,${player},updated,,${rating},,${date}`
  const lines = [
    line('Ann', '1:00.000', '2020-05-01'),
    line('Bob', '0:50.000', '2020-05-01'),
    line('Ann', '0:54.000', '2020-05-01'),
    line('Ann', '0:53.000', '2020-05-01'),
    // Once more, and on another day.
    line('Bob', '0:50.000', '2020-05-01'),
    line('Bob', '0:49.000', '2020-05-02')
  ]
  const { result } = await importText(t, [HEADER, ...lines, ''].join('\n'))
  t.match(result, { published: 6, notes: [/^1 entry has several states at one instant; the best one counts/] })
})

test('a removal is one fact, whatever values its row has', async (t) => {
  const lines = ['removed,3,1:00.000,60000', 'removed,,,', 'removed,,100,7'].map(
    (cells) => `4d530064,7,Ann,${cells},2020-01-01`
  )
  const { log, events } = await importText(t, [HEADER, ...lines].join('\n'))
  t.same(events, Array(3).fill({ ...entry, changeType: 'removed' }))
  t.equal(new Set(log.of('leaderboard-entry').map(({ headers }) => headers.ce_id)).size, 1)
})

test('the place among others, which only pages show, is not read from a file', async (t) => {
  const row = { ...entry, rating: '5', order: 1, step: 1, occurrence: 2, details: { car: 'GT' } }
  const { result, events } = await importText(t, JSON.stringify([row]))
  t.same(events, [{ ...entry, rating: '5' }])
  t.same([...result.ignoredColumns].sort(), ['details', 'occurrence', 'order', 'step'])
  await t.rejects(importText(t, JSON.stringify([row]), { columns: { order: 'order' } }), /has no field "order"/)
  const board = await importText(
    t,
    JSON.stringify([{ ...entry, name: 'A', observedAt: '2020-01-01', listed: false }]),
    {
      topic: 'leaderboard'
    }
  )
  t.same(board.events, [{ titleId: '4d530064', leaderboardId: 7, name: 'A', observedAt: '2020-01-01T00:00:00Z' }])
})

test('a rating that is a number in JSON is read as its decimal text', async (t) => {
  const ratings: [unknown, string | undefined][] = [
    [1200, '1200'],
    [0, '0'],
    [-0, '0'],
    [-5, '-5'],
    [2_147_483_647, '2147483647'],
    [9_007_199_254_740_991, '9007199254740991'],
    ['9007199254740993', '9007199254740993'],
    [9_007_199_254_740_992, undefined],
    [1e21, undefined],
    [83.456, '83.456'],
    [1e-7, undefined]
  ]
  const rows = ratings.map(([rating], n) => ({ ...entry, playerName: `P${n}`, rating }))
  const { result, events } = await importText(t, JSON.stringify(rows))
  t.same(
    events.map(({ rating }) => rating),
    ratings.flatMap(([, text]) => text ?? [])
  )
  t.match(
    result.faults.map(({ reason }) => reason),
    ['9007199254740992: expected a text', '1e\\+21: expected a text', '"1e-7": expected a time'].map(
      (shown) => new RegExp(`^rating is ${shown}`)
    )
  )
  t.match((await importText(t, JSON.stringify([{ ...entry, rating: true }]))).result.faults, [
    { reason: /rating is true/ }
  ])
})

test('a name with a control character is refused, because no page shows one', async (t) => {
  const names = ['a\0b', '\u0001', 'a\u007f', 'a\u0085b', 'a\tb\r\n']
  const { result, events } = await importText(
    t,
    JSON.stringify(names.map((playerName) => ({ ...entry, playerName, rating: '5' })))
  )
  t.match(
    events.map(({ playerName }) => playerName),
    ['a b'],
    'white space is shown as one space'
  )
  t.equal(result.faults.length, 4)
  t.match(result.faults[0], { reason: 'playerName is "a\\u0000b": it has a control character' })
})

test('names are read as a page would show them, and then are the same entry', async (t) => {
  const names = [' Ann  B ', 'Ann\tB', 'Ann B', 'ANN B', '<b>Ann</b>', 'אבג דה', 'Zoe\u0301', '😀'.repeat(100)]
  const { events } = await importText(
    t,
    JSON.stringify(names.map((playerName) => ({ ...entry, playerName, rating: ' 1:02.003\n' })))
  )
  t.same(
    events.map(({ playerName }) => playerName),
    ['Ann B', 'Ann B', 'Ann B', 'ANN B', '<b>Ann</b>', 'אבג דה', 'Zoe\u0301', '😀'.repeat(100)]
  )
  t.ok(events.every(({ rating, timeMs }) => rating === '1:02.003' && timeMs === 62_003))
})

test('spaces that HTML does not collapse are part of a name in files, as they are on pages', async (t) => {
  const names = ['two words\u00a0\u00a0three', 'a\u3000b', '\ufeffbom', 'a\u2009 b']
  const { events } = await importText(
    t,
    JSON.stringify(names.map((playerName) => ({ ...entry, playerName, rating: '5' })))
  )
  t.same(
    events.map(({ playerName }) => playerName),
    names
  )
  const board = await importText(
    t,
    JSON.stringify([{ titleId: '4d530064', leaderboardId: 7, name: 'A\u00a0\u00a0B', observedAt: '2020-01-01' }]),
    {
      topic: 'leaderboard'
    }
  )
  t.match(board.events, [{ name: 'A\u00a0\u00a0B' }])
})

test('files with other columns are read by mapping and constants, also compressed', async (t) => {
  const ndjson = ['{"player":"Ann","time_ms":25420,"date":"2004-07-18 06:06:37"}', '{"player":"Bob","date":null}']
  const { result, events } = await importText(t, gzipSync(ndjson.join('\n')), {
    columns: { playerName: 'player', timeMs: 'time_ms', changedAt: 'date' },
    set: { titleId: '4D530064', leaderboardId: '7', changeType: 'updated' }
  })
  t.same(events, [
    { ...entry, changeType: 'updated', timeMs: 25_420, rating: '0:25.420', changedAt: '2004-07-18T06:06:37Z' }
  ])
  t.match(result, { rejected: 1, faults: [{ line: 2, reason: 'rating and timeMs are both missing' }] })
  await t.rejects(
    importText(t, '{"player":"Ann"}', { set: { titleId: '4d530064', leaderboardId: 'seven' } }),
    /constant for leaderboardId is "seven"/
  )
})

test('every published event of an import of entries can be read', async (t) => {
  const ratings = ['', '0', '1:00.000', '2147483646', '-1', '9007199254740993', '1,234', 'x', ' ']
  const times = ['', '0', '60000', '4294967295']
  const lines = ratings.flatMap((rating) =>
    times.flatMap((time) =>
      ['new', 'updated', 'removed'].map((change) => `4d530064,7,Ann,${change},1,"${rating}",${time},2020-01-01`)
    )
  )
  const { result, log } = await importText(t, [HEADER, ...lines].join('\n'))
  const read = log
    .of('leaderboard-entry')
    .map((message) => decodeEvent(leaderboardEntryTopic, { ...message, epoch: 1, partition: 0, offset: 0 } as never))
  t.same(
    read.filter((one) => !one.ok),
    []
  )
  t.equal(result.published + result.rejected, lines.length)
  t.equal(read.length, result.published)
})

test('a second import of the same changes publishes nothing', async (t) => {
  const log = memoryLog()
  const content = [HEADER, '4d530064,7,Ann,new,1,100,,2020-01-01', 'x,7,Ann,new,1,100,,2020-01-01'].join('\n')
  await importText(t, content, {}, log)
  const appends = log.appends.length
  const { result } = await importText(t, gzipSync(content), {}, log)
  t.match(result, { alreadyDone: true, rowsRead: 2, published: 1, rejected: 1, missing: 0 })
  t.equal(log.appends.length, appends)
})

test('a row of a board needs its name and an instant', async (t) => {
  const header = 'titleId,leaderboardId,name,observedAt'
  const lines: [string, RegExp | undefined][] = [
    ['4d530064,0,"  Kudos,  Total ",2020-01-01', undefined],
    ['4d530064,4294967295,K,1577836800', undefined],
    ['4d530064,4294967296,K,2020-01-01', /leaderboardId is 4294967296/],
    ['4d530064,1,,2020-01-01', /name is missing/],
    ['4d530064,1,K,', /observedAt is missing/],
    ['4d530064,1,K,2026-03-01T00:01:01Z', /more than a minute in the future/]
  ]
  const { result, events } = await importText(t, [header, ...lines.map(([line]) => line)].join('\n'), {
    topic: 'leaderboard'
  })
  t.match(
    result.faults,
    lines.flatMap(([, reason], n) => (reason === undefined ? [] : [{ line: n + 2, reason }]))
  )
  t.same(events, [
    { titleId: '4d530064', leaderboardId: 0, name: 'Kudos, Total', observedAt: '2020-01-01T00:00:00Z' },
    { titleId: '4d530064', leaderboardId: 4_294_967_295, name: 'K', observedAt: '2020-01-01T00:00:00Z' }
  ])
})
