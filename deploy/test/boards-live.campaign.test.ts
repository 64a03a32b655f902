import { test } from 'tap'
import { boardRowsAt } from '../demo/network/boards.js'
import { readCatalogue } from '../demo/network/samples.js'
import { startDemoNetwork } from '../demo/network/server.js'
import { createWorld } from '../demo/network/world.js'
import { openBoardWorld } from './boards-model-world.js'
import { provesLiveBoards } from './live-boards.js'
import { forEach } from './service/ask.js'
import { RECORDED_TITLE, recordedBoards } from './service/recorded-boards.js'

const SEED = 23
const NOON = Date.UTC(2026, 2, 14, 12)

test('the constantly changing boards of three titles, scraped for an hour', async (t) => {
  const catalogue = readCatalogue().slice(0, 3)
  await provesLiveBoards(t, { seed: 19, catalogue, rounds: 16, instants: 100 })
})

test('the hundreds of recorded boards of one title are scraped completely', async (t) => {
  const boards = await recordedBoards(t)
  const catalogue = readCatalogue().filter(({ titleId }) => titleId === RECORDED_TITLE)
  const demo = createWorld(SEED, { catalogue, boards: { [RECORDED_TITLE]: boards } })
  const network = await startDemoNetwork({ seed: SEED, world: demo, speed: 1, now: () => NOON })
  t.teardown(() => network.close())
  const world = await openBoardWorld(t, { clock: { ms: NOON }, upstreamUrl: network.url })
  const { ingest } = world.ingest()
  await ingest.runNow('network')
  const ran = await ingest.runNow('boards')
  t.same([...new Set(ran.map(({ outcome }) => outcome))], ['succeeded'])
  await world.caughtUp()

  const { body: listed } = await world.ask(`/api/game/${RECORDED_TITLE}/leaderboards`)
  t.same(
    listed.map(({ id, name }: { id: number; name: string }) => ({ leaderboardId: id, name })),
    boards
      .map(({ leaderboardId, name }) => ({ leaderboardId, name }))
      .sort((a, b) => a.leaderboardId - b.leaderboardId),
    `${boards.length} boards`
  )
  const [title] = demo.titles
  const shown = title === undefined ? [] : demo.boardsOf(title)
  t.equal(shown.length, boards.length)
  let entries = 0
  const wrong: string[] = []
  await forEach(shown, 4, async (board) => {
    const { body } = await world.ask(`/api/game/${RECORDED_TITLE}/leaderboards/${board.leaderboardId}`)
    const own = boardRowsAt(SEED, board, network.instantShown()).map((row) => [
      String(row.rank),
      row.playerName,
      row.cells.at(-1)
    ])
    entries += own.length
    const found = body.entries.map((entry: Record<string, string>) => [entry.rank, entry.name, entry.rating])
    if (JSON.stringify(found) !== JSON.stringify(own)) wrong.push(board.name)
  })
  t.same(wrong, [], `${entries} entries`)
})
