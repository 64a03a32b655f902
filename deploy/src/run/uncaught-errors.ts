import { errorMessage, shownInstant } from '@gamenet/schemas'
import type { Logger } from 'pino'
import { Counter, type Registry } from 'prom-client'
import { endAtOnce } from '../stores/end-at-once.js'
import { failureText } from '../stores/engine-failures.js'

/** Failures that `gamenet status` lists; the log has all. */
const LISTED_MAX = 10

/**
 * Returns the handler of exceptions and rejections that nothing caught: in a callback of a timer or of an event. If
 * the machine refused a call (no descriptors, no space, a broken connection), the work of that callback is missing:
 * it is logged and listed by `gamenet status`, and the process continues. After any other error the state of the
 * process is unknown: it ends, and its supervisor starts it again.
 */
export function uncaughtErrors(
  needs: { readonly logger: Logger; readonly registry: Registry; readonly damageMet: Set<string> },
  end: (sentence: string) => void = endAtOnce
): (error: unknown) => void {
  const uncaught = new Counter({
    name: 'gamenet_uncaught_errors_total',
    help: 'Errors of the machine in work that does not repeat itself: a part of the process may have stopped.',
    registers: [needs.registry]
  })
  const listed = new Set<string>()
  return (error) => {
    if (!isOfMachine(error)) {
      needs.logger.fatal({ err: error }, 'a defect')
      end(`An error was caught nowhere (${errorMessage(error)}), so the state of the process is unknown.`)
      return
    }
    uncaught.inc()
    needs.logger.error({ err: error }, 'a part of the process has failed; the others continue')
    const failure = failureText(error)
    if (listed.has(failure) || listed.size >= LISTED_MAX) return
    listed.add(failure)
    needs.damageMet.add(`a part of the process has failed at ${shownInstant(Date.now())}: ${failure} (restart it)`)
  }
}

/** Whether the operating system refused a call: Node names it. */
function isOfMachine(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && typeof error.syscall === 'string'
}
