import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { gamenet, ON_REQUEST, openGamenet, plainWrites } from './service/gamenet.js'
import { readPage } from './service/page-samples.js'

/*
 * Files as they are on the disks of users, and as `docs/import.md` prints the commands for them.
 */

const TITLE = '4d530064'

/** Opens a service that fetches nothing. Returns a function that imports, and one that asks. */
async function opened(t: Test) {
  const directory = t.testdir({})
  const { apiUrl, operatorUrl } = await openGamenet(t, {
    DATA_DIR: join(directory, 'data'),
    ...(await plainWrites(t)),
    ...ON_REQUEST
  })
  const write = (name: string, text: string) => writeFile(join(directory, name), text)
  const run = (args: readonly string[]) =>
    gamenet(
      { OPERATOR_URL: operatorUrl },
      args.map((arg) => (/\.(?:csv|json)$/.test(arg) ? join(directory, arg) : arg))
    )
  const get = async (path: string) => await (await fetch(`${apiUrl}${path}`)).text()
  const json = async (path: string) => JSON.parse(await get(path))
  return { write, run, get, json }
}

/** Returns the arguments of a command as a shell reads it: blanks divide them, and quotes keep blanks. */
function argumentsOf(line: string): string[] {
  return [...line.matchAll(/(?:[^\s"]|"[^"]*")+/g)].map(([word]) => word.replaceAll('"', ''))
}

/** A file for each command of the section; what an answer shows after it. */
const FILES: Readonly<Record<string, { text: string; path: string; shows: RegExp[] }>> = {
  'counts.csv': {
    text: 'time,players\n1767225600,12\n1767225900,0\n1767226200,\n1767226500,15\n',
    path: `/api/title/${TITLE}/online-users/history?from=2026-01-01&to=2026-01-02&resolution=raw&format=csv`,
    shows: [/^.*\n"2026-01-01T00:00:00.000Z",12\n"2026-01-01T00:05:00.000Z",0\n"2026-01-01T00:15:00.000Z",15\n$/]
  },
  'hourly.csv': {
    text: 'Zeit;Spieler\n25.10.2025 23:00;10\n26.10.2025 01:00;11\n26.10.2025 02:00;12\n26.10.2025 02:00;99\n26.10.2025 03:00;13\n',
    path: '/api/network-stats/online-24h?from=2025-10-25&to=2025-10-27&resolution=raw&format=csv',
    shows: [
      /"2025-10-25T21:00:00.000Z",10\n"2025-10-25T23:00:00.000Z",11\n/,
      /"2025-10-26T00:00:00.000Z",12\n"2025-10-26T01:00:00.000Z",99\n"2025-10-26T02:00:00.000Z",13\n$/
    ]
  },
  'records.csv': {
    text: 'Date,Player,Time,Car\n2021-03-01,cid,0:53.100,A\n2020-05-02,bob,0:54.000,B\n2020-05-01,ann,1:00.500,A\n2020-05-01,ann,1:01.000,A\n',
    path: `/api/game/${TITLE}/leaderboards/7/records?format=csv`,
    shows: [/cid.*bob.*ann|ann.*bob.*cid/s, /53100/, /54000/, /60500/]
  },
  'ranking.json': {
    text: '[{"country": "Norway", "points": 1.5}, {"country": "Chad", "points": 12.25}, {"country": "Peru", "points": 3}]',
    path: `/api/game/${TITLE}/leaderboards/8?format=csv`,
    shows: [/1,.*Chad.*12\.25.*\n2,.*Peru.*3.*\n3,.*Norway.*1\.5/]
  },
  'bot.json': {
    text: '{"Best laps": {"id": 9, "entries": [{"player": "Ann", "time": "1:02.345", "date": "2026-03-01"}]}, "Stunts": {"id": 10, "entries": [{"player": "Bob", "time": "0:59.001", "date": "2026-02-28"}]}}',
    path: `/api/game/${TITLE}/leaderboards/10`,
    shows: [/"Bob".*59001/]
  },
  'monthly.csv': {
    text: 'Month,Avg. Players,Gain,% Gain,Peak Players\nFebruary 2019,1234.5,-3,-1%,2000\nJanuary 2019,1240.25,+3,+1%,2001\nDecember 2018,1237.1,-,-,1999\n',
    path: '/api/network-stats/online-24h?from=2018-12-01&to=2019-03-01&resolution=raw&format=csv',
    shows: [/"2018-12-01T00:00:00.000Z",1999\n"2019-01-01T00:00:00.000Z",2001\n"2019-02-01T00:00:00.000Z",2000\n$/]
  }
}

test('each command of "Files as they are" imports a file of its form, as printed', async (t) => {
  const { write, run, get } = await opened(t)
  const [, section = ''] = (await readPage('docs/import.md')).split('## Files as they are')
  const lines = section.split('\n## ')[0]?.match(/^npx gamenet import .*$/gm) ?? []
  t.equal(lines.length, Object.keys(FILES).length)
  for (const line of lines) {
    const [, , ...args] = argumentsOf(line)
    const { text, path, shows } = FILES[args[2] ?? ''] ?? { text: '', path: '', shows: [] }
    await write(args[2] ?? '', text)
    const imported = await run(args)
    t.match(imported, { code: 0, stderr: '' }, `${line}\n${imported.stdout}`)
    const answer = await get(path)
    for (const each of shows) t.match(answer, each, line)
  }
})

test('an exported board, imported again, is the same board', async (t) => {
  const { write, run, get, json } = await opened(t)
  const boards = {
    1: ['ann,-7', 'bob,12', 'cid,3.5'],
    2: ['=1+1,5', '+49 171,4', "'x,3", '-,2', '"""quote""",1', '-7,0', "''=y,-1", '＝1,-2', '007,-3'],
    3: ['ann,1:02.345', '-bob,0:59.001', '@cid,10:00.000']
  }
  const as = ['--set', 'changeType=updated', '--set', `titleId=${TITLE}`, '--set', 'changedAt=2026-01-01']
  for (const [board, rows] of Object.entries(boards)) {
    await write('board.csv', `playerName,rating\n${rows.map((row) => `${row}\n`).join('')}`)
    // An apostrophe of a written file is kept only if it is one of two.
    const first = await run(['import', 'leaderboard-entry', 'board.csv', ...as, '--set', `leaderboardId=${board}`])
    t.match(first, { code: 0 }, first.stdout)
    const path = (id: number) => `/api/game/${TITLE}/leaderboards/${id}`
    await write('exported.csv', await get(`${path(Number(board))}?format=csv`))
    const copy = Number(board) + 100
    const columns = ['--columns', 'playerName=name', '--set', `leaderboardId=${copy}`]
    const second = await run(['import', 'leaderboard-entry', 'exported.csv', ...columns, ...as])
    t.match(second, { code: 0 }, second.stdout)
    const { entries } = await json(path(Number(board)))
    t.equal(entries.length, rows.length)
    t.same((await json(path(copy))).entries, entries)
  }
})

test('with --ratings score-ascending the lowest score leads the board, its records and comparisons', async (t) => {
  const { write, run, json } = await opened(t)
  const as = ['--set', `titleId=${TITLE}`, '--set', 'leaderboardId=7', '--set', 'changeType=updated']
  // The older file comes last.
  const files = [
    'ann,68,2020-02-01\nbob,70.5,2020-02-01\ncid,DNF,2020-02-01\n',
    'bob,66,2020-03-01\n',
    'ann,72,2020-01-01\nbob,71,2020-01-01\n'
  ]
  for (const [n, rows] of files.entries()) {
    await write('strokes.csv', `playerName,rating,changedAt\n${rows}`)
    const imported = await run(['import', 'leaderboard-entry', 'strokes.csv', ...as, '--ratings', 'score-ascending'])
    t.match(imported, { code: n === 0 ? 1 : 0 }, imported.stdout)
  }
  const board = `/api/game/${TITLE}/leaderboards/7`
  const shown = async (query: string) =>
    (await json(`${board}${query}`)).entries.map(({ rank, name, rating }: Record<string, string>) => [
      rank,
      name,
      rating
    ])
  t.same(await shown(''), [
    ['1', 'bob', '66'],
    ['2', 'ann', '68']
  ])
  t.same(await shown('?asOf=2020-02-02'), [
    ['1', 'ann', '68'],
    ['2', 'bob', '70.5']
  ])
  const { records } = await json(`${board}/records`)
  // Of one date each better one begins a reign.
  t.same(
    records.map(({ rating }: { rating: string }) => rating),
    ['72', '71', '70.5', '68', '66']
  )
  const compared = await json(`${board}/compare?from=2020-01-02&to=2020-02-02`)
  t.same(
    compared.improved.map(({ name }: { name: string }) => name),
    ['ann', 'bob']
  )
})
