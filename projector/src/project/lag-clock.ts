import type { PartitionExtent } from '@gamenet/schemas'

/** Maximum number of observations of one topic; beyond it, they are thinned out. */
const OBSERVATIONS_MAX = 1024
/** Maximum distance of thinned observations as a share of their age, and so the maximum error of an age. */
const AGE_PRECISION = 1 / 32

type Position = { readonly epoch: number; readonly partition: number; readonly next: number }
type Observation = { readonly atMs: number; readonly heads: readonly Position[] }

/**
 * Computes the age of the oldest event that a reader has not consumed, from observations of the log's heads: a reader
 * past the heads of an instant has consumed all earlier events. The age is too high by at most the time between two
 * observations. It rises while the log does not answer, because the reader cannot know what was appended.
 */
export class LagClock {
  readonly #observations = new Map<string, Observation[]>()
  /** Topics whose last observation failed. */
  #silent: ReadonlySet<string> = new Set()
  /** Before this instant nothing was observed. */
  readonly #startedMs: number

  constructor(startedMs: number) {
    this.#startedMs = startedMs
  }

  /** Records the heads of the topics that have answered; all others are silent. */
  observe(atMs: number, topics: readonly string[], heads: ReadonlyMap<string, readonly PartitionExtent[]>): void {
    this.#silent = new Set(topics.filter((topic) => !heads.has(topic)))
    for (const [topic, partitions] of heads) {
      const known = [...(this.#observations.get(topic) ?? []), { atMs, heads: partitions }]
      this.#observations.set(topic, known.length > OBSERVATIONS_MAX ? thinned(known, atMs) : known)
    }
  }

  /**
   * Returns seconds; 0 for a reader at the newest heads of a log that answers.
   * @param next the first offset that the reader has not consumed
   */
  secondsBehind(nowMs: number, topic: string, next: (epoch: number, partition: number) => number): number {
    const observations = this.#observations.get(topic) ?? []
    const passed = observations.findLast(({ heads }) =>
      heads.every((head) => next(head.epoch, head.partition) >= head.next)
    )
    if (passed !== undefined && passed === observations.at(-1) && !this.#silent.has(topic)) return 0
    return Math.max(0, nowMs - (passed?.atMs ?? this.#startedMs)) / 1000
  }
}

function thinned(observations: readonly Observation[], nowMs: number): Observation[] {
  let keptMs = Number.POSITIVE_INFINITY
  return observations
    .toReversed()
    .filter(({ atMs }, n) => {
      const next = observations.at(-n - 2)
      const isNeeded = next === undefined || keptMs - next.atMs > (nowMs - next.atMs) * AGE_PRECISION
      if (isNeeded) keptMs = atMs
      return isNeeded
    })
    .reverse()
}
