import { leaderboardTopic } from '@gamenet/schemas'
import { test } from 'tap'
import { openScrapedWorld } from './service/scraped-world.js'

const HALO = { titleId: '4d530064', name: 'Halo 2', subtitle: '', online: 1, lobbies: null, hasBoards: true }

test('what a list says anew is told once, though two processes read it at the same time', async (t) => {
  const world = await openScrapedWorld(t)
  const { upstream, writes } = world
  const showNamed = (name: string) => {
    const entries = [{ rank: 1, name: 'ann', score: '5' }]
    const boards = [0, 1].map((leaderboardId) => ({ leaderboardId, name: `${name} ${leaderboardId}`, entries }))
    upstream.showGame(HALO.titleId, { lobbies: [], boards })
  }
  upstream.show({ registered: 1, online: 1, titles: [HALO] })
  showNamed('old')
  const [first, second] = [world.ingest(), world.ingest()]
  await first.ingest.runNow('all')
  await writes.query(
    "UPDATE board_turn SET lease_holder = 'x', lease_until = now() + interval '1 hour' WHERE leaderboard_id = 0"
  )
  const asked = [resolvers(), resolvers()]
  const answer = resolvers()
  let requests = 0
  upstream.beforeAnswer = async () => {
    asked[requests]?.resolve()
    requests += 1
    await answer.promise
  }
  // Both know the old list before either of them reads the new one.
  const runs = [first.ingest.runNow('boards')]
  await asked[0]?.promise
  await writes.query('UPDATE board_turn SET lease_holder = NULL, lease_until = NULL WHERE leaderboard_id = 0')
  runs.push(second.ingest.runNow('boards'))
  await asked[1]?.promise
  showNamed('new')
  answer.resolve()
  await Promise.all(runs)
  await first.ingest.runNow('boards')
  const told = (await world.events(leaderboardTopic)).map(({ name }) => name)
  t.same(told.sort(), ['new 0', 'new 1', 'old 0', 'old 1'])
})

function resolvers() {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
