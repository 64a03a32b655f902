import { deepEqual, deepStrictEqual, equal } from 'node:assert/strict'
import { runs } from '@gamenet/engines/testing'
import {
  AchievementCatalog,
  AchievementHolders,
  AchievementLeaderboard,
  achievementById,
  achievements,
  nameKey,
  RecentUnlocks,
  UserAchievements
} from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { NOW_MS, storeTitles } from './board-api.js'
import { openProfileApi, type ProfileApi } from './profile-api.js'
import { time } from './stored-tables.js'

const HIDDEN = achievements.filter(({ isHidden }) => isHidden === true)
const USERS = ['Ann', 'bob', 'Cleo', 'dan', 'Eve']

/** An event of the log; of several for one user and achievement the first one counts. */
type Unlock = { readonly username: string; readonly id: number; readonly points: number; readonly ms: number }

/** Fills the tables as the projections do, each row of a user's score after an older one that is not merged. */
async function store(api: ProfileApi, unlocks: readonly Unlock[]): Promise<Unlock[]> {
  const { insert, empty } = api.model
  await empty(['achievement_unlock', 'achievement_unlock_feed', 'achievement_score'])
  const ageOf = (position: number) => String(2n ** 64n - 1n - BigInt(position))
  await insert(
    'achievement_unlock',
    ['user_key', 'achievement_id', 'username', 'points', 'ts', 'age'],
    unlocks.map(({ username, id, points, ms }, n) => [nameKey(username), id, username, points, time(ms), ageOf(n)])
  )
  await insert(
    'achievement_unlock_feed',
    ['ts', 'user_key', 'achievement_id', 'age'],
    unlocks.map(({ username, id, ms }, n) => [time(ms), nameKey(username), id, ageOf(n)])
  )
  const counting = unlocks.filter(
    ({ username, id }, n) => unlocks.findIndex((each) => each.username === username && each.id === id) === n
  )
  const scores = USERS.flatMap((username) => {
    const own = counting.filter((each) => each.username === username)
    const score = own.reduce((sum, { points }) => sum + points, 0)
    return own.length === 0 ? [] : [[nameKey(username), username, score, own.length, 2]]
  })
  const columns = ['user_key', 'username', 'score', 'achievements', 'version']
  await insert('achievement_score', columns, scores)
  await insert(
    'achievement_score',
    columns,
    scores.map(([key, name]) => [key, name, 7, 1, 1])
  )
  await api.changed('achievement-unlock', 'achievement-unlock-feed', 'achievement-score')
  return counting
}

const unlock: fc.Arbitrary<Unlock> = fc.record({
  username: fc.constantFrom(...USERS),
  id: fc.constantFrom(...achievements.slice(0, 8), ...HIDDEN).map(({ id }) => id),
  points: fc.constantFrom(5, 10, 40),
  ms: fc.integer({ min: 0, max: 6 }).map((n) => NOW_MS - n * 1000)
})

/** Compares the holders of each achievement, page by page, with loops over the unlocks. */
async function compareHolders({ get }: ProfileApi, counting: readonly Unlock[]): Promise<void> {
  for (const { id } of new Map(counting.map((each) => [each.id, each])).values()) {
    const key = HIDDEN.some((each) => each.id === id) ? `hidden-${id}` : achievementById.get(id)?.key
    const shown: unknown[] = []
    let url: string | undefined = `/api/achievements/${key}/holders?limit=2`
    while (url !== undefined) {
      const answer = await get(url)
      const { holders, total } = AchievementHolders.parse(answer.json())
      shown.push(...holders.map(({ username, unlockedAt }) => [username, Date.parse(unlockedAt)]))
      deepStrictEqual(total, counting.filter((each) => each.id === id).length)
      url = /^<(.+)>; rel="next"$/.exec(String(answer.headers.link ?? ''))?.[1]
    }
    const own = counting.filter((each) => each.id === id)
    own.sort((a, b) => newestFirst(a, b) || (nameKey(a.username) < nameKey(b.username) ? -1 : 1))
    deepStrictEqual(
      shown,
      own.map(({ username, ms }) => [username, ms])
    )
  }
}

