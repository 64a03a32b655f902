import { z } from 'zod'
import { NoInput, operation } from '../operation.js'

/** Migrates the engines to the newest schema. */
export const migrate = operation({
  name: 'migration',
  route: 'POST /migrate',
  input: NoInput,
  /** Names of migrations. */
  result: z.object({ applied: z.array(z.string()) }),
  run: async ({ engines, applied }) => {
    const { migrate } = await import('@gamenet/projector')
    const before = applied.splice(0)
    return { applied: [...before, ...(await migrate(engines.clickhouse.control)), ...(await engines.migrateWrites())] }
  }
})
