import fc from 'fast-check'
import { test } from 'tap'
import { boardRowsAt, RAW_TIME_TOP } from '../demo/network/boards.js'
import { gamertagOf, PLAYER_COUNT } from '../demo/network/players.js'
import { createWorld } from '../demo/network/world.js'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const NOON = Date.UTC(2026, 10, 21, 12)

const world = createWorld(7)
const instants = fc.integer({ min: Date.UTC(2026, 0, 1), max: Date.UTC(2036, 0, 1) })

test('the same seed shows the same network at the same instant, another seed a different one', async (t) => {
  const again = createWorld(7)
  const other = createWorld(8)
  for (const ms of [NOON, NOON + 1, NOON - 400 * DAY_MS]) {
    t.same(again.networkAt(ms), world.networkAt(ms))
    t.same(again.sightingsAt(ms), world.sightingsAt(ms))
    t.notSame(onlineOf(other, ms), onlineOf(world, ms))
  }
  t.throws(() => createWorld(0.5), /expected a whole number/)
})

test('an instant requested between others does not change their pages', async (t) => {
  const before = JSON.stringify(world.networkAt(NOON))
  world.networkAt(NOON + DAY_MS)
  world.matchesAt(titleAt(3), NOON - DAY_MS)
  t.equal(JSON.stringify(world.networkAt(NOON)), before)
})

test('the network has 200 titles with distinct ids and codes, some with shared and unusual names', async (t) => {
  const names = world.titles.map((title) => title.name)
  t.equal(world.titles.length, 200)
  t.equal(new Set(world.titles.map((title) => title.titleId)).size, 200)
  t.equal(new Set(world.titles.map((title) => title.productCode)).size, 200)
  t.ok(names.length - new Set(names).size >= 12, 'a dozen names are borne by two titles')
  for (const character of ['/', '#', '&', "'", ':', '+']) {
    t.ok(
      names.some((name) => name.includes(character)),
      `a name has ${character}`
    )
  }
  t.equal(world.titles.find((title) => title.titleId === '4d53004b')?.productCode, 'MS-075')
})

test('at every instant the counts are integers, consistent and add up', async (t) => {
  fc.assert(
    fc.property(instants, (ms) => {
      const state = world.networkAt(ms)
      let online = 0
      let lobbies = 0
      for (const title of state.titles) {
        for (const count of [title.online, title.lobbies, title.lobbyPlayers]) {
          if (!Number.isInteger(count) || count < 0) return false
        }
        if (title.lobbyPlayers > title.online || title.lobbies > title.lobbyPlayers) return false
        if ((title.lobbies === 0) !== (title.lobbyPlayers === 0)) return false
        if (title.lobbyPlayers > title.lobbies * title.title.matchSize) return false
        online += title.online
        lobbies += title.lobbies
      }
      const inMenus = state.online - online
      return state.lobbies === lobbies && inMenus > 0.02 * state.online && inMenus < 0.12 * state.online
    }),
    { numRuns: 300 }
  )
  t.pass('300 instants')
})

test('the rhythm of a day and of a week is visible', async (t) => {
  const meanOf = (hourly: (ms: number) => boolean) => {
    let sum = 0
    let count = 0
    for (let ms = NOON - 56 * DAY_MS; ms < NOON; ms += HOUR_MS) {
      if (!hourly(ms)) continue
      sum += world.networkAt(ms).online
      count += 1
    }
    return sum / count
  }
  const evening = meanOf((ms) => new Date(ms).getUTCHours() === 20)
  const morning = meanOf((ms) => new Date(ms).getUTCHours() === 8)
  t.ok(evening > 1.7 * morning, `evening ${evening}, morning ${morning}`)
  const sunday = meanOf((ms) => new Date(ms).getUTCDay() === 0)
  const wednesday = meanOf((ms) => new Date(ms).getUTCDay() === 3)
  t.ok(sunday > 1.2 * wednesday, `Sunday ${sunday}, Wednesday ${wednesday}`)
})

