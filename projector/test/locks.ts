import type { PassLock } from '../src/index.js'

/** Behaves like the lock in PostgreSQL: passes are shared, other work is exclusive, in the order of requests. */
export function lockedPasses(): PassLock {
  let alone: Promise<unknown> = Promise.resolve()
  let together: Promise<unknown>[] = []
  return {
    shared: (pass) => {
      const run = alone.then(() => pass(async () => undefined))
      together.push(run.catch(() => undefined))
      return run
    },
    exclusive: (work) => {
      const run = Promise.all([alone, ...together]).then(() => work(async () => undefined))
      together = []
      alone = run.catch(() => undefined)
      return run
    }
  }
}
