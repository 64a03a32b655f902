import { z } from 'zod'
import { Instant } from '../values/instant.js'
import { TitleId } from '../values/title-id.js'
import { topic } from '../wire/topic.js'

/** Features of a title on the network, in the order of the home page's icons. */
export const TITLE_FEATURES = ['live-aware', 'matchmaking', 'leaderboards', 'user-content'] as const

const Text = z.string().trim().min(1).max(500)

/** A title as one source described it at one instant. A field that the source lacks is absent. */
export const TitleDescribed = z.object({
  titleId: TitleId,
  observedAt: Instant,
  name: Text,
  /** The longer, official title (the page's subtitle). */
  title: Text.optional(),
  publisher: Text.optional(),
  releaseDate: z.iso.date().optional(),
  /** Absolute address of the title's picture. */
  image: z
    .url({ protocol: /^https?$/ })
    .max(2048)
    .optional(),
  productCode: Text.optional(),
  features: z.array(z.enum(TITLE_FEATURES)).max(TITLE_FEATURES.length).optional()
})
export type TitleDescribed = z.infer<typeof TitleDescribed>

export const titleTopic = topic({
  name: 'title',
  event: TitleDescribed,
  key: (event) => event.titleId,
  instant: (event) => event.observedAt
})

/** The answer of `getGame`. */
export const Game = z
  .object({
    titleId: z.string(),
    name: z.string(),
    title: z.string().describe('The longer, official title.'),
    image: z.string().describe('Absolute address, "" when unknown.'),
    publisher: z.string(),
    releaseDate: z.string().describe('`YYYY-MM-DD`, "" when unknown.')
  })
  .meta({ id: 'Game', description: 'The game.' })
export type Game = z.infer<typeof Game>

/** A game of the list with `fields=all`. */
export const GameListed = z
  .object({
    titleId: z.string(),
    name: z.string().describe('As the list of names has it.'),
    publisher: z.string()
  })
  .meta({ id: 'GameListed' })

/** The answer of `getGames`. */
export const Games = z
  .union([z.array(z.string()), z.array(GameListed)])
  .meta({ id: 'Games', description: 'Names in alphabetical order; with `fields=all` with ids and publishers.' })
export type Games = z.infer<typeof Games>
