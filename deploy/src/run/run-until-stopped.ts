import type { Command } from 'commander'
import { exposureOf } from '../operator/exposure.js'
import { signalled } from '../terminal/signalled.js'
import { print, type Terminal } from '../terminal/terminal.js'
import type { Role, Service } from './service.js'

/**
 * Forces the exit of a stop that hangs, within the 10 s that orchestrators allow after SIGTERM and
 * SHUTDOWN_DELAY_SECONDS.
 */
const STOP_MS = 9000
/** Limit for work that still waits after the close, such as a client of an unavailable server. */
const LINGER_MS = 1000

/** Adds the option of a command that starts a role after PostgreSQL was restored from an older copy. */
export function acceptingOlder(command: Command): Command {
  return command.option(
    '--accept-older',
    'start although PostgreSQL is older than the tables: what it lacks stays lost (docs/operators/verify.md)'
  )
}

/** Opens a service, prints its addresses, and drains and closes it at SIGTERM or SIGINT. */
export async function runUntilStopped(
  terminal: Terminal,
  role: Role,
  options: { json?: boolean; acceptOlder?: boolean },
  linesOf: (service: Service) => readonly string[]
): Promise<void> {
  const config = terminal.config()
  const stopMs = STOP_MS + config.SHUTDOWN_DELAY_SECONDS * 1000
  const stopped = signalled().then(() => overdueAfter(stopMs, terminal))
  const { openService } = await import('./service.js')
  const accepts = { acceptsOlder: options.acceptOlder === true }
  const service = await openService(config, role, accepts).catch((error: unknown) => {
    exitSoon(role)
    throw error
  })
  process.on('uncaughtException', service.onUncaught)
  const { close: _, drain: __, operations: ___, onUncaught: ____, ...facts } = service
  print(terminal, options.json, facts, [...linesOf(service), ...exposureOf(config, role)])
  const overdue = await stopped
  try {
    await service.drain()
    await service.close()
  } finally {
    overdue.unref()
    exitSoon(role)
  }
}

/** Starts at the signal, so that a hanging start is ended too. */
function overdueAfter(ms: number, terminal: Terminal): NodeJS.Timeout {
  return setTimeout(() => {
    terminal.errors.write(`The service did not stop within ${ms} ms; it is killed. Nothing acknowledged is lost.\n`)
    // `process.exit` would wait for the engines' threads.
    process.kill(process.pid, 'SIGKILL')
  }, ms)
}

/**
 * Exits soon after the close. An exit would interrupt a statement of an embedded engine; there, lingering work ends at
 * the deadline.
 */
function exitSoon(role: Role): void {
  if (role !== 'all') setTimeout(() => process.exit(), LINGER_MS).unref()
}
