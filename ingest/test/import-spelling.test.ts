import { deepEqual } from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runs } from '@gamenet/engines/testing'
import { instantOf } from '@gamenet/schemas'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import { type ImportRequest, runImport } from '../src/index.js'
import { memoryLog } from './import-log.js'

const NOW = Date.UTC(2026, 10, 20)

async function importText(t: Pick<Test, 'testdir'>, content: string, given: Partial<ImportRequest> = {}) {
  const log = memoryLog()
  const input = join(t.testdir(), 'input')
  await writeFile(input, content)
  const request = { topic: 'network-count', fileName: 'counts.csv', input, ...given }
  const result = await runImport(request, { log, known: log.known, now: () => NOW })
  const events = log.events(request.topic) as Readonly<Record<string, unknown>>[]
  return { ...result, events, reasons: result.faults.map(({ line, reason }) => `${line}: ${reason}`) }
}

/** The instants and counts of a file of the network's counts. */
async function counts(t: Pick<Test, 'testdir'>, lines: readonly string[], spelling: ImportRequest['spelling'] = {}) {
  const { events, reasons, notes } = await importText(t, `observedAt,online\n${lines.join('\n')}\n`, { spelling })
  return { seen: events.map(({ observedAt, online }) => [observedAt, online]), reasons, notes }
}

test('times without a zone are of the given one, others keep their own', async (t) => {
  const lines = [
    '2026-07-01 12:00,1',
    '2026-01-01,2',
    '2026-07-01T12:00:00Z,3',
    '2026-07-01 12:00 UTC,4',
    '1782907200,5'
  ]
  t.same((await counts(t, lines, { tz: 'Europe/Berlin' })).seen, [
    ['2026-07-01T10:00:00Z', 1],
    ['2025-12-31T23:00:00Z', 2],
    ['2026-07-01T12:00:00Z', 3],
    ['2026-07-01T12:00:00Z', 4],
    ['2026-07-01T12:00:00Z', 5]
  ])
  await t.rejects(counts(t, lines, { tz: 'Berlin' }), { code: 'import_refused', message: /--tz is "Berlin"; expected/ })
})

const BERLIN = { tz: 'Europe/Berlin' }

test('the order of lines tells the two passes of a repeated hour apart', async (t) => {
  const hours = ['01:00,1', '02:00,2', '02:00,3', '03:00,4'].map((line) => `2026-10-25 ${line}`)
  const wanted = [
    ['2026-10-24T23:00:00Z', 1],
    ['2026-10-25T00:00:00Z', 2],
    ['2026-10-25T01:00:00Z', 3],
    ['2026-10-25T02:00:00Z', 4]
  ]
  t.same(await counts(t, hours, BERLIN), { seen: wanted, reasons: [], notes: [] })
  t.same((await counts(t, hours.toReversed(), BERLIN)).seen, wanted.toReversed(), 'newest first')
  const halves = ['02:30,1', '02:00,2', '02:30,3'].map((line) => `2026-10-25 ${line}`)
  t.same((await counts(t, ['2026-10-24,0', ...halves], BERLIN)).seen.slice(1), [
    ['2026-10-25T00:30:00Z', 1],
    ['2026-10-25T01:00:00Z', 2],
    ['2026-10-25T01:30:00Z', 3]
  ])
})

test('an hour that the order of lines does not tell apart is refused with the way out, and no other row is', async (t) => {
  const once = await counts(t, ['2026-10-25 01:00,1', '2026-10-25 02:00,2', '2026-10-25 03:00,3'], BERLIN)
  t.same(once.seen.length, 2)
  t.match(once.reasons, [/^3: observedAt is "2026-10-25 02:00": clocks in Europe\/Berlin show this time twice/])
  const skipped = await counts(t, ['2026-03-29 02:30,1'], BERLIN)
  t.match(skipped.reasons, [/clocks in Europe\/Berlin skip this time/])
})

test('each title of a file is a series of its own', async (t) => {
  const lines = ['4d530064,01:00', '4d530065,01:00', '4d530064,01:00', '4d530065,01:00', '4d530066,01:00']
  const file = `titleId,observedAt,online\n${lines.map((line, n) => `${line.replace(',', ',2026-11-01 ')},${n}`).join('\n')}\n`
  const { events, reasons } = await importText(t, file, { topic: 'title-count', spelling: { tz: 'America/New_York' } })
  t.same(
    events.map(({ titleId, observedAt }) => `${titleId} ${observedAt}`),
    ['4', '5', '4', '5'].map((id, n) => `4d53006${id} 2026-11-01T0${n < 2 ? 5 : 6}:00:00Z`)
  )
  t.match(reasons, [/^6: .*show this time twice/])
})

