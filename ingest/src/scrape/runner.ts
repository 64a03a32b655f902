import type { ScrapeRan } from '@gamenet/schemas'
import { scrapeRanOf } from '../sources/scrape.js'

/** The runs of one source: never two at once; remembers the last one. */
export type Runner = {
  /** Runs by schedule, or joins the current run. */
  runDue(): Promise<void>
  /** Runs on request, or joins the requested run in progress; returns its result. */
  runAll(): Promise<ScrapeRan>
  last(): ScrapeRan | undefined
  /** Resolves when no run is under way. Never rejects. */
  idle(): Promise<unknown>
}

/** A runner for a source whose runs read everything. `run` must not reject. */
export function singleRunner(run: () => Promise<ScrapeRan>): Runner {
  let current: Promise<ScrapeRan> | undefined
  let last: ScrapeRan | undefined
  const join = async () => {
    current ??= run().finally(() => {
      current = undefined
    })
    last = await current
    return last
  }
  return {
    runDue: async () => {
      await join()
    },
    runAll: join,
    last: () => last,
    idle: () => current ?? Promise.resolve()
  }
}

/** Runs a part of the pending work; undefined when nothing is left. Must not reject. */
type RunPart = () => Promise<ScrapeRan | undefined>

/**
 * A runner for a source whose runs read a part. By schedule, it repeats runs while one leaves due items. On request, it
 * waits for the current run and then reads everything. Stops early when `isStopping`.
 */
export function partRunner(needs: {
  readonly runDue: RunPart
  /**
   * Whether the last due run has left due items. What falls due meanwhile waits for the next round: each run is a
   * scrape event.
   */
  readonly hasMore: () => boolean
  /** Starts a pass over everything. */
  readonly everything: () => RunPart
  readonly isStopping: () => boolean
}): Runner {
  let last: ScrapeRan | undefined
  let due: Promise<void> | undefined
  let complete: Promise<ScrapeRan> | undefined
  const runParts = async (run: RunPart, isLast: (ran: ScrapeRan) => boolean) => {
    const runs: ScrapeRan[] = []
    for (let ran = await run(); ran !== undefined; ran = await run()) {
      last = ran
      runs.push(ran)
      if (needs.isStopping() || isLast(ran)) break
    }
    return runs
  }
  return {
    async runDue() {
      if (complete !== undefined) return
      // After a failure the schedule's next round retries; the caller does not wait for all due items.
      const isLast = ({ outcome }: ScrapeRan) => outcome === 'failed' || complete !== undefined || !needs.hasMore()
      due ??= runParts(needs.runDue, isLast)
        .then(() => undefined)
        .finally(() => {
          due = undefined
        })
      await due
    },
    async runAll() {
      complete ??= Promise.resolve(due)
        .then(() => runParts(needs.everything(), () => false))
        .then(summaryOf)
        .finally(() => {
          complete = undefined
        })
      return await complete
    },
    last: () => last,
    idle: () => Promise.allSettled([due, complete])
  }
}

/** Combines at least one run into one summary. */
function summaryOf(runs: readonly ScrapeRan[]): ScrapeRan {
  const [first] = runs
  if (first === undefined) throw new Error('a requested run returned nothing: this is a defect')
  const outcomes = new Set(runs.map(({ outcome }) => outcome))
  const reasons = [...new Set(runs.flatMap(({ reason }) => reason ?? []))]
  const ends = runs.map((run) => Date.parse(run.observedAt) + run.durationMs)
  const beganAtMs = Date.parse(first.observedAt)
  return scrapeRanOf({
    source: first.source,
    beganAtMs,
    durationMs: Math.max(...ends) - beganAtMs,
    outcome: outcomes.size === 1 ? first.outcome : 'partial',
    published: runs.reduce((sum, { published }) => sum + published, 0),
    reason: reasons.length === 0 ? undefined : reasons.join('; ')
  })
}
