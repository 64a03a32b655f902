import type { Command } from 'commander'
import { addCommand, type Terminal } from '../terminal/terminal.js'
import { acceptingOlder, runUntilStopped } from './run-until-stopped.js'

/** The roles of a service of several processes, on servers. Each role may run in any number of processes. */
const ROLES = {
  ingest: 'scrapes upstream pages and publishes events; needs KAFKA_BROKERS, CLICKHOUSE_URL and POSTGRES_URL',
  projector:
    'loads the log into tables and updates the read tables; needs KAFKA_BROKERS, CLICKHOUSE_URL and POSTGRES_URL',
  api: 'serves the API; needs CLICKHOUSE_URL and POSTGRES_URL'
} as const

export function addRoles(program: Command, terminal: Terminal): void {
  for (const role of ['ingest', 'projector', 'api'] as const)
    acceptingOlder(addCommand(program, role, ROLES[role])).action((options: { json?: boolean }) =>
      runUntilStopped(terminal, role, options, (service) => [
        `gamenet ${role} is running${service.apiUrl === null ? '' : ` at ${service.apiUrl}`}; operators: ` +
          `${service.operatorUrl}.`
      ])
    )
}
