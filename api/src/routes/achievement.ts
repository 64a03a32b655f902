import {
  AchievementCatalog,
  AchievementHolders,
  achievementById,
  achievementGroups,
  achievements,
  Refusal,
  revealedOf,
  shownGroups,
  shownInstant,
  UserAchievements,
  type VeiledAchievement,
  veiled
} from '@gamenet/schemas'
import { z } from 'zod'
import type { AnswerContext, Dependency, Endpoint, EndpointResult } from '../answers/endpoint.js'
import { listIn } from '../answers/table.js'
import { achieverCount, holdersOf, unlockCounts } from '../queries/achievement.js'
import { unlocksOfUser } from '../queries/achievement-unlock.js'
import { rowsOf } from '../queries/query.js'
import { nextLink } from '../reply/next-link.js'
import { integer, shown, text } from '../request/parameters.js'
import { knownUser, readsUser, type UserRequest, usernameParameter, userRequest } from './known-user.js'

export const ACHIEVEMENT_TAGS = ['Achievements']

/** The pictures of groups are those of their titles. */
const READS_IMAGES: readonly Dependency[] = achievementGroups.flatMap(({ titleId }) =>
  titleId === null ? [] : { projection: 'title', key: titleId }
)

const HOLDERS_OFFSET_MAX = 10_000

/** `GET /api/achievements`: all achievements. */
export const achievementCatalog: Endpoint<unknown, Record<string, never>> = {
  operationId: 'getAchievements',
  path: '/api/achievements',
  tags: ACHIEVEMENT_TAGS,
  summary: 'All achievements',
  description:
    'Every achievement in the order of the catalogue, its group, and how many users have it. A hidden one shows only ' +
    'its number and points.',
  input: z.object({}),
  resolve: () => ({}),
  reads: () => [{ projection: 'achievement-unlock' }, { projection: 'achievement-score' }, ...READS_IMAGES],
  answer: async (_, context) => ({ body: await answerCatalog(context) }),
  table: listIn(AchievementCatalog, 'achievements'),
  response: AchievementCatalog
}

/** `GET /api/profile/:username/achievements`: the achievements of a user. */
export const userAchievements: Endpoint<{ username: string }, UserRequest> = {
  operationId: 'getUserAchievements',
  path: '/api/profile/:username/achievements',
  tags: ACHIEVEMENT_TAGS,
  summary: 'Achievements of a user',
  description:
    'What the user has unlocked, newest first, and all groups with what is still locked. Only here, a hidden ' +
    'achievement that this user has unlocked is revealed: `revealed_name`, `revealed_description`.',
  input: z.object({ username: usernameParameter }),
  resolve: ({ username }) => userRequest(username),
  reads: ({ userKey }) => [...readsUser(userKey), { projection: 'achievement-unlock', key: userKey }, ...READS_IMAGES],
  answer: async (request, context) => ({ body: await answerUser(request, context) }),
  table: listIn(UserAchievements, 'achievements'),
  response: UserAchievements,
  refuses: ['user_unknown']
}

type HoldersInput = { achievementKey: string; limit: number; offset: number }
type HoldersRequest = Pick<AchievementHolders, 'id' | 'key' | 'name' | 'points'> & { limit: number; offset: number }

/** `GET /api/achievements/:achievementKey/holders`: the users with an achievement. */
export const achievementHolders: Endpoint<HoldersInput, HoldersRequest> = {
  operationId: 'getAchievementHolders',
  path: '/api/achievements/:achievementKey/holders',
  tags: ACHIEVEMENT_TAGS,
  summary: 'Users who have an achievement',
  description: 'Newest unlock first. A hidden achievement has the key `hidden-<id>` and does not show its name.',
  input: z.object({
    achievementKey: text({ example: 'halo-hour' }).describe('The key that the list of achievements shows.'),
    limit: integer({ min: 1, max: 500 }).default(50).describe('Maximum number of users.'),
    offset: integer({ min: 0, max: HOLDERS_OFFSET_MAX }).default(0).describe('Number of the newest ones to skip.')
  }),
  resolve: ({ achievementKey, ...page }) => {
    const found = achievements.map((each) => veiled(each)).find(({ key }) => key === achievementKey)
    if (found === undefined) throw new Refusal('achievement_unknown', [shown(achievementKey)])
    const { id, key, name, points } = found
    return { id, key, name, points, ...page }
  },
  reads: () => [{ projection: 'achievement-unlock' }],
  answer: answerHolders,
  table: listIn(AchievementHolders, 'holders'),
  response: AchievementHolders,
  responseHeaders: { Link: 'The next page, with `rel="next"`, if there is one.' },
  refuses: ['achievement_unknown']
}

