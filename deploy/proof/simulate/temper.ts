import type { Chance } from './chance.js'

/** What there is much of in a world, and what little: one in which everything happens now and then finds little. */
export type Temper = {
  /** How often counts come, and ratings. */
  readonly countsEveryMs: number
  readonly ratingsEveryMs: number
  /** How often somebody does something about rebuilds, if somebody is there. */
  readonly operatorEveryMs: number
  /** Share of rebuilds that read the log. */
  readonly fromLogShare: number
  /** How often readers look what has changed, and what they ask for again. */
  readonly watchEveryMs: number
  readonly areReadersAttentive: boolean
  /** How often something goes wrong beside calls. */
  readonly disturbedEveryMs: number
  /** Counts come while the last rebuilds are ended, too. */
  readonly isTrickling: boolean
}

export function temperOf(chance: Chance): Temper {
  const areReadersAttentive = chance.happens(0.5)
  return {
    countsEveryMs: chance.oneOf([1500, 6000, 6000]),
    ratingsEveryMs: chance.oneOf([2000, 6000]),
    operatorEveryMs: chance.oneOf([300, 300, 1500]),
    fromLogShare: chance.oneOf([0.2, 0.7]),
    areReadersAttentive,
    watchEveryMs: areReadersAttentive ? 100 : 2000,
    disturbedEveryMs: chance.oneOf([2500, 6000, 6000]),
    isTrickling: chance.happens(0.5)
  }
}
