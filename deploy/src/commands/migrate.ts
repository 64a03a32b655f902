import type { Command } from 'commander'
import { migrate } from '../operations/migrate.js'
import { withOperations } from './reach.js'
import { addCommand, print, type Terminal } from './terminal.js'

export function addMigrate(program: Command, terminal: Terminal): void {
  addCommand(program, 'migrate', 'migrate the engines to the newest schema; `start` does so too').action(
    async (options: { json?: boolean }) => {
      const { applied } = await withOperations(terminal, (operations) => operations.run(migrate, {}))
      const lines = applied.length === 0 ? ['The schema is up to date.'] : applied.map((name) => `applied ${name}`)
      print(terminal, options.json, { applied }, lines)
    }
  )
}
