import { type Test, test } from 'tap'
import { type Life, openScrapedWorld, type ScrapedWorld } from './service/scraped-world.js'

const START_MS = Date.UTC(2026, 2, 14, 20)

/** Returns the sightings published since the last call: user, state and game, in log order. */
function newSightings({ tables, projector }: ScrapedWorld) {
  let before = 0
  return async () => {
    await projector.caughtUp()
    const rows = await tables.control.rows(
      `SELECT e.username AS username, e.gamertag AS gamertag, e.is_online AS online, e.game AS game,
         e.period_s AS period, toString(e.observed_at) AS at
       FROM event_presence AS e WHERE e.offset >= {before: UInt64} ORDER BY e.offset`,
      { before }
    )
    before += rows.length
    return rows
  }
}

async function given(t: Test) {
  const failing = { table: '' }
  const projecting: Life = {
    async call(what, work) {
      if (failing.table !== '' && what.startsWith(`INSERT INTO ${failing.table}__`))
        throw new Error('it cannot be stored')
      return await work()
    }
  }
  const world = await openScrapedWorld(t, { projecting })
  const clock = { ms: START_MS }
  const process = (playersSeconds = 0) => world.ingest({ playersSeconds, now: () => clock.ms }).ingest
  return { ...world, failing, clock, process, ingest: process(), sightings: newSightings(world) }
}

type Given = Awaited<ReturnType<typeof given>>

test('players are scraped', async (t) => {
  // One world for all tests, with different users in each: opening its engines takes longer than the tests.
  const world = await given(t)
  await t.test('online users are sighted in every run, offline users once', (t) => provesSightings(t, world))
  await t.test('a row that cannot be read is not a sighting; a page that cannot be is a failed run', (t) =>
    provesUnreadable(t, world)
  )
  await t.test('while the tables lag, a user who went offline is published once, by the last page', (t) =>
    provesBehind(t, world)
  )
})

const ann = { gamertag: 'Ann One', username: 'ann' }
const bob = { gamertag: 'Bob', username: 'Bob <3' }
// The page shows no gamertag of this user.
const eve = { gamertag: '', username: 'eve' }
const dan = { gamertag: 'Dan', username: 'dan' }
const fay = { gamertag: 'Fay', username: 'fay' }
const gus = { gamertag: 'Gus', username: 'gus' }
const seen = (player: typeof ann, game: string | undefined, at: string, period = 60) => ({
  ...player,
  online: game !== undefined,
  game: game ?? '',
  period,
  at: `2026-03-14 20:${at}.000`
})

async function provesSightings(t: Test, { upstream, clock, process, ingest, sightings }: Given) {
  upstream.showPlayers([{ ...ann, game: 'Need for Speed' }, bob, eve])
  t.match(await ingest.runNow('players'), [{ source: 'players', outcome: 'succeeded', published: 3 }])
  t.same(await sightings(), [
    seen(ann, 'Need for Speed', '00:00'),
    seen(bob, undefined, '00:00'),
    seen(eve, undefined, '00:00')
  ])

  await t.test('although the page is unchanged', async (t) => {
    clock.ms += 60_000
    t.match(await ingest.runNow('players'), [{ outcome: 'succeeded', published: 1 }])
    t.equal(upstream.unchanged(), 1)
    t.same(await sightings(), [seen(ann, 'Need for Speed', '01:00')])
  })

  await t.test('also by another process, which publishes its own period', async (t) => {
    clock.ms += 60_000
    upstream.showPlayers([ann, { ...bob, game: 'Halo' }, eve])
    t.match(await process(3600).runNow('players'), [{ outcome: 'succeeded', published: 2 }])
    t.same(await sightings(), [seen(ann, undefined, '02:00', 3600), seen(bob, 'Halo', '02:00', 3600)])
    clock.ms += 60_000
    await ingest.runNow('players')
    t.same(await sightings(), [seen(bob, 'Halo', '03:00')])
  })

  await t.test('and a user who is missing from the page is not sighted', async (t) => {
    clock.ms += 60_000
    upstream.showPlayers([ann])
    t.match(await ingest.runNow('players'), [{ outcome: 'succeeded', published: 0 }])
    t.same(await sightings(), [])
  })
}

async function provesUnreadable(t: Test, { upstream, ingest, sightings }: Given) {
  upstream.showPlayers([{ ...dan, game: 'Halo' }, { ...eve, username: '\u200b' }, bob, { ...bob, game: 'Halo' }])
  t.match(await ingest.runNow('players'), [
    { outcome: 'partial', published: 1, reason: /^row 2: expected a username .*; one user is on the rows 3, 4$/ }
  ])
  t.same((await sightings()).length, 1)
  upstream.showPlayers('<html><body>Maintenance</body></html>')
  t.match(await ingest.runNow('players'), [
    { outcome: 'failed', published: 0, reason: /\/players: the table of players is missing/ }
  ])
  t.same(await sightings(), [])
}

async function provesBehind(t: Test, { upstream, clock, failing, ingest, sightings }: Given) {
  clock.ms = START_MS + 30 * 60_000
  upstream.showPlayers([{ ...fay, game: 'Halo' }, gus])
  await ingest.runNow('players')
  await sightings()
  failing.table = 'presence_latest'
  const published: unknown[] = []
  for (const game of [undefined, undefined, 'Halo']) {
    clock.ms += 60_000
    upstream.showPlayers([{ ...fay, ...(game !== undefined && { game }) }, gus])
    published.push((await ingest.runNow('players'))[0]?.published)
  }
  t.same(published, [1, 0, 1])
  failing.table = ''
  t.same(await sightings(), [seen(fay, undefined, '31:00'), seen(fay, 'Halo', '33:00')])
}
