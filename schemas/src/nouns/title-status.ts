import { z } from 'zod'
import { Instant } from '../values/instant.js'
import { TitleId } from '../values/title-id.js'
import { topic } from '../wire/topic.js'

/** A title left the network's lists of games, or returned to them. A title without an event is on the network. */
export const TitleStatusChanged = z.object({
  titleId: TitleId,
  observedAt: Instant,
  onNetwork: z.boolean()
})
export type TitleStatusChanged = z.infer<typeof TitleStatusChanged>

export const titleStatusTopic = topic({
  name: 'title-status',
  event: TitleStatusChanged,
  key: (event) => event.titleId,
  instant: (event) => event.observedAt
})