async function answerHolders(request: HoldersRequest, { tables, signal }: AnswerContext): Promise<EndpointResult> {
  const { limit, offset, ...achievement } = request
  const { id, key } = achievement
  const [counts, rows] = await Promise.all([
    rowsOf(tables, unlockCounts, {}, { signal }),
    rowsOf(tables, holdersOf, { achievementId: id, limit, offset }, { signal })
  ])
  const total = counts.find(({ achievementId }) => achievementId === id)?.users ?? 0
  const holders = rows.map(({ username, unlockedMs }) => ({ username, unlockedAt: shownInstant(unlockedMs) }))
  const body: AchievementHolders = { ...achievement, total, holders }
  const next = offset + limit
  if (next >= total || next > HOLDERS_OFFSET_MAX) return { body }
  return { body, headers: nextLink(`/api/achievements/${key}/holders`, { limit, offset: next }) }
}

async function answerCatalog(context: AnswerContext): Promise<AchievementCatalog> {
  const { tables, signal } = context
  const [counts, [achievers], imageOf] = await Promise.all([
    rowsOf(tables, unlockCounts, {}, { signal }),
    rowsOf(tables, achieverCount, {}, { signal }),
    imagesOf(context)
  ])
  const users = new Map(counts.map(({ achievementId, users }) => [achievementId, users]))
  const all = achievements.map((each) => ({ ...veiled(each, imageOf), unlock_count: users.get(each.id) ?? 0 }))
  return {
    achievements: all,
    groups: shownGroups.map((group) => {
      const own = all.filter(({ category }) => category === group.groupId)
      return { ...group, imageUrl: imageOf(group.titleId), totalCount: own.length, totalPoints: pointsOf(own) }
    }),
    stats: {
      maxGamerscore: pointsOf(all),
      totalAchievements: all.length,
      playersWithAchievements: achievers?.users ?? 0
    }
  }
}

async function answerUser(request: UserRequest, context: AnswerContext): Promise<UserAchievements> {
  const { tables, signal } = context
  const [, unlocks, imageOf] = await Promise.all([
    knownUser(request, context),
    rowsOf(tables, unlocksOfUser, { userKey: request.userKey }, { signal }),
    imagesOf(context)
  ])
  const earned = unlocks.flatMap(({ achievementId, points, unlockedMs }) => {
    const achievement = achievementById.get(achievementId)
    if (achievement === undefined) return []
    const shown = { ...veiled(achievement, imageOf), points, ...revealedOf(achievement) }
    return { ...shown, earned: true as const, unlocked_at: shownInstant(unlockedMs) }
  })
  const byId = new Map(earned.map((each) => [each.id, each]))
  const all = achievements.map(
    (each) => byId.get(each.id) ?? { ...veiled(each, imageOf), earned: false, unlocked_at: null }
  )
  return {
    score: pointsOf(unlocks),
    achievements: earned,
    groups: shownGroups.map((group) => {
      const own = all.filter(({ category }) => category === group.groupId)
      const ownEarned = own.filter(({ earned }) => earned)
      return {
        ...group,
        imageUrl: imageOf(group.titleId),
        unlockedCount: ownEarned.length,
        totalCount: own.length,
        earnedPoints: pointsOf(ownEarned),
        achievements: own
      }
    })
  }
}

async function imagesOf(context: AnswerContext): Promise<(titleId: string | null) => string> {
  const titles = await context.catalog()
  return (titleId) => (titleId === null ? '' : (titles.byId(titleId)?.image ?? ''))
}

function pointsOf(list: readonly Pick<VeiledAchievement, 'points'>[]): number {
  return list.reduce((sum, { points }) => sum + points, 0)
}
