import { z } from 'zod'
import { Count } from './count.js'
import { Instant } from './instant.js'
import { TitleId } from './title-id.js'
import { topic } from './topic.js'

/** How many players one title had at one instant, as its source said it. */
export const TitleCounted = z.object({
  titleId: TitleId,
  observedAt: Instant,
  online: Count,
  /** Lobbies open. */
  sessions: Count.optional(),
  /** Players in lobbies. */
  lobbyPlayers: Count.optional()
})
export type TitleCounted = z.infer<typeof TitleCounted>

export const titleCountTopic = topic({
  name: 'title-count',
  event: TitleCounted,
  key: (event) => event.titleId,
  instant: (event) => event.observedAt
})