test('counts change from minute to minute, and never jump', async (t) => {
  const online = Array.from({ length: 2 * 24 * 60 }, (_, minute) => world.networkAt(NOON + minute * MINUTE_MS).online)
  const steps = online.slice(1).map((count, minute) => Math.abs(count - (online[minute] ?? 0)) / count)
  t.ok(Math.max(...steps) < 0.02, `the largest step is ${Math.max(...steps)}`)
  t.ok(steps.filter((step) => step > 0).length > 0.9 * steps.length, 'almost every minute differs from the one before')
})

test('registered users only grow', async (t) => {
  fc.assert(
    fc.property(instants, fc.integer({ min: 0, max: 30 * DAY_MS }), (ms, later) => {
      return world.networkAt(ms + later).registered >= world.networkAt(ms).registered
    })
  )
  t.ok(world.networkAt(NOON + DAY_MS).registered > world.networkAt(NOON).registered)
})

test('the first titles have thousands of players, and the last ones are mostly empty', async (t) => {
  const evenings = Array.from({ length: 60 }, (_, day) => world.networkAt(NOON - day * DAY_MS).titles)
  const meanOf = (index: number) => evenings.reduce((sum, titles) => sum + (titles[index]?.online ?? 0), 0) / 60
  t.ok(meanOf(0) > 2000)
  t.ok(meanOf(0) > 5 * meanOf(10))
  t.ok(meanOf(10) > 5 * meanOf(60))
  const emptyAtEnd = evenings.flatMap((titles) => titles.slice(150)).filter((title) => title.online === 0)
  t.ok(emptyAtEnd.length > 0.8 * 50 * 60)
  t.ok(emptyAtEnd.length < 50 * 60, 'they have players at times')
})

test('the matches of a title agree with its counts', async (t) => {
  fc.assert(
    fc.property(instants, fc.integer({ min: 0, max: 199 }), (ms, index) => {
      const matches = world.matchesAt(titleAt(index), ms)
      const state = world.networkAt(ms).titles[index]
      const players = matches.reduce((sum, match) => sum + match.currentPlayers, 0)
      const areSized = matches.every((match) => match.currentPlayers >= 1 && match.currentPlayers <= match.maxPlayers)
      return areSized && matches.length === state?.lobbies && players === state.lobbyPlayers
    }),
    { numRuns: 200 }
  )
  t.pass('200 lists')
})

test('after a minute most hosts are still present, after an hour most are not', async (t) => {
  const hostsAt = (ms: number) => new Set(world.matchesAt(titleAt(3), ms).map((match) => match.hostName))
  const now = hostsAt(NOON)
  const shareAfter = (ms: number) => [...hostsAt(NOON + ms)].filter((host) => now.has(host)).length / now.size
  t.ok(shareAfter(MINUTE_MS) > 0.8)
  t.ok(shareAfter(HOUR_MS) < 0.3)
})

test('gamertags are unique', async (t) => {
  t.equal(new Set(Array.from({ length: PLAYER_COUNT }, (_, player) => gamertagOf(7, player))).size, PLAYER_COUNT)
})

test('there are thousands of boards of every form, only in titles with leaderboards', async (t) => {
  const boards = world.titles.flatMap((title) => world.boardsOf(title))
  t.ok(boards.length >= 2000, `${boards.length} boards`)
  t.same([...new Set(boards.map((board) => board.form))].sort(), ['career', 'lap', 'raw-time', 'score', 'time'])
  t.notOk(boards.some((board) => !board.title.features[2]))
})

