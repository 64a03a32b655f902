/** Keeps what may run beside no pass apart from the passes of all projectors that write to the same tables. */
export type Passes = {
  /** Runs a pass, or stores a batch, beside those of others; `check` rejects when somebody may be alone meanwhile. */
  together<Result>(pass: (check: () => Promise<void>) => Promise<Result>): Promise<Result>
  /** Runs work while no pass runs in any process. For work between this process's own passes; `check` as above. */
  alone<Result>(work: (check: () => Promise<void>) => Promise<Result>): Promise<Result>
}

/** Where nobody else writes to the tables. */
export const OWN_PASSES: Passes = {
  together: (pass) => pass(async () => undefined),
  alone: (work) => work(async () => undefined)
}

/** The same, where no pass begins while `guard` rejects; it is asked when nothing can be alone any more. */
export function guardedPasses(passes: Passes, guard: () => Promise<void>): Passes {
  return {
    together: (pass) =>
      passes.together(async (check) => {
        await guard()
        return await pass(check)
      }),
    alone: (work) => passes.alone(work)
  }
}
