import { deepStrictEqual } from 'node:assert'
import { runs } from '@gamenet/engines/testing'
import {
  achievementById,
  achievements,
  DailyPlayTime,
  nameKey,
  ProfileSummary,
  UserGames,
  UserScores
} from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { NOW_MS, storeTitles } from './board-api.js'
import { openProfileApi, type ProfileApi } from './profile-api.js'
import {
  allEntries,
  boardNameOf,
  compareKeys,
  describeBoards,
  type Placed,
  storeWorld,
  type World,
  worlds
} from './search-model.js'

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
const MINUTE = Math.floor(NOW_MS / MINUTE_MS) * MINUTE_MS
const WEEK_MS = 7 * DAY_MS
const PROJECTIONS = [
  'profile',
  'presence',
  'presence-latest',
  'presence-day',
  'achievement-unlock',
  'scrape',
  'player-entry',
  'leaderboard-entry',
  'player',
  'leaderboard',
  'title'
]
/** Names of games in presence, and their shown names; `race` is a title’s name in another spelling. */
const GAMES: Readonly<Record<string, readonly [name: string, titleId: string | null]>> = {
  Race: ['Race', '4d530001'],
  race: ['Race', '4d530001'],
  'Odd / #1': ['Odd / #1', null]
}
const TITLE_NAMES: Readonly<Record<string, string>> = { '4d530001': 'Race', '4d530002': '4d530002' }

const aGame = fc.constantFrom(...Object.keys(GAMES))
const ago = fc.constantFrom(0, 1, 30_000, 3 * MINUTE_MS - 30_000, 3 * MINUTE_MS + 1, DAY_MS, 400 * DAY_MS)

const presences = fc.record({
  username: fc.constantFrom('ANN', 'Ann'),
  isOnline: fc.boolean(),
  ago,
  period: fc.constantFrom(60, 600),
  online: fc.option(fc.oneof(aGame, fc.constant('')), { nil: undefined }),
  game: fc.option(aGame, { nil: undefined }),
  gamertag: fc.option(fc.constantFrom('ｂｏｂ', 'Nobody At All'), { nil: undefined })
})
const profiles = fc.record({
  username: fc.constantFrom('Ann', 'aNn'),
  linkedGamertag: fc.constantFrom('', 'BOB', 'ΟΔΟΣ'),
  sessionGamertag: fc.constantFrom('', 'Bob', 'someone'),
  bio: fc.constantFrom('', '<b>"hi"</b> 🎮'),
  socialLinks: fc.constantFrom([], [{ platform: 'Video', url: 'https://v.example.org/a', label: 'me' }])
})
const daysOf = fc.uniqueArray(
  fc.record({
    daysAgo: fc.constantFrom(0, 1, 2, 29, 30, 364, 365),
    sightings: fc.constantFrom(0, 1, 5),
    onlineSightings: fc.constantFrom(0, 1),
    seconds: fc.dictionary(aGame, fc.constantFrom(1, 59, 60, 3601, 86_400), { noNullPrototype: true })
  }),
  { selector: ({ daysAgo }) => daysAgo, maxLength: 5 }
)
const unlocks = fc.uniqueArray(
  fc.record({
    id: fc.constantFrom(1, 17, 41, 50, 51, 60_000),
    points: fc.constantFrom(5, 100),
    ago: fc.constantFrom(0, DAY_MS, WEEK_MS - 1, WEEK_MS, WEEK_MS + 1)
  }),
  { selector: ({ id }) => id, maxLength: 4 }
)
const scrapes = fc.uniqueArray(
  fc.record({
    source: fc.constantFrom('players', 'network'),
    outcome: fc.constantFrom('succeeded', 'partial', 'failed'),
    ago: fc.constantFrom(1, MINUTE_MS, DAY_MS)
  }),
  { selector: ({ source, ago }) => `${source} ${ago}`, maxLength: 3 }
)
const users = fc.record({
  profile: fc.option(profiles, { nil: undefined }),
  presence: fc.option(presences, { nil: undefined }),
  days: daysOf,
  sightings: fc.array(fc.record({ ago, isOnline: fc.boolean(), game: fc.oneof(aGame, fc.constant('')) }), {
    maxLength: 6
  }),
  unlocks,
  scrapes
})
type User = typeof users extends fc.Arbitrary<infer Drawn> ? Drawn : never