const newestFirst = (a: Unlock, b: Unlock) => b.ms - a.ms

test('answers about achievements equal plain loops over the unlocks', async (t) => {
  const api = await openProfileApi(t)
  await storeTitles(api.model, { '4d530064': 'Halo 2' })
  for (const username of USERS) await api.storeProfile({ username })
  await api.changed('title', 'profile')
  const property = fc.asyncProperty(fc.array(unlock, { maxLength: 25, size: 'max' }), async (unlocks) => {
    const counting = await store(api, unlocks)
    const recent = RecentUnlocks.parse((await api.get('/api/achievements/recent?limit=7')).json())
    const newest = counting.toReversed().sort(newestFirst).slice(0, 7)
    deepEqual(
      recent.recent.map((each) => [each.username, each.achievementId, each.points, Date.parse(each.unlockedAt)]),
      newest.map(({ username, id, points, ms }) => [username, id, points, ms])
    )
    const catalog = AchievementCatalog.parse((await api.get('/api/achievements')).json())
    for (const { id, unlock_count } of catalog.achievements) {
      equal(unlock_count, counting.filter((each) => each.id === id).length)
    }
    deepEqual(catalog.stats, {
      maxGamerscore: achievements.reduce((sum, { points }) => sum + points, 0),
      totalAchievements: achievements.length,
      playersWithAchievements: new Set(counting.map(({ username }) => username)).size
    })
    const scores = USERS.map((username) => {
      const own = counting.filter((each) => each.username === username)
      return { username, totalScore: own.reduce((sum, { points }) => sum + points, 0), achievementCount: own.length }
    }).filter(({ achievementCount }) => achievementCount > 0)
    const rows = scores
      .map((row) => ({ rank: 1 + scores.filter(({ totalScore }) => totalScore > row.totalScore).length, ...row }))
      .sort((a, b) => a.rank - b.rank || (nameKey(a.username) < nameKey(b.username) ? -1 : 1))
    const { leaderboard } = AchievementLeaderboard.parse((await api.get('/api/achievements/leaderboard')).json())
    deepEqual(leaderboard, rows)
    await compareHolders(api, counting)
    for (const { username } of scores) await compareUser(username, counting)
  })
  const compareUser = async (username: string, counting: readonly Unlock[]) => {
    const answer = UserAchievements.parse((await api.get(`/api/profile/${username}/achievements`)).json())
    const own = counting.filter((each) => each.username === username)
    t.equal(
      answer.score,
      own.reduce((sum, { points }) => sum + points, 0)
    )
    t.same(
      answer.achievements.map(({ id, unlocked_at, revealed_name }) => [id, Date.parse(unlocked_at), revealed_name]),
      own
        .toSorted((a, b) => newestFirst(a, b) || a.id - b.id)
        .map(({ id, ms }) => [id, ms, HIDDEN.find((each) => each.id === id)?.name])
    )
    t.equal(answer.groups.flatMap((group) => group.achievements).length, achievements.length)
    for (const group of answer.groups) {
      const earned = group.achievements.filter(({ earned }) => earned)
      t.equal(group.unlockedCount, earned.length)
      t.same(
        earned.map(({ id }) => own.some((each) => each.id === id)),
        earned.map(() => true)
      )
    }
  }
  await fc.assert(property, runs(3))
})

