import type { Chance } from './chance.js'

/** How often each kind of event happens in a world. Extreme worlds find more than average ones. */
export type Conditions = {
  /** Periods of counts and ratings. */
  readonly countsEveryMs: number
  readonly ratingsEveryMs: number
  /** Period of the operator's commands about rebuilds, in worlds with an operator. */
  readonly operatorEveryMs: number
  /** Share of rebuilds that read the log. */
  readonly fromLogShare: number
  /** Period in which readers poll changes and repeat queries. */
  readonly watchEveryMs: number
  readonly areReadersAttentive: boolean
  /** Period of faults other than failing calls. */
  readonly disturbedEveryMs: number
  /** Counts also arrive during the final rebuilds. */
  readonly isTrickling: boolean
  /** How long a swap waits for passes: after a short wait swaps are abandoned. */
  readonly catchUpMs: number
}

export function conditionsOf(chance: Chance): Conditions {
  const areReadersAttentive = chance.happens(0.5)
  return {
    countsEveryMs: chance.oneOf([1500, 6000, 6000]),
    ratingsEveryMs: chance.oneOf([2000, 6000]),
    operatorEveryMs: chance.oneOf([300, 300, 1500]),
    fromLogShare: chance.oneOf([0.2, 0.7]),
    areReadersAttentive,
    watchEveryMs: areReadersAttentive ? 100 : 2000,
    disturbedEveryMs: chance.oneOf([2500, 6000, 6000]),
    isTrickling: chance.happens(0.5),
    catchUpMs: chance.oneOf([3000, 60_000])
  }
}