async function store(api: ProfileApi, user: User, world: World): Promise<void> {
  await storeWorld(api.model, world)
  await api.clearPeople()
  await api.postgres.query('DELETE FROM profile')
  if (user.profile !== undefined) await api.storeProfile(user.profile)
  // A user who is in no answer.
  await api.storeProfile({ username: 'anna', linkedGamertag: 'ann', bio: 'else' })
  await api.storeDays('anna', [{ date: dateOf(NOW_MS), sightings: 1, onlineSightings: 1, seconds: { Race: 6000 } }])
  await api.storeUnlocks('anna', [{ id: 2, points: 10, ms: NOW_MS }])
  const { presence } = user
  if (presence !== undefined) {
    const { username, isOnline, online, game, gamertag, period } = presence
    const ms = NOW_MS - presence.ago
    await api.storePresence('ann', [
      { field: 'username', value: username, ms },
      { field: 'seen', value: isOnline ? 'online' : 'offline', ms },
      ...(online === undefined ? [] : [{ field: 'online', value: online, ms: isOnline ? ms : ms - 5 }]),
      ...(online === undefined ? [] : [{ field: 'period', value: String(period), ms: isOnline ? ms : ms - 5 }]),
      ...(game === undefined ? [] : [{ field: 'game', value: game, ms: ms - 10 }]),
      ...(gamertag === undefined ? [] : [{ field: 'gamertag', value: gamertag, ms }])
    ])
    await api.storeSightings(
      'ann',
      user.sightings.map((sighting) => ({ ...sighting, ms: NOW_MS - sighting.ago }))
    )
    await api.storeDays(
      'ann',
      user.days.map((day) => ({ ...day, date: dateOf(NOW_MS - day.daysAgo * DAY_MS) }))
    )
  }
  await api.storeUnlocks(
    'ann',
    user.unlocks.map((unlock) => ({ ...unlock, ms: MINUTE - unlock.ago }))
  )
  await api.storeScrapes(user.scrapes.map((scrape) => ({ ...scrape, ms: NOW_MS - scrape.ago })))
  await api.changed(...PROJECTIONS)
}

async function openProfiles(t: Parameters<typeof openProfileApi>[0]): Promise<ProfileApi> {
  const api = await openProfileApi(t)
  await storeTitles(api.model, { '4d530001': 'Race' })
  await describeBoards(api.model)
  return api
}

test('profile, games, scores and play time equal plain loops over the events', async (t) => {
  const api = await openProfiles(t)
  await fc.assert(
    fc.asyncProperty(
      users,
      worlds,
      fc.constantFrom('ann', 'ANN', 'Ａnn'),
      fc.constantFrom(1, 2, 30, 365),
      fc.constantFrom(1, 3, 50),
      async (user, world, requestedAs, days, limit) => {
        await store(api, user, world)
        const path = `/api/profile/${encodeURIComponent(requestedAs)}`
        const urls = [
          path,
          `${path}/games-played`,
          `${path}/leaderboard-scores?limit=${limit}`,
          `${path}/play-time?days=${days}`
        ]
        const answers = await Promise.all(urls.map((url) => api.get(url)))
        if (user.profile === undefined && user.presence === undefined) {
          for (const answer of answers) {
            deepStrictEqual([answer.statusCode, answer.json()], [404, { error: `No user "${requestedAs}" is known.` }])
          }
          return
        }
        const [profile, games, scores, playTime] = answers.map((answer) => answer.json())
        const plain = plainUser(user, world)
        deepStrictEqual(ProfileSummary.parse(profile), plain.profile)
        deepStrictEqual(UserGames.parse(games), plain.games)
        deepStrictEqual(stripPlaces(UserScores.parse(scores)), {
          ...plain.scores,
          scores: plain.scores.scores.slice(0, limit)
        })
        deepStrictEqual(DailyPlayTime.parse(playTime), plainDays(user, days))
      }
    ),
    runs(4)
  )
  t.pass()
})

