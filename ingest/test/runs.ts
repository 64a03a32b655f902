const depth = { seed: 1, factor: 1 }

/** How often a property is tried: the same cases each time, unless a campaign looks deeper. */
export const runs = (numRuns: number) => ({ seed: depth.seed, numRuns: numRuns * depth.factor })

/** Every property is tried so many times as often, with cases of a seed of its own. */
export function lookDeeper(seed: number, factor: number): void {
  Object.assign(depth, { seed, factor })
}
