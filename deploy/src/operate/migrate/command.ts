import type { Command } from 'commander'
import { UsageError } from '../../config.js'
import { withOperations } from '../../reach.js'
import { addCommand, print, type Terminal } from '../../terminal/terminal.js'
import { makeAnalyst } from './make-analyst.js'
import { migrate } from './operation.js'

export function addMigrate(program: Command, terminal: Terminal): void {
  addCommand(program, 'migrate', 'migrate the engines to the newest schema; `start` does so too')
    .option('--analyst', 'also create a user for analysts on the ClickHouse server, with SQL_PASSWORD as its password')
    .action(async ({ json, analyst = false }: { json?: boolean; analyst?: boolean }) => {
      const { SQL_PASSWORD: password } = terminal.config()
      if (analyst && password === undefined)
        throw new UsageError(
          'migrate --analyst needs the password of the user: set SQL_PASSWORD (or SQL_PASSWORD_FILE).'
        )
      const report = await withOperations(terminal, async (operations) => ({
        ...(await operations.run(migrate, {})),
        ...(analyst && password !== undefined ? await operations.run(makeAnalyst, { password }) : {})
      }))
      const { applied } = report
      print(terminal, json, report, [
        ...(applied.length === 0 ? ['The schema is up to date.'] : applied.map((name) => `applied ${name}`)),
        ...('user' in report ? [`The user ${report.user} may read the datasets.`] : [])
      ])
    })
}
