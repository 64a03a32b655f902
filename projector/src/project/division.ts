import { createHash } from 'node:crypto'
import { statementsOf } from '../generations/generations.js'
import type { Projection } from '../store/projection.js'

/*
 * Several projectors divide the passes by topic, because projections of one topic read the same events and one
 * another's tables. It only saves work: steps are idempotent, so no result depends on the projector that runs them.
 */

/** The topics whose passes this process runs. */
export type OwnTopics = {
  has(topic: string): boolean
  /** Rejects if another process may run their passes by now; to be called before each step and each announcement. */
  check(): Promise<void>
}

/** What is divided. */
export type Parts = {
  /** A number of these projections and their statements: programs with other ones divide their passes separately. */
  readonly program: number
  /** The topics with projections. */
  readonly topics: readonly string[]
}

/** The part of one projector. */
export type Division = {
  /**
   * Runs a pass over this process's topics, which it keeps until another projector comes or goes, or a pass rejects. It
   * reads its checkpoints after it has them, so that nothing is read twice.
   * @param events the number of loaded events of a topic, by which the topics are divided evenly
   */
  run<Result>(events: (topic: string) => number, pass: (own: OwnTopics) => Promise<Result>): Promise<Result>
  /** Leaves its topics to the others. */
  end(): Promise<void>
}

/** Passes over all topics. */
export const ALL_TOPICS: OwnTopics = { has: () => true, check: async () => undefined }

/** For a projector that runs all passes. */
export const UNDIVIDED: Division = { run: (_, pass) => pass(ALL_TOPICS), end: async () => undefined }

/** Returns what projectors with these projections divide. */
export function partsOf(projections: readonly Projection[]): Parts {
  const hash = createHash('sha256').update(JSON.stringify(projections.map((each) => [each.name, statementsOf(each)])))
  return {
    program: hash.digest().readUInt32BE(0) >>> 1,
    topics: [...new Set(projections.map(({ from }) => from.name))]
  }
}
