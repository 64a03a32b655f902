import { type Backoff, backoffMs, DEFAULT_BACKOFF, errorMessage, type Logger } from '@gamenet/schemas'
import type { Metrics } from '../load/projector-metrics.js'

type Failure = { readonly count: number; readonly retryAt: number; readonly reason: string }

/** The failed projections, which are retried with growing delays. */
export class Failures {
  readonly #failed = new Map<string, Failure>()
  readonly #metrics: Pick<Metrics, 'projectionFailing'>
  readonly #logger: Logger
  readonly #backoff: Backoff

  constructor(metrics: Pick<Metrics, 'projectionFailing'>, logger: Logger, backoff: Backoff = DEFAULT_BACKOFF) {
    this.#metrics = metrics
    this.#logger = logger
    this.#backoff = backoff
  }

  /** Why the projection failed last; undefined unless it waits for a retry. */
  reasonOf(projection: string): string | undefined {
    return this.#failed.get(projection)?.reason
  }

  /** False while a projection waits after a failure. */
  isDue(projection: string): boolean {
    return performance.now() >= (this.#failed.get(projection)?.retryAt ?? 0)
  }

  /** Time until the next retry in ms; infinite if none is due. */
  msToRetry(): number {
    return Math.min(...[...this.#failed.values()].map(({ retryAt }) => retryAt - performance.now()))
  }

  /** Lets the next pass retry these without a delay. */
  retryNow(projections: ReadonlySet<string>): void {
    for (const [projection, failure] of this.#failed)
      if (projections.has(projection)) this.#failed.set(projection, { ...failure, retryAt: 0 })
  }

  /** @param isStopped the failure may be one of the stop, and is not logged */
  failed(projection: string, error: unknown, isStopped: boolean): void {
    const count = (this.#failed.get(projection)?.count ?? 0) + 1
    const reason = errorMessage(error)
    this.#failed.set(projection, { count, retryAt: performance.now() + backoffMs(this.#backoff, count), reason })
    this.#metrics.projectionFailing.set({ projection }, 1)
    if (!isStopped) this.#logger.error({ projection, reason }, 'a projection failed')
  }

  succeeded(projection: string): void {
    this.#failed.delete(projection)
    this.#metrics.projectionFailing.set({ projection }, 0)
  }
}
