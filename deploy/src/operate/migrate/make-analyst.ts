import { z } from 'zod'
import { UsageError } from '../../config.js'
import { operation } from '../operation.js'

const BODY_BYTES_MAX = 4096

/** Creates or changes the user for analysts on a ClickHouse server. */
export const makeAnalyst = operation({
  name: 'user for analysts',
  method: 'POST',
  path: '/sql/analyst',
  input: z.strictObject({ password: z.string().min(8) }),
  inputRule: 'The body, as application/octet-stream, is the JSON {"password": at least 8 characters}',
  body: { as: 'json', bytesMax: BODY_BYTES_MAX },
  result: z.object({ user: z.string() }),
  run: async ({ engines: { clickhouse, names } }, { password }) => {
    if (names.tables === 'chDB') {
      throw new UsageError(
        'migrate --analyst creates a user on a ClickHouse server (CLICKHOUSE_URL); embedded tables have no users. ' +
          'gamenet sql --serve serves them.'
      )
    }
    const { ANALYST, analystStatements } = await import('./analyst-grants.js')
    for (const statement of analystStatements(password)) await clickhouse.control.execute(statement)
    return { user: `${ANALYST}_user` }
  }
})
