import { nameKey, ratingTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const ratingEvents = eventTable(ratingTopic, {
  user_key: (event) => nameKey(event.username),
  username: (event) => event.username,
  rater_key: (event) => nameKey(event.raterUsername),
  rater: (event) => event.raterUsername,
  stars: (event) => event.stars,
  comment: (event) => event.comment,
  revision: (event) => event.revision
})
