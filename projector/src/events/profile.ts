import { nameKey, profileTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const profileEvents = eventTable(profileTopic, {
  user_key: ['String', (event) => nameKey(event.username)],
  username: ['String', (event) => event.username],
  revision: ['UInt64', (event) => event.revision],
  avatar_url: ['String', (event) => event.avatar_url],
  avatar_hue: ['Nullable(UInt16)', (event) => event.avatar_hue],
  chat_profile_url: ['String', (event) => event.chat_profile_url],
  display_name_override: ['Nullable(String)', (event) => event.display_name_override],
  linked_gamertag: ['String', (event) => event.linked_gamertag],
  linked_gamertag_key: ['String', (event) => nameKey(event.linked_gamertag)],
  console_verified: ['Bool', (event) => event.console_verified],
  bio: ['String', (event) => event.bio],
  social_links: ['String', (event) => JSON.stringify(event.social_links)]
})
