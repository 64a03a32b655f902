import { isIP } from 'node:net'
import { type Config, UsageError } from '../config.js'
import { isCommand, type Role } from '../stores/component.js'

/** Returns whether a listening address, or the host of a request, is a loopback address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

/** Returns a line for each port that other machines reach, with what they can do there. */
export function exposureOf(config: Config, role: Role): string[] {
  const { HOST, PORT, OPERATOR_HOST, OPERATOR_PORT, METRICS_HOST, METRICS_PORT } = config
  const ports = [
    ...(role === 'all' || role === 'api'
      ? [['HOST', HOST, PORT, 'can read the public API; edits and ratings need a session'] as const]
      : []),
    [
      'OPERATOR_HOST',
      OPERATOR_HOST,
      OPERATOR_PORT,
      'can read metrics; with the operator token, can do everything'
    ] as const,
    ...(METRICS_PORT === undefined ? [] : [['METRICS_HOST', METRICS_HOST, METRICS_PORT, 'can read metrics'] as const])
  ]
  return ports
    .filter(([, host]) => !isLoopback(host))
    .map(([variable, host, port, what]) => `${variable}=${host}: anyone who can reach port ${port} ${what}.`)
}

/**
 * Refuses an operator port that other machines reach and that has no token. A process with a data directory makes one.
 */
export function requireOperatorToken({ OPERATOR_HOST, OPERATOR_TOKEN }: Config, role: Role): void {
  if (role === 'all' || isCommand(role) || OPERATOR_TOKEN !== undefined || isLoopback(OPERATOR_HOST)) return
  throw new UsageError(
    `OPERATOR_HOST is ${JSON.stringify(OPERATOR_HOST)}, which other machines reach: set OPERATOR_TOKEN (or ` +
      `OPERATOR_TOKEN_FILE), or listen on 127.0.0.1. METRICS_PORT serves health and metrics alone.`
  )
}
