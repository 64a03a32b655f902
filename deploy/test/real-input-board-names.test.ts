import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { boardRowsAt, type GivenBoard } from '../src/demo-network/boards.js'
import { readCatalogue } from '../src/demo-network/samples.js'
import { startDemoNetwork } from '../src/demo-network/server.js'
import { createWorld } from '../src/demo-network/world.js'
import { openBoardWorld } from './boards-model-world.js'
import { forEach } from './service/ask.js'
import { sharedFile } from './service/recorded.js'

const SEED = 23
const TITLE = '4d53004b'
const NOON = Date.UTC(2026, 2, 14, 12)

test('the boards of one title with hundreds of them, as recorded, are scraped whole', async (t) => {
  const path = await sharedFile('leaderboard-names-4d53004b.json')
  if (path === undefined) t.comment('NO ../shared/data, so names of the same number and shape are made up')
  const boards: GivenBoard[] =
    path === undefined
      ? Array.from({ length: 494 }, (_, n) => ({ leaderboardId: n + 1, name: `Arcade <${n % 90}> & "Track" – ${n}` }))
      : JSON.parse(await readFile(path, 'utf8'))
  const catalogue = readCatalogue().filter(({ titleId }) => titleId === TITLE)
  const demo = createWorld(SEED, { catalogue, boards: { [TITLE]: boards } })
  const network = await startDemoNetwork({ seed: SEED, world: demo, speed: 1, now: () => NOON })
  t.teardown(() => network.close())
  const world = await openBoardWorld(t, { clock: { ms: NOON }, upstreamUrl: network.url })
  const { ingest } = world.ingest()
  await ingest.runNow('network')
  const ran = await ingest.runNow('boards')
  t.same([...new Set(ran.map(({ outcome }) => outcome))], ['succeeded'])
  await world.settled()

  const { body: listed } = await world.ask(`/api/game/${TITLE}/leaderboards`)
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
    const { body } = await world.ask(`/api/game/${TITLE}/leaderboards/${board.leaderboardId}`)
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
