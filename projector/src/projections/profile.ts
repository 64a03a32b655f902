import { profileTopic } from '@gamenet/schemas'
import { INSTANT_MS, type Projection } from '../store/projection.js'

/** The newest state of every profile, by the write side's revision. */
export const profile: Projection = {
  name: 'profile',
  from: profileTopic,
  into: 'profile',
  columns: [
    'user_key',
    'username',
    'avatar_url',
    'avatar_hue',
    'chat_profile_url',
    'display_name_override',
    'linked_gamertag',
    'gamertag_key',
    'console_verified',
    'bio',
    'social_links',
    'ts',
    'revision'
  ],
  select: `
    SELECT e.user_key, e.username, e.avatar_url, e.avatar_hue, e.chat_profile_url, e.display_name_override,
      e.linked_gamertag, e.linked_gamertag_key, e.console_verified, e.bio, e.social_links, e.observed_at, e.revision
    FROM {event_profile: Identifier} AS e
    WHERE {range}`,
  touches: { key: 'e.user_key', bucketMs: INSTANT_MS }
}
