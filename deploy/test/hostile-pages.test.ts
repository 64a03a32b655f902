import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { leaderboardEntryTopic, leaderboardTopic } from '@gamenet/schemas'
import { type Test, test } from 'tap'
import { openScrapedWorld, type ScrapedWorld } from './service/scraped-world.js'

const TITLE = '4d530064'
const HTML = { 'content-type': 'text/html; charset=utf-8' }

type Answer = (request: IncomingMessage, response: ServerResponse) => void

/** A server that answers each path as ordered, with one game. */
async function startHostile(t: Test) {
  const answers = new Map<string, string | Answer>()
  const games =
    `<table><tbody><tr><td><a href="/games/${TITLE}">Game</a></td><td>MS-001<br><small>${TITLE}</small></td></tr>` +
    '</tbody></table>'
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    const answer = path === '/games' ? games : answers.get(path)
    if (typeof answer === 'function') answer(request, response)
    else if (answer === undefined) response.writeHead(404, HTML).end()
    else response.writeHead(200, HTML).end(answer)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, answers }
}

const MATCHES = '<table class="table table-striped"><tbody></tbody></table>'
const cells = (...texts: (string | number)[]) => `<tr>${texts.map((text) => `<td>${text}</td>`).join('')}</tr>`
const options = (ids: readonly (number | string)[], selected?: number) =>
  ids.map((id) => `<option value="${id}"${id === selected ? ' selected' : ''}>Board</option>`).join('')
const page = (list: string, rows: string) =>
  `<html><body>${MATCHES}<select id="leaderboard-select">${list}</select>` +
  `<table class="table table-striped"><tbody>${rows}</tbody></table></body></html>`

async function shownBoard({ tables, projector }: ScrapedWorld, leaderboardId: number) {
  await projector.caughtUp()
  const rows = await tables.control.rows(
    `SELECT e.rank AS rank, e.player AS name, e.rating AS rating, e.time_ms AS timeMs
     FROM leaderboard_entry AS e FINAL
     WHERE e.title_id = {titleId: String} AND e.leaderboard_id = {leaderboardId: UInt32} AND NOT e.is_gone ORDER BY e.place`,
    { titleId: TITLE, leaderboardId }
  )
  return rows.map(({ rank, name, rating, timeMs }) => [Number(rank), name, rating, timeMs])
}

const list = `/games/${TITLE}`
const board = (id: number) => `/games/${TITLE}?leaderboard=${id}`

