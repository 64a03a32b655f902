import { nameKey, profileTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const profileEvents = eventTable(profileTopic, {
  user_key: (event) => nameKey(event.username),
  username: (event) => event.username,
  revision: (event) => event.revision,
  avatar_url: (event) => event.avatar_url,
  avatar_hue: (event) => event.avatar_hue,
  chat_profile_url: (event) => event.chat_profile_url,
  display_name_override: (event) => event.display_name_override,
  linked_gamertag: (event) => event.linked_gamertag,
  linked_gamertag_key: (event) => nameKey(event.linked_gamertag),
  console_verified: (event) => event.console_verified,
  bio: (event) => event.bio,
  social_links: (event) => JSON.stringify(event.social_links)
})
