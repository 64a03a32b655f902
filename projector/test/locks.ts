import type { PassLock } from '../src/index.js'

/** Behaves like the lock in PostgreSQL: passes are shared, other work is exclusive, in the order of requests. */
export function lockedPasses(): PassLock {
  let exclusive: Promise<unknown> = Promise.resolve()
  let shared: Promise<unknown>[] = []
  return {
    shared: (pass) => {
      const run = exclusive.then(() => pass(async () => undefined))
      shared.push(run.catch(() => undefined))
      return run
    },
    exclusive: (work) => {
      const run = Promise.all([exclusive, ...shared]).then(() => work(async () => undefined))
      shared = []
      exclusive = run.catch(() => undefined)
      return run
    }
  }
}