test('hostile pages of boards are stored as shown, or fail with a reason and remove nothing', async (t) => {
  const { url, answers } = await startHostile(t)
  const world = await openScrapedWorld(t, { upstreamUrl: url })
  const { ingest } = world.ingest()
  t.match(await ingest.runNow('games'), [{ outcome: 'succeeded' }])
  const visit = async () => {
    const [run] = await ingest.runNow('boards')
    return run
  }

  await t.test('a page whose list selects nothing shows the requested board', async (t) => {
    answers.set(list, page(options([1, 2]), ''))
    answers.set(board(1), page(options([1, 2]), cells(1, 'ann', 5)))
    answers.set(board(2), page(options([1, 2]), cells(1, 'bob', 6)))
    t.match(await visit(), { outcome: 'succeeded' })
    t.same(await shownBoard(world, 1), [[1, 'ann', '5', null]])
    t.same(await shownBoard(world, 2), [[1, 'bob', '6', null]])
  })

  await t.test('spaces that HTML does not collapse are part of a name', async (t) => {
    answers.set(board(1), page(options([1, 2], 1), cells(1, 'a&nbsp;&nbsp;b', 5) + cells(2, 'a\u3000b', 4)))
    await visit()
    t.same(await shownBoard(world, 1), [
      [1, 'a\u00a0\u00a0b', '5', null],
      [2, 'a\u3000b', '4', null]
    ])
  })

  await t.test(
    'a page whose list selects another board, or the placeholder, is not the one that was asked for',
    async (t) => {
      const before = await shownBoard(world, 1)
      for (const [chosen, reason] of [
        [options([1, 2], 2), /the page shows board 2/],
        [`<option value="" selected>Choose</option>${options([1, 2])}`, /the page shows none/]
      ] as const) {
        answers.set(board(1), page(chosen, cells(1, 'of another', 9)))
        t.match(await visit(), { outcome: 'partial', reason })
        t.same(await shownBoard(world, 1), before)
      }
    }
  )

  await t.test(
    'a page that was led to another board, or to none, is not taken for the one that was asked for',
    async (t) => {
      const before = (await world.events(leaderboardEntryTopic)).length
      for (const [to, reason] of [
        [board(2), /leaderboard=1|board 1/],
        [list, /leaderboard=1|board 1/]
      ] as const) {
        answers.set(board(1), (_, response) => response.writeHead(302, { location: to }).end())
        answers.set(list, page(options([1, 2]), cells(1, 'first of all', 1)))
        t.match(await visit(), { outcome: 'partial', reason })
        t.equal((await world.events(leaderboardEntryTopic)).length, before)
      }
    }
  )

  await t.test(
    'bombs, other charsets, pages cut off or empty, rows that cannot be read take nothing away',
    async (t) => {
      const before = await shownBoard(world, 1)
      const answersOf: Answer[] = [
        (_, r) =>
          r.writeHead(200, { ...HTML, 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(64 * 2 ** 20, 32))),
        (_, r) =>
          r
            .writeHead(200, { 'content-type': 'text/html; charset=utf-16le' })
            .end(Buffer.from(page(options([1], 1), ''), 'utf16le')),
        (_, r) =>
          r
            .writeHead(200, { 'content-type': 'text/html' })
            .end(Buffer.from(page(options([1], 1), cells(1, 'Ren\u00e9', 1)), 'latin1')),
        (_, r) =>
          r.writeHead(200, HTML).end(page(options([1, 2], 1), cells(1, 'ann', 5) + cells(2, 'bob', 4)).slice(0, 260)),
        (_, r) => r.writeHead(200, HTML).end(''),
        (_, r) =>
          r
            .writeHead(200, HTML)
            .end(`<html><body>${MATCHES}<select id="leaderboard-select">${options([1, 2], 1)}</select></body></html>`),
        (_, r) => r.writeHead(200, HTML).end(page(options([1, 2], 1), cells('first', 'ann', 5))),
        (_, r) => r.writeHead(200, HTML).end(page(options([1, 2], 1), cells('', 'ann', 5))),
        (_, r) => r.writeHead(200, HTML).end(page(options([1, 2], 1), cells(1, 'ann', 5) + cells(2, 'bob'))),
        (_, r) => r.writeHead(304, {}).end()
      ]
      for (const answer of answersOf) {
        answers.set(board(1), answer)
        answers.set(list, page(options([1, 2]), ''))
        const run = await visit()
        t.match(run, { outcome: 'partial', reason: /leaderboard=1/ })
        t.same(await shownBoard(world, 1), before)
      }
    }
  )

  await t.test('unusual ranks, scores, times and names are stored as shown', async (t) => {
    const name200 = 'x'.repeat(200)
    answers.set(
      board(1),
      page(
        options([1, 2], 1),
        cells(1, 'ann', -5) +
          cells(1, 'Ann', '9007199254740993') +
          cells(3, name200, 0) +
          cells(3, '\u202eabc\u05d0', '1') +
          cells(2, 'Zoe\u0301', '2') +
          cells(9, '&lt;script&gt;alert(1)&lt;/script&gt;', '99999999999999999999999') +
          cells(0, 'ann', 3)
      )
    )
    t.match(await visit(), { outcome: 'succeeded' })
    t.same(await shownBoard(world, 1), [
      [1, 'ann', '-5', null],
      [1, 'Ann', '9007199254740993', null],
      [3, name200, '0', null],
      [3, '\u202eabc\u05d0', '1', null],
      [2, 'Zoe\u0301', '2', null],
      [9, '<script>alert(1)</script>', '99999999999999999999999', null],
      [0, 'ann', '3', null]
    ])
    answers.set(
      board(1),
      page(
        options([1, 2], 1),
        cells(1, 'ann', '2147483647') + cells(2, 'bob', '0:00.000') + cells(3, 'eve', '1:00.000')
      )
    )
    t.match(await visit(), { outcome: 'succeeded' })
    t.same(await shownBoard(world, 1), [
      [1, 'ann', '2147483647', 0],
      [2, 'bob', '0:00.000', 0],
      [3, 'eve', '1:00.000', 60000]
    ])
    answers.set(board(1), page(options([1, 2], 1), ''))
    t.match(await visit(), { outcome: 'succeeded' })
    t.same(await shownBoard(world, 1), [])
  })

  await t.test('an unreadable list delists nothing', async (t) => {
    const lists = (await world.events(leaderboardTopic)).length
    for (const bad of [
      options([1, 2, 'three']),
      options([1, 2, 2]),
      `${options([1, 2])}<option>x`,
      '<option value="-1">x</option>',
      '<option value="99999999999">x</option>'
    ]) {
      answers.set(list, page(bad, ''))
      answers.set(board(1), page(bad.replace('value="1"', 'value="1" selected'), ''))
      const run = await visit()
      t.match(run, { outcome: 'partial' })
      t.equal((await world.events(leaderboardTopic)).length, lists)
    }
  })
})
