import { nameKey, ratingTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const ratingEvents = eventTable(ratingTopic, {
  user_key: ['String', (event) => nameKey(event.username)],
  username: ['String', (event) => event.username],
  rater_key: ['String', (event) => nameKey(event.raterUsername)],
  rater: ['String', (event) => event.raterUsername],
  stars: ['UInt8', (event) => event.stars],
  comment: ['Nullable(String)', (event) => event.comment],
  revision: ['UInt64', (event) => event.revision]
})
