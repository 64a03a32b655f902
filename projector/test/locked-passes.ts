import type { Passes } from '../src/index.js'

/** As a lock of PostgreSQL's: passes run together, or something alone, in the order in which they are asked for. */
export function lockedPasses(): Passes {
  let alone: Promise<unknown> = Promise.resolve()
  let together: Promise<unknown>[] = []
  return {
    together: (pass) => {
      const run = alone.then(() => pass(async () => undefined))
      together.push(run.catch(() => undefined))
      return run
    },
    alone: (work) => {
      const run = Promise.all([alone, ...together]).then(() => work(async () => undefined))
      together = []
      alone = run.catch(() => undefined)
      return run
    }
  }
}
