import type { DemoAuth } from '../../demo/auth/server.js'
import type { Facts } from './facts.js'
import type { SteppingUpstream } from './upstream.js'

/** The parts that are not killed, and the options of the run. */
export type Surroundings = {
  /** The directory for all data, also for the next run. */
  readonly directory: string
  readonly facts: Facts
  readonly kills: number
  /** Runs until these projections have been rebuilt and have served. */
  readonly rebuilt: readonly string[]
  /** Factor of the pauses of users, readers and scrapers relative to full load. */
  readonly calm: number
  readonly auth: DemoAuth
  readonly upstream: SteppingUpstream
  readonly note: (sentence: string) => void
}

export type Outcome = {
  readonly differences: readonly string[]
  /** Durations of complete starts in milliseconds, in order. */
  readonly startsMs: readonly number[]
}
