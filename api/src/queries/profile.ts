import { SocialLink, type WriteSide } from '@gamenet/schemas'
import { z } from 'zod'
import { query } from './query.js'

/** A user's profile in PostgreSQL. `session_gamertag` is that of the last verified session. */
export const ProfileRow = z.object({
  username: z.string(),
  avatar_url: z.string(),
  avatar_hue: z.int().nullable(),
  display_name_override: z.string().nullable(),
  linked_gamertag: z.string(),
  session_gamertag: z.string(),
  bio: z.string(),
  chat_profile_url: z.string(),
  social_links: z.array(SocialLink)
})
export type ProfileRow = z.infer<typeof ProfileRow>

/** Reads the profile of a user; undefined before a first verified session. */
export async function profileOf(writes: Pick<WriteSide, 'query'>, userKey: string): Promise<ProfileRow | undefined> {
  const [row] = await writes.query(PROFILE, [userKey])
  return row === undefined ? undefined : ProfileRow.parse(row)
}

/** Selects the users whose verified gamertag has a key, by name. */
export const usersOfGamertag = query({
  params: z.object({ gamertagKey: z.string() }),
  row: z.object({ username: z.string(), gamertag: z.string() }),
  sql: `
    SELECT p.username AS username, p.linked_gamertag AS gamertag
    FROM {profile: Identifier} AS p FINAL
    WHERE p.gamertag_key = {gamertagKey: String} AND p.console_verified
    ORDER BY p.user_key`
})

const PROFILE = `
  SELECT p.username, p.avatar_url, p.avatar_hue, p.display_name_override, p.linked_gamertag, p.session_gamertag, p.bio,
    p.chat_profile_url, p.social_links
  FROM profile AS p
  WHERE p.user_key = $1`