test('the entries of a user have the gap to the next, and what changed in 30 days', async (t) => {
  const api = await openProfiles(t)
  await api.storeProfile({ username: 'ann', linkedGamertag: 'Ann', bio: '' })
  const entry = (board: number, name: string, rating: string, rank: number) => ({
    ...{ title_id: '4d530001', leaderboard_id: board, player_key: nameKey(name), player: name, occurrence: 1 },
    ...{ rank, place: rank, rating, ts: new Date(NOW_MS).toISOString().replace('Z', ''), version: 1 }
  })
  const entries = [
    entry(1, 'bob', '400', 1),
    entry(1, 'Ann', '300', 2),
    entry(2, 'Ann', '50', 1),
    entry(3, 'Ann', '7', 1)
  ]
  for (const table of ['leaderboard_entry', 'player_entry']) await api.model.insertRows(table, entries)
  const changed = (board: number, daysAgo: number, [before, after]: readonly (string | null)[]) => ({
    ...{ title_id: '4d530001', leaderboard_id: board, player: 'Ann', player_key: nameKey('Ann'), occurrence: 1 },
    ...{ ts: new Date(NOW_MS - daysAgo * DAY_MS).toISOString().replace('Z', ''), epoch: 1, offset: 100 - daysAgo },
    ...{ recorded_epoch: 1, recorded_offset: 100 - daysAgo, is_change: true, version: 1 },
    ...{ change: before === null ? 'new' : 'updated', previous_rating: before, new_rating: after }
  })
  await api.model.insertRows('leaderboard_change', [
    changed(1, 40, ['100', '120']),
    changed(1, 20, ['120', '250']),
    changed(1, 10, ['250', '300']),
    changed(2, 5, [null, '50'])
  ])
  await api.changed(...PROJECTIONS)
  const { scores } = UserScores.parse((await api.get('/api/profile/ann/leaderboard-scores')).json())
  t.same(
    scores.map(({ leaderboardId, next, change30d }) => [leaderboardId, next?.gap, change30d]),
    [
      [2, undefined, null],
      [3, undefined, 0],
      [1, 100, 180]
    ]
  )
})

/** Returns the expected answers, computed by loops. */
function plainUser(user: User, world: World) {
  const { presence, profile } = user
  const linked = profile?.linkedGamertag ?? ''
  const seenTag = presence?.gamertag
  const username = profile?.username ?? presence?.username ?? ''
  const playerName = linked !== '' ? linked : (seenTag ?? username)
  const entries = allEntries(world)
    .filter((entry) => nameKey(entry.playerName) === nameKey(playerName))
    .sort((a, b) => a.rank - b.rank || compareKeys(a, b))
  const boardsOf = (some: readonly Placed[]) => new Set(some.map((e) => `${e.titleId}/${e.leaderboardId}`)).size
  const days = presence === undefined ? [] : user.days
  return {
    profile: {
      username,
      profile: {
        avatar_url: '',
        chat_profile_url: '',
        display_name_override: null,
        linked_gamertag: linked,
        console_verified: linked === 'BOB' && profile?.sessionGamertag === 'Bob',
        bio: profile?.bio ?? '',
        social_links: profile?.socialLinks ?? []
      },
      playTime: {
        totalMinutes: Math.floor(total(days.flatMap((day) => Object.values(day.seconds))) / 60),
        ...plainPresence(user),
        daysSeen: days.filter((day) => day.onlineSightings > 0).length
      },
      achievementScore: total(user.unlocks.map(({ points }) => points)),
      achievementCount: user.unlocks.length,
      newUnlocks: plainUnlocks(user),
      leaderboardPlayerName: playerName,
      leaderboardStats: {
        leaderboardsOn: boardsOf(entries),
        top10Count: boardsOf(entries.filter(({ rank }) => rank <= 10))
      },
      usesExplicitConsoleGamertag: linked !== ''
    },
    games: plainGames(user, entries),
    scores: {
      playerName,
      explicitConsoleGamertag: linked === '' ? null : linked,
      usingSiteUsernameFallback: linked === '' && seenTag === undefined,
      scores: entries.map((entry) => ({
        leaderboardId: entry.leaderboardId,
        leaderboardName: boardNameOf(entry),
        titleId: entry.titleId,
        gameName: TITLE_NAMES[entry.titleId],
        playerName: entry.playerName,
        rank: entry.rank,
        rating: entry.rating,
        timeMs: entry.timeMs ?? 0,
        isTime: entry.timeMs !== null,
        observedAt: instant(NOW_MS)
      }))
    }
  }
}

function plainPresence({ presence, scrapes }: User) {
  const checked = scrapes.filter(({ source, outcome }) => source === 'players' && outcome === 'succeeded')
  const checks = [...checked.map(({ ago }) => NOW_MS - ago), ...(presence === undefined ? [] : [NOW_MS - presence.ago])]
  const lastCheckTs = checks.length === 0 ? null : instant(Math.max(...checks))
  const nothing = {
    lastState: 'offline',
    currentGame: null,
    lastPlayedGame: null,
    lastPlayedAt: null,
    lastOnlineAt: null
  }
  if (presence === undefined) return { ...nothing, lastCheckTs }
  const ms = NOW_MS - presence.ago
  const reach = presence.online === undefined ? 0 : 3 * presence.period * 1000
  const isOnline = presence.isOnline && MINUTE - ms <= reach
  return {
    lastState: isOnline ? 'online' : 'offline',
    currentGame: isOnline && presence.online ? presence.online : null,
    lastPlayedGame: presence.game ?? null,
    lastPlayedAt: presence.game === undefined ? null : instant(ms - 10),
    lastOnlineAt: presence.online === undefined ? null : instant(presence.isOnline ? ms : ms - 5),
    lastCheckTs
  }
}

