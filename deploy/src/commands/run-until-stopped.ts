import type { Role, Service } from '../wiring/service.js'
import { print, type Terminal } from './terminal.js'

/** Ends a stop that hangs, within the 10 s that a SIGTERM may take. */
const STOP_MS = 9000
/** Of what still waits when everything is closed, such as a client of a server that does not answer. */
const LINGER_MS = 1000

/** Opens a service, says where to look, and closes it at SIGTERM or SIGINT. */
export async function runUntilStopped(
  terminal: Terminal,
  role: Role,
  options: { json?: boolean },
  linesOf: (service: Service) => readonly string[]
): Promise<void> {
  const stopped = signalled().then(() => overdueAfter(STOP_MS, terminal))
  const config = terminal.config()
  const { openService } = await import('../wiring/service.js')
  const service = await openService(config, role, terminal.threadPoolSize).catch((error: unknown) => {
    exitSoon(role)
    throw error
  })
  const { close: _, operations: __, ...facts } = service
  print(terminal, options.json, facts, linesOf(service))
  const overdue = await stopped
  try {
    await service.close()
  } finally {
    overdue.unref()
    exitSoon(role)
  }
}

/** From the signal on, so that a start that hangs is ended too. */
function overdueAfter(ms: number, terminal: Terminal): NodeJS.Timeout {
  return setTimeout(() => {
    terminal.errors.write(`The service did not stop within ${ms} ms; it is killed. Nothing acknowledged is lost.\n`)
    // An exit would wait for the engines' threads as well.
    process.kill(process.pid, 'SIGKILL')
  }, ms)
}

/** An exit would end a statement of an engine in this process in its midst; there what lingers is overdue in the end. */
function exitSoon(role: Role): void {
  if (role !== 'all') setTimeout(() => process.exit(), LINGER_MS).unref()
}

function signalled(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve())
  })
}
