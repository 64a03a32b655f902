import type { Postgres } from '@gamenet/engines'
import { projections, readNewestWrites, type Store, storeAt } from '@gamenet/projector'
import { Refusal } from '@gamenet/schemas'
import type { Logger } from 'pino'

/**
 * Advances the sequences of a write side that is older than the tables, after it was restored from a copy or lost its
 * last writes. Otherwise new changes and persons would reuse earlier numbers: the tables would keep the older change,
 * and another person's key would open the log's events. Lost rows are not restored. To be called before anything is
 * written.
 */
export async function advanceSequences(writes: Postgres, store: Store, logger: Pick<Logger, 'error'>): Promise<void> {
  const read = async () => await (await storeAt('writes', store, projections)).do(readNewestWrites)
  const known = await read().catch((error: unknown) => {
    // If a server is unavailable, the next start checks it.
    if (error instanceof Refusal) return undefined
    throw error
  })
  if (known === undefined) return
  for (const [sequence, what, newest] of [
    ['revision', 'changes of profiles and ratings', known.revision],
    ['person_id_seq', 'people', known.person]
  ] as const) {
    // The last value of an unused sequence is its first one.
    const [row] = await writes.query<{ found: string }>(
      `SELECT s.last_value - (NOT s.is_called)::int AS found FROM ${sequence} AS s`
    )
    const found = Number(row?.found)
    if (found >= newest) continue
    await writes.query(
      `SELECT setval('${sequence}', greatest((SELECT s.last_value FROM ${sequence} AS s), $1::bigint))`,
      [newest]
    )
    logger.error(
      { found, newest },
      `PostgreSQL is older than the tables: its ${what} are numbered to ${found}, those of the tables to ${newest}. Numbering continues after ` +
        'these, so that later changes count. The read tables show changes that PostgreSQL has lost. ' +
        'Restore a newer copy of it, if there is one.'
    )
  }
}
