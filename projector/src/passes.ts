/** Keeps what may run beside no pass apart from the passes of all projectors that write to the same tables. */
export type Passes = {
  /** Runs a pass, beside those of others; `check` rejects when somebody may be alone meanwhile. */
  together<Result>(pass: (check: () => Promise<void>) => Promise<Result>): Promise<Result>
  /** Runs work while no pass runs in any process. For work between this process's own passes. */
  alone<Result>(work: () => Promise<Result>): Promise<Result>
}

/** Where nobody else writes to the tables. */
export const OWN_PASSES: Passes = { together: (pass) => pass(async () => undefined), alone: (work) => work() }
