import { z } from 'zod'
import { Count } from './count.js'
import { Instant } from './instant.js'
import { topic } from './topic.js'

/** What the network as a whole counted at one instant. A count that the source did not give is absent. */
export const NetworkCounted = z
  .object({
    observedAt: Instant,
    registered: Count.optional(),
    online: Count.optional(),
    lobbies: Count.optional()
  })
  .refine((event) => event.registered !== undefined || event.online !== undefined || event.lobbies !== undefined, {
    message: 'expected at least one of registered, online, lobbies'
  })
export type NetworkCounted = z.infer<typeof NetworkCounted>

export const networkCountTopic = topic({
  name: 'network-count',
  event: NetworkCounted,
  key: () => 'network',
  instant: (event) => event.observedAt
})
