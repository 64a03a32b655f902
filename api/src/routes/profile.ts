import { newUnlock, type PlayTime, type Profile, ProfileSummary, shownInstant } from '@gamenet/schemas'
import { z } from 'zod'
import type { AnswerContext, Endpoint } from '../answers/endpoint.js'
import { unlocksOfUser } from '../queries/achievement-unlock.js'
import { playTotals } from '../queries/play-time.js'
import type { ProfileRow } from '../queries/profile.js'
import { rowsOf } from '../queries/query.js'
import { boardStats } from '../queries/user-score.js'
import { isConsoleVerified } from '../writes/user.js'
import {
  knownUser,
  type PresenceFacts,
  readsUser,
  type UserRequest,
  usernameParameter,
  userRequest
} from './known-user.js'

export const PROFILE_TAGS = ['Profiles']

const MINUTE_MS = 60_000
const NEW_UNLOCKS_MS = 7 * 86_400_000
/** A user seen online counts as online for this many of the sighting's own periods. */
const PERIODS_ONLINE = 3

/** `nowMs`: start of the current minute. It determines who is online and which unlocks are new. */
type ProfileRequest = UserRequest & { readonly nowMs: number }

/** `GET /api/profile/:username`: a user’s profile, presence and totals. */
export const profile: Endpoint<{ username: string }, ProfileRequest> = {
  operationId: 'getProfile',
  path: '/api/profile/:username',
  tags: PROFILE_TAGS,
  summary: 'Profile of a user',
  description:
    'The user’s profile, presence, play time, achievements and totals on leaderboards. A user was seen by presence ' +
    'or has signed in; a name that is only on a leaderboard is not a user.',
  input: z.object({ username: usernameParameter }),
  resolve: ({ username }, { nowMs }) => ({
    ...userRequest(username),
    nowMs: Math.floor(nowMs / MINUTE_MS) * MINUTE_MS
  }),
  reads: ({ userKey }) => [
    ...readsUser(userKey),
    { projection: 'presence-day', key: userKey },
    { projection: 'scrape', key: 'players' },
    { projection: 'achievement-unlock', key: userKey },
    { projection: 'player-entry' }
  ],
  answer: async (request, context) => ({ body: await answerProfile(request, context) }),
  response: ProfileSummary,
  refuses: ['user_unknown']
}

/** Runs all queries at once, except that about boards, which needs the name from the others. */
async function answerProfile(request: ProfileRequest, context: AnswerContext): Promise<ProfileSummary> {
  const { tables, signal } = context
  const { userKey, nowMs } = request
  const [{ user, stats }, [totals], unlocks, checkedMs] = await Promise.all([
    knownUser(request, context).then(async (user) => {
      const [stats] = await rowsOf(tables, boardStats, { playerKey: user.player.key }, { signal })
      return { user, stats }
    }),
    rowsOf(tables, playTotals, { userKey }, { signal }),
    rowsOf(tables, unlocksOfUser, { userKey }, { signal }),
    context.playersCheckedMs()
  ])
  const newest = unlocks.filter(({ unlockedMs }) => unlockedMs >= nowMs - NEW_UNLOCKS_MS)
  return {
    username: user.username,
    profile: shownProfile(user.profile),
    playTime: {
      totalMinutes: Math.floor((totals?.seconds ?? 0) / 60),
      ...shownPresence(user.presence, checkedMs, nowMs),
      daysSeen: totals?.daysSeen ?? 0
    },
    achievementScore: unlocks.reduce((sum, { points }) => sum + points, 0),
    achievementCount: unlocks.length,
    newUnlocks: newest.flatMap((unlock) => newUnlock(unlock) ?? []),
    leaderboardPlayerName: user.player.name,
    leaderboardStats: { leaderboardsOn: stats?.boards ?? 0, top10Count: stats?.top10 ?? 0 },
    usesExplicitConsoleGamertag: user.player.from === 'linked'
  }
}

/** Returns the profile object of the contract; empty for a user who never signed in. */
export function shownProfile(row: ProfileRow | undefined): Profile {
  return {
    avatar_url: row?.avatar_url ?? '',
    chat_profile_url: row?.chat_profile_url ?? '',
    display_name_override: row?.display_name_override ?? null,
    linked_gamertag: row?.linked_gamertag ?? '',
    console_verified: row !== undefined && isConsoleVerified(row),
    bio: row?.bio ?? '',
    social_links: row?.social_links ?? []
  }
}

/**
 * Returns a user's presence. An online sighting older than three of its periods does not show whether the user is
 * online now.
 */
function shownPresence(
  { seen, period, online, game }: PresenceFacts,
  checkedMs: number | null,
  nowMs: number
): Omit<PlayTime, 'totalMinutes' | 'daysSeen'> {
  const reachMs = PERIODS_ONLINE * 1000 * Number(period?.value ?? 0)
  const isOnline = seen?.value === 'online' && nowMs - seen.atMs <= reachMs
  const currentGame = isOnline ? (online?.value ?? '') : ''
  const lastCheckMs = Math.max(seen?.atMs ?? -1, checkedMs ?? -1)
  return {
    lastState: isOnline ? 'online' : 'offline',
    currentGame: currentGame === '' ? null : currentGame,
    lastPlayedGame: game?.value ?? null,
    lastPlayedAt: atOf(game?.atMs),
    lastOnlineAt: atOf(online?.atMs),
    lastCheckTs: lastCheckMs < 0 ? null : shownInstant(lastCheckMs)
  }
}

const atOf = (ms: number | undefined): string | null => (ms === undefined ? null : shownInstant(ms))
