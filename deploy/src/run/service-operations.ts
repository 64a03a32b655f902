import { errorMessage, SharedRun } from '@gamenet/schemas'
import type { Logger } from 'pino'
import { FailureError, UsageError } from '../config.js'
import { finishErasures } from '../operate/erase/operation.js'
import { finishImportUndos } from '../operate/import/undo-operation.js'
import type { Operation, OperationNeeds, Operations } from '../operate/operation.js'
import { explained, noteDamage } from '../stores/engine-failures.js'

/** Completes work that an earlier process left, until a stop. */
type Unfinished = {
  /** In the background: also erasures that fail while the service runs. */
  erasures(): void
  /** Returns how many there were. */
  importUndos(): Promise<number>
}

export type ServiceOperations = {
  readonly operations: Operations
  readonly finish: Unfinished
  /**
   * Returns the progress of the history that is loaded least, imported or the demo's, 0 to 99; undefined without one.
   */
  historyPercent(): number | undefined
  /** Stops running operations, before the parts that they use are closed. */
  stop(): Promise<void>
}

/** The operations of this process, run by its own parts; for the work of other processes they read the tables. */
export function serviceOperations(
  given: Omit<OperationNeeds, 'stopping' | 'importing' | 'finishErasures'> & {
    readonly logger: Logger
  }
): ServiceOperations {
  const stop = new AbortController()
  const needs: OperationNeeds = {
    ...given,
    stopping: stop.signal,
    importing: new Map<string, number>(),
    finishErasures: () => {
      if (given.isRunning) void erasures.run()
    }
  }
  const running = new Set<Promise<unknown>>()
  const awaitedAtStop = async <Result>(run: Promise<Result>): Promise<Result> => {
    running.add(run)
    try {
      return await run
    } finally {
      running.delete(run)
    }
  }
  /** The next start completes what a stop interrupts. */
  const untilStop = async (run: Promise<number>): Promise<number> =>
    await awaitedAtStop(run).catch((error: unknown) => {
      if (stop.signal.aborted) return 0
      throw error
    })
  const erasures = new SharedRun(() => untilStop(finishErasures(needs, onErasureFailure)))
  const onErasureFailure = (error: unknown) =>
    given.logger.error({ err: error }, 'an interrupted erasure could not be completed; it is tried again in a minute')
  return {
    historyPercent: () => {
      const { done, total } = given.state.demo?.progress() ?? { done: 0, total: 0 }
      const shares = [...needs.importing.values(), ...(done < total ? [done / total] : [])]
      return shares.length === 0 ? undefined : Math.min(99, Math.floor(100 * Math.min(...shares)))
    },
    operations: {
      run: async (operation, input, { onProgress = () => undefined, signal = new AbortController().signal } = {}) => {
        requireLog(operation, needs)
        const run = operation.run(needs, input, { onProgress, signal }).catch(async (error: unknown) => {
          const { directory, ownsTables } = needs.engines
          const failure = await explained(error, directory?.path, ownsTables)
          noteDamage(given.state.damageMet, failure)
          // The client gets the sentence without its cause.
          if (given.isRunning && failure !== error)
            given.logger.error({ err: error, operation: operation.name }, errorMessage(failure))
          throw failure
        })
        return await (operation.endsWith === undefined ? awaitedAtStop(run) : run)
      }
    },
    finish: {
      erasures: needs.finishErasures,
      importUndos: () => untilStop(finishImportUndos(needs))
    },
    stop: async () => {
      needs.state.spool?.hasten()
      stop.abort(
        new FailureError('The service is stopping; ask again when it is back: an import continues where it stopped.')
      )
      await Promise.allSettled(running)
    }
  }
}

function requireLog(
  { needsLog = false }: Pick<Operation<never, never, never>, 'needsLog'>,
  { hasLog }: OperationNeeds
) {
  if (!needsLog || hasLog) return
  throw new UsageError('This process does not know the log (KAFKA_BROKERS); ask one of gamenet ingest or projector.')
}
