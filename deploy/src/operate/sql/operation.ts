import { z } from 'zod'
import { FailureError, UsageError } from '../../config.js'
import { SqlSnapshot } from '../../stores/snapshot-report.js'
import { operation } from '../operation.js'

/** Makes hard links to the tables of the datasets, for a command on the same machine. */
export const takeSqlSnapshot = operation({
  name: 'snapshot for SQL',
  route: 'POST /sql/snapshot',
  /** The process of the command: a later snapshot removes those of ended processes. */
  input: z.strictObject({ pid: z.coerce.number().pipe(z.int().min(1)) }),
  inputRule: 'The query parameter pid must be the id of the process that reads the snapshot',
  result: SqlSnapshot,
  run: async ({ engines, damage }, { pid }) => {
    const { directory, clickhouse, ownsTables } = engines
    if (directory === undefined || !ownsTables)
      throw new UsageError(
        'gamenet sql reads embedded tables; these are on a ClickHouse server. `gamenet migrate --analyst` creates a ' +
          'user there, for any client of ClickHouse.'
      )
    const damaged = (await damage.tables.inUse()).map(({ table }) => table)
    if (damaged.length > 0)
      throw new FailureError(
        `A snapshot may lack rows of ${damaged.join(', ')}. Repeat it when gamenet status reports no damaged table.`
      )
    const { takeSnapshot } = await import('../../stores/snapshot.js')
    return await takeSnapshot(clickhouse.control, directory.part('tables'), pid)
  }
})
