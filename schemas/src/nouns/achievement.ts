import { z } from 'zod'
import { ShownInstant, shownInstant } from '../values/instant.js'
import { type Achievement, type AchievementGroup, achievementById, achievementGroups } from './achievement-catalog.js'
import { Count } from './count.js'

/*
 * unlock   an achievement that a user has reached
 * veiled   the public form: a hidden achievement shows its number, its points and that it is hidden
 * revealed a hidden achievement as shown to users who unlocked it, only in the achievements of their own profile
 */

/** Replaces the name of a hidden achievement. */
const HIDDEN_NAME = 'Hidden Achievement'
const HIDDEN_GROUP = 'hidden'

const Image = z.string().describe('Absolute address, "" when unknown.')

const shown = {
  id: z.int().min(1),
  key: z.string().describe('`hidden-<id>` for a hidden achievement.'),
  name: z.string().describe(`\`${HIDDEN_NAME}\` for a hidden achievement.`),
  description: z.string().describe('"" for a hidden achievement.'),
  points: Count,
  is_hidden: z.boolean(),
  game_title_id: z.string().nullable().describe('null for an achievement of the whole network.'),
  category: z.string().describe('The `groupId` of its group.'),
  image_url: z.string().nullable().describe('Absolute address of the picture of its game.')
}

const shownGroup = {
  groupId: z.string(),
  displayName: z.string(),
  titleId: z.string().nullable(),
  imageUrl: Image
}

/** The public form of an achievement. */
export const VeiledAchievement = z.object(shown)
export type VeiledAchievement = z.infer<typeof VeiledAchievement>

/** The answer of `getAchievements`. */
export const AchievementCatalog = z
  .object({
    achievements: z.array(z.object({ ...shown, unlock_count: Count.describe('Number of users who have it.') })),
    groups: z.array(
      z.object({
        ...shownGroup,
        totalCount: Count,
        totalPoints: Count
      })
    ),
    stats: z.object({ maxGamerscore: Count, totalAchievements: Count, playersWithAchievements: Count })
  })
  .meta({ id: 'AchievementCatalog', description: 'All achievements.' })
export type AchievementCatalog = z.infer<typeof AchievementCatalog>

const revealed = {
  revealed_name: z.string().optional().describe('Only of a hidden achievement that this user has unlocked.'),
  revealed_description: z.string().optional().describe('Only of a hidden achievement that this user has unlocked.')
}

/** The answer of `getUserAchievements`. */
export const UserAchievements = z
  .object({
    score: Count,
    achievements: z
      .array(z.object({ ...shown, earned: z.literal(true), unlocked_at: ShownInstant, ...revealed }))
      .describe('The unlocked achievements, newest first.'),
    groups: z.array(
      z.object({
        ...shownGroup,
        unlockedCount: Count,
        totalCount: Count,
        earnedPoints: Count,
        achievements: z.array(
          z.object({ ...shown, earned: z.boolean(), unlocked_at: ShownInstant.nullable(), ...revealed })
        )
      })
    )
  })
  .meta({ id: 'UserAchievements', description: 'The achievements of a user.' })
export type UserAchievements = z.infer<typeof UserAchievements>

/** The answer of `getAchievementLeaderboard`. */
export const AchievementLeaderboard = z
  .object({
    leaderboard: z.array(
      z
        .object({
          rank: z.int().min(1).describe('Equal scores share a rank.'),
          username: z.string(),
          totalScore: Count,
          achievementCount: Count
        })
        .meta({ id: 'AchievementScore' })
    )
  })
  .meta({ id: 'AchievementLeaderboard', description: 'The highest scores.' })
export type AchievementLeaderboard = z.infer<typeof AchievementLeaderboard>

/** The answer of `getAchievementHolders`. */
export const AchievementHolders = z
  .object({
    ...VeiledAchievement.pick({ id: true, key: true, name: true, points: true }).shape,
    total: Count.describe('Number of users who have it.'),
    holders: z.array(z.object({ username: z.string(), unlockedAt: ShownInstant }).meta({ id: 'AchievementHolder' }))
  })
  .meta({ id: 'AchievementHolders', description: 'The users who have the achievement, newest unlock first.' })
export type AchievementHolders = z.infer<typeof AchievementHolders>

/** The public form of an unlock, on its user's profile. */
export const NewUnlock = z
  .object({
    unlockedAt: ShownInstant,
    achievementId: z.int().min(1),
    achievementKey: z.string(),
    achievementName: z.string().describe(`With the game: \`Name (Game)\`; a hidden one is \`${HIDDEN_NAME}\`.`),
    gameName: z.string().describe('`Network` for an achievement of the whole network.'),
    points: Count
  })
  .meta({ id: 'NewUnlock' })
export type NewUnlock = z.infer<typeof NewUnlock>

/** The answer of `getRecentUnlocks`. */
export const RecentUnlocks = z
  .object({ recent: z.array(z.object({ username: z.string(), ...NewUnlock.shape }).meta({ id: 'RecentUnlock' })) })
  .meta({ id: 'RecentUnlocks', description: 'The newest unlocks, newest first.' })
export type RecentUnlocks = z.infer<typeof RecentUnlocks>

/** The groups in answers. Hidden achievements form a separate group, so that the others do not reveal them. */
export const shownGroups: readonly AchievementGroup[] = [
  ...achievementGroups,
  { groupId: HIDDEN_GROUP, displayName: 'Hidden', titleId: null }
]

/**
 * Returns the public form of an achievement. Answers take the data of hidden ones only from here and from {@link
 * revealedOf}.
 */
export function veiled(achievement: Achievement, imageOf: (titleId: string) => string = () => ''): VeiledAchievement {
  const { id, points } = achievement
  if (achievement.isHidden === true) {
    const facts = { id, key: `hidden-${id}`, name: HIDDEN_NAME, description: '', points, is_hidden: true }
    return { ...facts, game_title_id: null, category: HIDDEN_GROUP, image_url: null }
  }
  const { key, name, description, groupId } = achievement
  const titleId = groupOf(groupId).titleId
  const image = titleId === null ? '' : imageOf(titleId)
  const facts = { id, key, name, description, points, is_hidden: false }
  return { ...facts, game_title_id: titleId, category: groupId, image_url: image === '' ? null : image }
}

/** Returns the hidden fields of a hidden achievement, for a user who unlocked it; nothing for others. */
export function revealedOf({ isHidden, name, description }: Achievement): {
  revealed_name?: string
  revealed_description?: string
} {
  return isHidden === true ? { revealed_name: name, revealed_description: description } : {}
}

/** Returns the public form of an unlock; undefined if the catalog lacks the achievement. */
export function newUnlock(unlock: {
  readonly achievementId: number
  readonly points: number
  readonly unlockedMs: number
}): NewUnlock | undefined {
  const achievement = achievementById.get(unlock.achievementId)
  if (achievement === undefined) return undefined
  const { key, name, is_hidden } = veiled(achievement)
  const gameName = groupOf(achievement.isHidden === true ? 'network' : achievement.groupId).displayName
  return {
    unlockedAt: shownInstant(unlock.unlockedMs),
    achievementId: achievement.id,
    achievementKey: key,
    achievementName: is_hidden ? name : `${name} (${gameName})`,
    gameName,
    points: unlock.points
  }
}

function groupOf(groupId: string): AchievementGroup {
  const group = achievementGroups.find((each) => each.groupId === groupId)
  if (group === undefined) throw new Error(`An achievement is in the group ${groupId}, which does not exist.`)
  return group
}
