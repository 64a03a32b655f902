import { errorMessage, Mutex, pause } from '@gamenet/schemas'
import type { RebuildContext } from './context.js'
import { RebuildRefused } from './contract.js'
import type { Fillers } from './fillers.js'
import { dropLeftovers } from './leftovers.js'
import { restAfter } from './rest-after.js'

/**
 * Runs the operations of this process on rebuilds one after the other, and drops leftovers of failed ones in between.
 */
export class OperationQueue {
  readonly #context: RebuildContext
  readonly #fillers: Fillers
  readonly #mutex = new Mutex()
  #tidying: Promise<void> | undefined

  constructor(context: RebuildContext, fillers: Fillers) {
    this.#context = context
    this.#fillers = fillers
  }

  /** Runs work after all earlier work. */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await this.#mutex.run(work)
    } catch (error) {
      if (!(error instanceof RebuildRefused)) {
        // The change may be stored, and only its acknowledgement lost.
        this.#fillers.wake()
        this.dropLeftovers()
      }
      throw error
    }
  }

  /** Drops leftovers of rebuilds in the background, between operations; retries after a failure. */
  dropLeftovers(): void {
    const { logger, signal } = this.#context
    const tidy = async () => {
      for (let failures = 1; !signal.aborted; failures += 1) {
        try {
          const laterMs = await this.#mutex.run(() => dropLeftovers(this.#context))
          if (laterMs === undefined) return
          await pause(laterMs, signal)
          failures = 0
        } catch (error) {
          if (signal.aborted) return
          logger.warn({ reason: errorMessage(error) }, 'leftovers of rebuilds cannot be dropped; retrying')
          await restAfter(failures, signal)
        }
      }
    }
    this.#tidying ??= tidy().finally(() => {
      this.#tidying = undefined
    })
  }

  /** Resolves when no operation runs; for after the context's signal. */
  async ended(): Promise<void> {
    await this.#mutex.idle()
    await this.#tidying
  }
}
