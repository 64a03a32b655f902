/** Keeps what may run beside no pass apart from the passes of all projectors that write to the same tables. */
export type PassLock = {
  /** Runs a pass, or stores a batch, beside those of others; `check` rejects when somebody may be alone meanwhile. */
  shared<Result>(pass: (check: () => Promise<void>) => Promise<Result>): Promise<Result>
  /** Runs work while no pass runs in any process. For work between this process's own passes; `check` as above. */
  exclusive<Result>(work: (check: () => Promise<void>) => Promise<Result>): Promise<Result>
}

/** Where nobody else writes to the tables. */
export const LOCAL_PASS_LOCK: PassLock = {
  shared: (pass) => pass(async () => undefined),
  exclusive: (work) => work(async () => undefined)
}

/** The same, where no pass begins while `guard` rejects; it is asked when nothing can be alone any more. */
export function guardedPassLock(passes: PassLock, guard: () => Promise<void>): PassLock {
  return {
    shared: (pass) =>
      passes.shared(async (check) => {
        await guard()
        return await pass(check)
      }),
    exclusive: (work) => passes.exclusive(work)
  }
}
