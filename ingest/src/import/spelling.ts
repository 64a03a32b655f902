/** How the ratings of a file are spelled; without one, each text says it by itself. */
export const RATINGS = ['time', 'seconds', 'milliseconds', 'score', 'score-ascending'] as const
export type Ratings = (typeof RATINGS)[number]

/** How a file spells its values, where it does not say it by itself. */
export type Spelling = {
  readonly ratings?: Ratings | undefined
  /** The zone of times without one; default: UTC. */
  readonly tz?: string | undefined
  /** In the directives of strptime. */
  readonly timeFormat?: string | undefined
  readonly delimiter?: string | undefined
}
