/** Excludes the passes of all projectors on the same tables from work that needs exclusive use. */
export type PassLock = {
  /** Runs a pass, or stores a batch, concurrently with others; `check` rejects if exclusive work may be running. */
  shared<Result>(pass: (check: () => Promise<void>) => Promise<Result>): Promise<Result>
  /** Runs work while no pass runs in any process. For work between this process's own passes; `check` as above. */
  exclusive<Result>(work: (check: () => Promise<void>) => Promise<Result>): Promise<Result>
}

/** For tables without other writers. */
export const LOCAL_PASS_LOCK: PassLock = {
  shared: (pass) => pass(async () => undefined),
  exclusive: (work) => work(async () => undefined)
}