test('only the achievements of its owner reveal a hidden achievement', async (t) => {
  const api = await openProfileApi(t)
  for (const username of USERS) await api.storeProfile({ username })
  await api.changed('profile')
  const [first, ...others] = HIDDEN
  if (first === undefined) throw new Error('nothing is hidden')
  const at = { points: 20, ms: NOW_MS - 1000 }
  await store(api, [
    { username: 'Ann', id: first.id, ...at },
    ...others.map(({ id }) => ({ username: 'bob', id, ...at })),
    { username: 'Ann', id: 1, ...at }
  ])
  const answers = new Map<string, string>()
  const ask = async (url: string) => {
    const { body, headers } = await api.get(url)
    answers.set(url, `${JSON.stringify(headers)}\n${body}`)
  }
  const names = HIDDEN.flatMap(({ key, name }) => [key, name]).map(encodeURIComponent)
  for (const url of [
    '/openapi.json',
    '/api/achievements',
    '/api/achievements/recent?limit=100',
    '/api/achievements/recent?limit=0',
    '/api/achievements/leaderboard',
    ...USERS.flatMap((name) => [
      `/api/profile/${name}`,
      `/api/profile/${name}/achievements`,
      `/api/profile/${name}/timeline`,
      `/api/profile/${name}/games-played`
    ]),
    `/api/profile/nobody/achievements`
  ]) {
    await ask(url)
  }
  for (const [url, text] of answers) {
    for (const { id, key, name, description } of HIDDEN) {
      const isOwn =
        (url === '/api/profile/Ann/achievements' && id === first.id) ||
        (url === '/api/profile/bob/achievements' && id !== first.id)
      t.equal(text.includes(JSON.stringify(name)), isOwn, `${url} and the name of ${id}`)
      t.equal(text.includes(description), isOwn, `${url} and the description of ${id}`)
      t.notOk(text.includes(JSON.stringify(key)), `${url} and the key of ${id}`)
    }
  }
  for (const name of names) {
    const { body } = await api.get(`/api/datasearch/suggest?q=${name}`)
    t.same(JSON.parse(body), { results: [], count: 0 }, 'no search finds one')
    t.equal((await api.get(`/api/achievements/${name}`)).statusCode, 404)
  }
  t.match((await api.get('/api/profile/nobody/achievements')).json(), { error: 'No user "nobody" is known.' })
})

test('another user who unlocks a hidden achievement changes no tag of a user’s own answers', async (t) => {
  const api = await openProfileApi(t)
  for (const username of USERS) await api.storeProfile({ username })
  await api.changed('profile')
  const tagOf = async (name: string) => (await api.get(`/api/profile/${name}/achievements`)).headers.etag
  const before = await Promise.all(['Ann', 'bob'].map(tagOf))
  const hidden = achievementById.get(HIDDEN[0]?.id ?? 0)
  await api.storeUnlocks('ann', [{ id: hidden?.id ?? 0, points: 20, ms: NOW_MS }])
  await api.changed('achievement-unlock:ann', 'achievement-unlock-feed:ann', 'achievement-score:ann')
  const after = await Promise.all(['Ann', 'bob'].map(tagOf))
  t.not(after[0], before[0])
  t.equal(after[1], before[1])
})

test('limits outside their range are refused with the allowed values', async (t) => {
  const api = await openProfileApi(t)
  for (const [url, most] of [
    ['/api/achievements/leaderboard', 100],
    ['/api/achievements/recent', 100]
  ] as const) {
    for (const limit of ['0', '101', '1e1']) {
      const { statusCode, body } = await api.get(`${url}?limit=${limit}`)
      t.same(
        [statusCode, JSON.parse(body)],
        [400, { error: `limit must be an integer from 1 to ${most}; got "${limit}".` }]
      )
    }
  }
})

test('a hidden achievement is found by its shown key only, and does not show its name', async (t) => {
  const api = await openProfileApi(t)
  for (const { id, key, name } of HIDDEN) {
    t.equal((await api.get(`/api/achievements/${key}/holders`)).headers['x-error-code'], 'achievement_unknown')
    const { body } = await api.get(`/api/achievements/hidden-${id}/holders`)
    t.same(JSON.parse(body).holders, [])
    t.notOk(body.includes(name))
  }
})
