import { z } from 'zod'
import { Instant } from '../values/instant.js'
import { Username } from '../values/username.js'
import { topic } from '../wire/topic.js'

export const PRESENCE_STATES = ['online', 'offline'] as const

/** A day. */
export const PRESENCE_PERIOD_SECONDS_MAX = 86_400

const Name = z.string().min(1).max(200)

/** A sighting of one user at one instant, online or offline. A field that the source lacks is absent. */
export const PresenceSeen = z.object({
  username: Username,
  /** The user's name in games. */
  gamertag: Name.optional(),
  state: z.enum(PRESENCE_STATES),
  /** The name of the user's current game; ignored for a user who is offline. */
  game: Name.optional(),
  /**
   * Interval of the source's observations, in seconds. Two sightings at most three intervals apart are one stretch of
   * play.
   */
  periodSeconds: z.int().min(1).max(PRESENCE_PERIOD_SECONDS_MAX),
  observedAt: Instant
})
export type PresenceSeen = z.infer<typeof PresenceSeen>

export const presenceTopic = topic({
  name: 'presence',
  event: PresenceSeen,
  people: (event) => [event.username],
  identity: () => '',
  instant: (event) => event.observedAt
})
