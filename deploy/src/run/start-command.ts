import type { Command } from 'commander'
import { addCommand, type Terminal } from '../terminal/terminal.js'
import { acceptingOlder, runUntilStopped } from './run-until-stopped.js'
import type { Service } from './service.js'

export function addStart(program: Command, terminal: Terminal): void {
  acceptingOlder(
    addCommand(program, 'start', 'the complete service, on embedded engines unless servers are named')
  ).action((options: { json?: boolean }) => runUntilStopped(terminal, 'all', options, linesOf))
}

function linesOf(service: Service): string[] {
  const engines = Object.entries(service.engines).map(([role, engine]) => `${role} ${engine}`)
  return [
    `Gamenet Stats is running (${engines.join(', ')}).`,
    '',
    `  site             ${service.apiUrl}/`,
    `  API              ${service.apiUrl}/api/online-users`,
    `  description      ${service.apiUrl}/docs`,
    `  operators        npx gamenet status, ${service.operatorUrl}/metrics`,
    ...(service.demoUrl === null
      ? ['  first numbers    after the first visit of UPSTREAM_URL, in a minute; boards follow one by one']
      : [
          `  demo network     ${service.demoUrl}/ is scraped; its history is generated in the background`,
          '  first numbers    in seconds; boards and history in some minutes'
        ]),
    ...(service.demoUser === null
      ? []
      : [
          `  to sign in       ${service.apiUrl}/example/ as ${service.demoUser.username}: ${service.demoUser.email}, ` +
            `password ${service.demoUser.password}`
        ]),
    '',
    'Ctrl-C stops it.'
  ]
}