test('every local time of a complete series is read back, in either order', async (t) => {
  const zones = [
    'Europe/Berlin',
    'America/New_York',
    'Australia/Lord_Howe',
    'Asia/Kathmandu',
    'America/St_Johns',
    'UTC'
  ]
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...zones),
      fc.constantFrom(Date.UTC(2025, 9, 25), Date.UTC(2025, 10, 1), Date.UTC(2026, 3, 4), Date.UTC(2026, 2, 28)),
      fc.constantFrom(5, 15, 30),
      fc.boolean(),
      async (tz, fromMs, minutes, isNewestFirst) => {
        const format = new Intl.DateTimeFormat('sv', { timeZone: tz, dateStyle: 'short', timeStyle: 'medium' })
        const all = Array.from({ length: 2880 / minutes }, (_, n) => fromMs + n * minutes * 60_000)
        if (isNewestFirst) all.reverse()
        const { seen, reasons } = await counts(
          t,
          all.map((ms, n) => `${format.format(ms)},${n}`),
          { tz }
        )
        deepEqual(reasons, [])
        deepEqual(
          seen,
          all.map((ms, n) => [instantOf(ms), n])
        )
      }
    ),
    runs(8)
  )
})

test('a format reads times in any spelling, and ambiguous dates name it', async (t) => {
  const formats: [string, string, string][] = [
    ['%d/%m/%Y %H:%M', '01/04/2022 13:05', '2022-04-01T13:05:00Z'],
    ['%m/%d/%y', '4/1/22', '2022-04-01T00:00:00Z'],
    ['%B %Y', 'March 2026', '2026-03-01T00:00:00Z'],
    ['%Y-%m', '2026-03', '2026-03-01T00:00:00Z'],
    ['%d. %b. %Y, %I:%M %p', '3. Sep. 2025, 12:07 am', '2025-09-03T00:07:00Z'],
    ['%a %d %b %Y %H:%M:%S.%f %z', 'Mon 01 Sep 2025 10:00:00.25 +0230', '2025-09-01T07:30:00.250Z'],
    ['%Y%m%d', '20250901', '2025-09-01T00:00:00Z']
  ]
  for (const [timeFormat, text, instant] of formats) {
    const { seen, reasons } = await counts(t, [`"${text}",1`, 'x,2'], { timeFormat })
    t.same(seen, [[instant, 1]], timeFormat)
    t.same(reasons, [`3: observedAt is "x": expected a time as ${timeFormat}`])
  }
  t.match((await counts(t, ['01/04/2022,1'])).reasons, [/expected a time with the year first; --time-format/])
  t.match((await counts(t, ['March 2026,1'])).reasons, [/--time-format reads other forms/])
  for (const timeFormat of ['%Q', '%d', '%Y %m %m', '%Y-%d']) {
    await t.rejects(counts(t, ['x,1'], { timeFormat }), { code: 'import_refused', message: /^--time-format/ })
  }
})

test('rows that meet an instant of the file are counted, and the last one is published last', async (t) => {
  const { seen, notes } = await counts(t, ['2026-01-01,1', '2026-01-02,2', '2026-01-01 00:00:00,3'])
  t.same(seen.at(-1), ['2026-01-01T00:00:00Z', 3])
  t.match(notes, [/^1 row meets an instant of another row; of such rows the last one counts$/])
  const both = 'observedAt,online,registered\n2026-01-01,1,\n2026-01-01,,7\n'
  t.same((await importText(t, both)).notes, [], 'online and registered are separate counts')
})

test('cells are divided by what gives the needed columns', async (t) => {
  for (const delimiter of [',', ';', '\t', '|']) {
    const rows = [`ObservedAt${delimiter}"Online "`, `2026-01-01${delimiter}10.0`, `"2026-01-02"${delimiter}"12"`]
    t.match(await importText(t, `${rows.join('\r\n')}\r\n`), { published: 2, rejected: 0, notes: [] }, delimiter)
  }
  const odd = 'observedAt;online,x;y\n2026-01-01;5,1;2\n'
  const columns = { online: 'online,x' }
  t.match(await importText(t, odd, { columns }), { published: 0, rejected: 1 })
  const { events } = await importText(t, 'observedAt;a,b\n2026-01-01;5\n', { columns: { online: 'a,b' } })
  t.same(events, [{ observedAt: '2026-01-01T00:00:00Z', online: 5 }])
  const forced = await importText(t, 'observedAt|online;x\n2026-01-01|5\n', {
    columns: { online: 'online;x' },
    spelling: { delimiter: '|' }
  })
  t.match(forced, { published: 1 })
})

