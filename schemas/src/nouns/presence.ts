import { z } from 'zod'
import { Instant } from '../values/instant.js'
import { Username } from '../values/username.js'
import { topic } from '../wire/topic.js'

export const PRESENCE_STATES = ['online', 'offline'] as const

/** A day. */
export const PRESENCE_PERIOD_SECONDS_MAX = 86_400

const Name = z.string().min(1).max(200)

/** Where one user was seen, or was not, at one instant. A field that the source does not know is absent. */
export const PresenceSeen = z.object({
  username: Username,
  /** The name under which the user plays. */
  gamertag: Name.optional(),
  state: z.enum(PRESENCE_STATES),
  /** The name of the game that the user is in; of one who is offline it says nothing. */
  game: Name.optional(),
  /** How often the source looks, in seconds: up to three of these, two sightings are one stretch of play. */
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
