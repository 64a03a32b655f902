import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { test } from 'tap'
import { gamenet, ON_REQUEST, openGamenet, plainWrites } from './service/gamenet.js'

const TITLE = '4d530064'
const SHUFFLES = 500
const SEED = 20_260_314

/** Lines of one board with dates only: several states of one player on one day, removals, equal times. */
const LINES = [
  'ann,updated,1:00.000,2020-05-01',
  'ann,updated,0:54.000,2020-05-01',
  'ann,updated,54.000,2020-05-01',
  'bob,updated,0:57.000,2020-05-01',
  'cid,updated,0:54.000,2020-05-02',
  'cid,removed,,2020-05-02',
  'ann,removed,,2020-05-03',
  'dan,updated,0:53.500,2020-05-03',
  'bob,updated,0:59.000,2020-05-03',
  'bob,updated,0:52.000,2020-05-04',
  'ann,updated,0:52.000,2020-05-04',
  'dan,removed,,2020-05-04'
]

test('board and records are the same for every order of the lines of a file', async (t) => {
  const directory = t.testdir({})
  const environment = {
    DATA_DIR: join(directory, 'data'),
    ...(await plainWrites(t)),
    ...ON_REQUEST
  }
  const { apiUrl, operatorUrl } = await openGamenet(t, environment)
  const orders = fc.sample(fc.shuffledSubarray(LINES, { minLength: LINES.length }), { numRuns: SHUFFLES, seed: SEED })
  // Each order is a board of its own.
  const rows = orders.flatMap((lines, board) => lines.map((line) => `${TITLE},${board},${line}`))
  const file = join(directory, 'boards.csv')
  await writeFile(file, ['titleId,leaderboardId,playerName,changeType,rating,changedAt', ...rows, ''].join('\n'))
  const imported = await gamenet({ ...environment, OPERATOR_URL: operatorUrl }, ['import', 'leaderboard-entry', file])
  t.match(imported, { code: 0, stdout: /note: 1000 entries have several states at one instant; the best one counts/ })
  const [answers, past] = [new Set<string>(), new Set<string>()]
  for (const board of orders.keys()) {
    const path = `${apiUrl}/api/game/${TITLE}/leaderboards/${board}`
    const answer = async (url: string) => (await (await fetch(url)).text()).replaceAll(`"leaderboardId":"${board}"`, '')
    answers.add(`${await answer(path)}\n${await answer(`${path}/records`)}`)
    if (board < 50) past.add(await answer(`${path}?asOf=2020-05-01T00:00:00Z`))
  }
  t.equal(answers.size, 1)
  t.equal(past.size, 1, 'as of a day with several states')
  const [all = ''] = answers
  t.match(all, /"name":"ann".*"timeMs":52000.*"name":"bob".*"timeMs":52000/)
})