test('words that programs write for a missing value are missing values, except in names', async (t) => {
  const words = ['', 'NaN', 'N/A', 'NA', 'null', '-', 'nan']
  const { seen, reasons } = await counts(
    t,
    [...words, '0'].map((word, n) => `2026-01-0${n + 1},${word}`)
  )
  t.same([seen, reasons], [[['2026-01-08T00:00:00Z', 0]], []])
  const titles = `titleId,name,publisher,observedAt\n${words.map((word, n) => `4d53000${n},NA,${word},2026-01-01`).join('\n')}\n`
  const { events } = await importText(t, titles, { topic: 'title' })
  t.same(new Set(events.map(({ name, publisher }) => `${name} ${publisher}`)), new Set(['NA undefined']))
})

test('a title keeps its row when an optional field is not valid', async (t) => {
  const { events, rejected, notes } = await importText(
    t,
    'titleId,name,releaseDate,image,observedAt\n4d530064,Halo,TBA,cover.png,2026-01-01\n4d530065,,TBA,,2026-01-01\n',
    { topic: 'title', strict: false }
  )
  t.same(events, [{ titleId: '4d530064', name: 'Halo', observedAt: '2026-01-01T00:00:00Z' }])
  t.equal(rejected, 1)
  t.match(notes, [/^3 optional values are not valid and were left out, such as releaseDate "TBA"$/])
})

test('a note says that the last line of a CSV file has no end', async (t) => {
  const cut = 'observedAt,online\n2026-01-01,5000\n2026-01-02,51'
  t.match((await importText(t, cut)).notes, [/the last line has no line end/])
  t.same((await importText(t, `${cut}\n`)).notes, [])
  t.same((await importText(t, '{"observedAt":"2026-01-01","online":1}')).notes, [])
})

test('a text that our exports guard against spreadsheets is read without its guard', async (t) => {
  const names = ["'=1+1", "''x", "'-7", "'x", "'＝1"]
  const lines = names.map((name, n) => `4d530064,7,${name},updated,-${n},2026-01-01`)
  const file = `titleId,leaderboardId,playerName,changeType,rating,changedAt\n${lines.join('\n')}\n`
  t.same(
    (await importText(t, file, { topic: 'leaderboard-entry' })).events.map(({ playerName }) => playerName),
    ['=1+1', "'x", '-7', "'x", '＝1']
  )
})

test('rows are found in one JSON object, with the values and keys around them', async (t) => {
  const bot = {
    game: '4d530064',
    boards: {
      7: [
        { player: 'Ann', time: '1:02.345', date: '2024-05-01' },
        { player: 'Bob', time: '1:03.000', date: '2024-05-02' }
      ],
      8: [{ player: 'Ann', time: '59.900', date: '2024-05-01' }]
    }
  }
  const columns = { titleId: 'game', leaderboardId: 'key', playerName: 'player', rating: 'time', changedAt: 'date' }
  for (const indent of [0, 2]) {
    const { events, rejected } = await importText(t, JSON.stringify(bot, null, indent), {
      topic: 'leaderboard-entry',
      columns,
      set: { changeType: 'updated' }
    })
    t.equal(rejected, 0)
    t.same(
      events.map(({ titleId, leaderboardId, playerName, timeMs }) => [titleId, leaderboardId, playerName, timeMs]),
      [
        ['4d530064', 7, 'Ann', 62_345],
        ['4d530064', 7, 'Bob', 63_000],
        ['4d530064', 8, 'Ann', 59_900]
      ]
    )
  }
  const list = { titleId: '4d530064', observedAt: '2026-01-01', matches: [{ hostName: 'Ann', currentPlayers: 2 }] }
  t.match(await importText(t, JSON.stringify(list), { topic: 'match-list' }), { published: 1, rejected: 0 })
  const byDay = { '2026-01-01': { online: 5 }, '2026-01-02': { online: 6 } }
  t.same(
    (await importText(t, JSON.stringify(byDay, null, 1), { columns: { observedAt: 'key' } })).events.map(
      ({ online }) => online
    ),
    [5, 6]
  )
  t.match(await importText(t, '{"observedAt":"2026-01-01",\n "online":5}{}\n'), { published: 0, rejected: 2 })
})
