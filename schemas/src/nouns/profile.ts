import { z } from 'zod'
import { Instant } from '../values/instant.js'
import { Username } from '../values/username.js'
import { topic } from '../wire/topic.js'
import { NewUnlock } from './achievement.js'
import { Count } from './count.js'
import { PlayTime } from './play-time.js'

export const BIO_LENGTH_MAX = 1000
export const SOCIAL_LINKS_MAX = 10

/** A link of a profile. */
export const SocialLink = z
  .object({
    platform: z.string().min(1).max(64),
    url: z.url({ protocol: /^https$/ }).max(2048),
    label: z.string().min(1).max(64).optional()
  })
  .meta({ id: 'SocialLink' })
export type SocialLink = z.infer<typeof SocialLink>

/** The profile object of the contract. */
export const Profile = z
  .object({
    avatar_url: z.string(),
    chat_profile_url: z.string(),
    display_name_override: z.string().nullable(),
    linked_gamertag: z.string(),
    console_verified: z.boolean().describe('Whether the last verified session has the linked gamertag.'),
    bio: z.string(),
    social_links: z.array(SocialLink)
  })
  .meta({ id: 'Profile' })
export type Profile = z.infer<typeof Profile>

/** The answer of `getProfile`. */
export const ProfileSummary = z
  .object({
    username: z.string(),
    profile: Profile,
    playTime: PlayTime,
    achievementScore: Count,
    achievementCount: Count,
    newUnlocks: z.array(NewUnlock).describe('Of the last 7 days, newest first.'),
    leaderboardPlayerName: z
      .string()
      .describe('The linked gamertag, else the newest that presence saw, else the username.'),
    leaderboardStats: z.object({
      leaderboardsOn: Count,
      top10Count: Count.describe('Boards on which the player is among the first 10.')
    }),
    usesExplicitConsoleGamertag: z.boolean().describe('Whether a gamertag is linked.')
  })
  .meta({ id: 'ProfileSummary', description: 'Profile and statistics of the user.' })
export type ProfileSummary = z.infer<typeof ProfileSummary>

/** A profile as its owner sees it after an edit. */
export const EditedProfile = Profile.extend({
  avatar_hue: z.int().min(0).max(359).nullable(),
  sync_avatar_from_chat: z.boolean()
}).meta({ id: 'EditedProfile', description: 'The profile after the edit.' })
export type EditedProfile = z.infer<typeof EditedProfile>

/** A profile after one change: the whole state, numbered by the write side. */
export const ProfileChanged = EditedProfile.omit({ sync_avatar_from_chat: true }).extend({
  username: Username,
  /** Rises with every change of the write side. */
  revision: z.int().min(1),
  changedAt: Instant
})
export type ProfileChanged = z.infer<typeof ProfileChanged>

export const profileTopic = topic({
  name: 'profile',
  event: ProfileChanged,
  people: (event) => [event.username],
  identity: (event) => String(event.revision),
  instant: (event) => event.changedAt
})