test('boards have unusual names: other scripts, marks, only capitals, and duplicates', (t) => {
  const rows = world.titles.flatMap((title) => world.boardsOf(title)).map((board) => boardRowsAt(7, board, NOON))
  const names = rows.flat().map(({ playerName }) => playerName)
  for (const mark of [/[<&"']/, /[\u0590-\u06ff]/, /\u0301/, /^.{150,}$/]) {
    t.ok(
      names.some((name) => mark.test(name)),
      String(mark)
    )
  }
  const isDoubled = (key: (name: string) => string) => (board: (typeof rows)[number]) =>
    new Set(board.map(({ playerName }) => key(playerName))).size < board.length
  t.ok(rows.filter(isDoubled((name) => name.toLowerCase())).length > 100, 'names that differ by case alone')
  const twice = rows.filter(isDoubled((name) => name)).length
  t.ok(twice > 10 && twice < rows.length / 5, `${twice} of ${rows.length} boards have a name twice`)
  t.end()
})

test('a board is ranked by its results, and equal ones share a rank', async (t) => {
  const boards = world.titles.flatMap((title) => world.boardsOf(title))
  let ties = 0
  fc.assert(
    fc.property(fc.constantFrom(...boards), instants, (board, ms) => {
      const rows = boardRowsAt(world.seed, board, ms)
      const results = rows.map((row) => Number((row.cells.at(-1) ?? '').replace(/[:.]/g, '')))
      const isLessBetter = board.form === 'time' || board.form === 'lap'
      return rows.every((row, index) => {
        const [result = 0, before = 0] = [results[index], results[index - 1]]
        const isTie = index > 0 && result === before
        if (isTie) ties += 1
        if (row.rank !== (isTie ? rows[index - 1]?.rank : index + 1)) return false
        if (board.form === 'raw-time' && (result > RAW_TIME_TOP || result < RAW_TIME_TOP - 3_600_000)) return false
        return index === 0 || isTie || (isLessBetter ? result > before : result < before)
      })
    }),
    { numRuns: 300 }
  )
  t.ok(ties > 0, 'ties were among them')
})

test('within three days entries come, leave and improve, and no player gets worse within one cycle', async (t) => {
  const board = world.titles.flatMap((title) => world.boardsOf(title)).filter((board) => board.form === 'lap')
  let came = 0
  let went = 0
  let improved = 0
  for (const one of board.slice(0, 200)) {
    const before = timesAt(one, NOON)
    const after = timesAt(one, NOON + 3 * DAY_MS)
    for (const [player, time] of after) {
      const former = before.get(player)
      if (former === undefined) came += 1
      else if (time < former) improved += 1
      else if (time > former) t.fail(`${player} fell from ${former} to ${time}`)
    }
    for (const player of before.keys()) if (!after.has(player)) went += 1
  }
  t.ok(came > 10 && went > 10 && improved > 10, `${came} came, ${went} went, ${improved} improved`)
})

test('users come online and go offline, and the durations grow with the clock', async (t) => {
  const now = world.sightingsAt(NOON)
  const later = world.sightingsAt(NOON + MINUTE_MS)
  const isSame = now.filter(
    ({ playing }, user) => playing !== undefined && later[user]?.playing?.sinceMs === playing.sinceMs
  )
  t.ok(isSame.length > 10, `${isSame.length} users go on playing`)
  t.ok(now.every(({ playing, lastSeenMs }) => (playing?.sinceMs ?? 0) <= NOON && lastSeenMs <= NOON))
  const tomorrow = world.sightingsAt(NOON + DAY_MS)
  const isMoved = now.filter(({ playing }, user) => (playing === undefined) !== (tomorrow[user]?.playing === undefined))
  t.ok(isMoved.length > 10, `${isMoved.length} users came or went within a day`)
})

function titleAt(index: number) {
  const title = world.titles[index]
  if (title === undefined) throw new Error(`the world has no title ${index}`)
  return title
}

function onlineOf(of: typeof world, ms: number) {
  return of.networkAt(ms).titles.map((title) => title.online)
}

/** Returns the last cell of every entry with a unique name. */
function timesAt(board: Parameters<typeof boardRowsAt>[1], ms: number): Map<string, string> {
  const rows = boardRowsAt(7, board, ms)
  const names = rows.map(({ playerName }) => playerName)
  const alone = rows.filter(({ playerName }) => names.indexOf(playerName) === names.lastIndexOf(playerName))
  return new Map(alone.map((row) => [row.playerName, row.cells.at(-1) ?? '']))
}
