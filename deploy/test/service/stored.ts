import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { openPglite } from '@gamenet/engines'
import { openEmbeddedLog } from '@gamenet/engines/log'
import { topics } from '@gamenet/schemas'

/*
 * A program: hashes of the contents of the log and the write side of a stopped service, as JSON; of only one of them
 * with a second argument, `log` or `writes`. Leases and the outbox change on their own and are excluded.
 */

const [, , directory = '', part] = process.argv
const stored: Record<string, string> = {}
if (part !== 'writes') await hashLog()
if (part !== 'log') await hashWrites()
process.stdout.write(JSON.stringify(stored))

async function hashLog(): Promise<void> {
  const log = openEmbeddedLog({ path: join(directory, 'log') })
  for (const { name } of topics) {
    const hash = createHash('sha256')
    for (const { epoch, partition, next } of await log.extents(name)) {
      hash.update(`${epoch}/${partition}/${next}`)
      if (next === 0) continue
      const ending = new AbortController()
      await log.consume({
        topics: [name],
        startAt: async () => 0,
        deliver: async ({ records }) => {
          hash.update(JSON.stringify(records))
          if ((records.at(-1)?.offset ?? 0) + 1 >= next) ending.abort()
        },
        signal: ending.signal
      })
    }
    stored[`log ${name}`] = hash.digest('hex')
  }
  await log.close()
}

async function hashWrites(): Promise<void> {
  const writes = await openPglite({ dir: join(directory, 'writes') })
  const tables = await writes.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_class AS c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace ORDER BY 1`
  )
  for (const { name } of tables.filter(({ name }) => !/lease|outbox/.test(name))) {
    const [row] = await writes.query<{ hash: string }>(
      `SELECT md5(coalesce(string_agg(t::text, ',' ORDER BY t::text), '')) AS hash FROM ${name} AS t`
    )
    stored[`writes ${name}`] = row?.hash ?? ''
  }
  await writes.close()
}
