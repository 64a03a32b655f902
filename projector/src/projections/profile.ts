import { profileTopic } from '@gamenet/schemas'
import { INSTANT_MS } from '../store/projection.js'
import { rowPerEvent } from './sql-projection.js'

/** The newest state of every profile, by the write side's revision. */
export const profile = rowPerEvent({
  name: 'profile',
  from: profileTopic,
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
  values: { gamertag_key: 'e.linked_gamertag_key' },
  touches: { key: 'e.user_key', bucketMs: INSTANT_MS }
})