function plainUnlocks({ unlocks }: User) {
  return unlocks
    .filter((unlock) => unlock.ago <= WEEK_MS && achievementById.has(unlock.id))
    .sort((a, b) => a.ago - b.ago || a.id - b.id)
    .map((unlock) => {
      const achievement = achievements.find(({ id }) => id === unlock.id)
      const isHidden = achievement?.isHidden === true
      const game = achievement?.groupId === 'network' ? 'Network' : 'Star Wars: Battlefront II'
      return {
        unlockedAt: instant(MINUTE - unlock.ago),
        achievementId: unlock.id,
        achievementKey: isHidden ? `hidden-${unlock.id}` : achievement?.key,
        achievementName: isHidden ? 'Hidden Achievement' : `${achievement?.name} (${game})`,
        gameName: isHidden ? 'Network' : game,
        points: unlock.points
      }
    })
}

function plainGames({ presence, days, sightings }: User, entries: readonly Placed[]) {
  const games = new Map<string, { gameName: string; titleId: string | null; seconds: number; lastMs: number }>()
  const gameOf = (name: string) => {
    const [gameName, titleId] = GAMES[name] ?? [name, null]
    const game = games.get(gameName) ?? { gameName, titleId, seconds: 0, lastMs: 0 }
    games.set(gameName, game)
    return game
  }
  if (presence !== undefined) {
    const newest = new Map(sightings.map((sighting) => [sighting.ago, sighting]))
    for (const { ago, isOnline, game } of newest.values()) {
      if (!isOnline || game === '') continue
      const found = gameOf(game)
      found.lastMs = Math.max(found.lastMs, NOW_MS - ago)
    }
    for (const day of days) {
      for (const [game, seconds] of Object.entries(day.seconds)) gameOf(game).seconds += seconds
    }
  }
  const played = games.size
  for (const { titleId } of entries) {
    const gameName = TITLE_NAMES[titleId] ?? ''
    if (!games.has(gameName)) games.set(gameName, { gameName, titleId, seconds: 0, lastMs: NOW_MS })
  }
  return {
    games: [...games.values()]
      .sort((a, b) => b.lastMs - a.lastMs || b.seconds - a.seconds || (a.gameName < b.gameName ? -1 : 1))
      .map(({ gameName, titleId, seconds, lastMs }) => ({
        gameName,
        titleId,
        imageUrl: null,
        totalMinutes: Math.floor(seconds / 60),
        lastPlayedAt: lastMs
      })),
    leaderboardSupplement: games.size > played,
    hasPlayTimeTracking: presence !== undefined
  }
}

function plainDays({ presence, profile, days }: User, count: number) {
  const listed = (presence === undefined ? [] : days)
    .filter(({ daysAgo, sightings, seconds }) => daysAgo < count && (sightings > 0 || Object.keys(seconds).length > 0))
    .sort((a, b) => b.daysAgo - a.daysAgo)
  return {
    username: profile?.username ?? presence?.username,
    totalMinutes: Math.floor(total(listed.flatMap((day) => Object.values(day.seconds))) / 60),
    daysSeen: listed.filter(({ onlineSightings }) => onlineSightings > 0).length,
    days: listed.map(({ daysAgo, onlineSightings, seconds }) => {
      const byName = new Map<string, number>()
      for (const [game, each] of Object.entries(seconds)) {
        const name = GAMES[game]?.[0] ?? ''
        byName.set(name, (byName.get(name) ?? 0) + each)
      }
      return {
        date: dateOf(NOW_MS - daysAgo * DAY_MS),
        totalMinutes: Math.floor(total([...byName.values()]) / 60),
        isSeen: onlineSightings > 0,
        games: [...byName]
          .sort(([a, mine], [b, other]) => other - mine || (a < b ? -1 : 1))
          .map(([gameName, each]) => ({
            gameName,
            titleId: gameName === 'Race' ? '4d530001' : null,
            totalMinutes: Math.floor(each / 60),
            seconds: each
          }))
      }
    })
  }
}

/** Leaves out what another test shows: the places of entries in answers about players, and their changes. */
function stripPlaces({ scores, ...rest }: UserScores) {
  const plain = scores.map(
    ({ timeFormatted: _, entries: _entries, percentile: _share, next: _next, change30d: _change, ...score }) => score
  )
  return { ...rest, scores: plain }
}

function total(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0)
}

function dateOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

function instant(ms: number): string {
  return new Date(ms).toISOString()
}
