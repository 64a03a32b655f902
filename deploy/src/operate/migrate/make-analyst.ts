import { z } from 'zod'
import { SQL_PASSWORD_LENGTH_MIN as PASSWORD_LENGTH_MIN, UsageError } from '../../config.js'
import { operation } from '../operation.js'

const BODY_BYTES_MAX = 4096

/** Creates or changes the users who read datasets on a ClickHouse server. A given password replaces the one before. */
export const makeAnalyst = operation({
  name: 'user for analysts',
  route: 'POST /sql/analyst',
  input: z.strictObject({ password: z.string().min(PASSWORD_LENGTH_MIN) }),
  inputRule: `The body, application/octet-stream, is JSON: {"password": at least ${PASSWORD_LENGTH_MIN} characters}`,
  body: { as: 'json', bytesMax: BODY_BYTES_MAX },
  result: z.object({ user: z.string() }),
  run: async ({ engines: { clickhouse, ownsTables, servicePassword } }, { password }) => {
    if (ownsTables)
      throw new UsageError(
        'migrate --analyst creates users on a ClickHouse server (CLICKHOUSE_URL); the embedded one has them. ' +
          'gamenet sql --serve serves its tables.'
      )
    const { ANALYST, readerStatements } = await import('@gamenet/engines/sql')
    const { datasetViews } = await import('../../stores/dataset-views.js')
    const { control } = clickhouse
    const [current] = await control.rows('SELECT currentDatabase() AS name')
    await control.execute(`CREATE DATABASE IF NOT EXISTS ${ANALYST}`)
    for (const { name, select } of datasetViews((table) => table)) {
      const security = 'DEFINER = CURRENT_USER SQL SECURITY DEFINER'
      await control.execute(`CREATE OR REPLACE VIEW ${ANALYST}.${name} ${security} AS ${select}`)
    }
    const database = String(current?.name)
    for (const statement of readerStatements({ password, servicePassword, database })) await control.execute(statement)
    return { user: ANALYST }
  }
})
