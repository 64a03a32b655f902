import type { Postgres, Queries } from '@gamenet/engines'
import { isOfFullDisk } from '../../data-directory/disk-errors.js'
import { reasonOf } from '../../stores/damage.js'
import type { Finding } from '../../stores/damage-report.js'
import { RESTORE } from '../../stores/engine-failures.js'

/* PostgreSQL checks the checksum of each page that it reads from the disk, so all of it is read once. */

/**
 * Reads each table and sequence of the write side, and each index with the rows that it refers to: so pages are found
 * that are damaged, or lacking. With `amcheck`, indexes are compared with their tables. What refuses to be read is a
 * finding.
 */
export async function damageOfWrites(writes: Postgres, isEmbedded: boolean): Promise<Finding[]> {
  // It is part of the embedded PostgreSQL; a server has it where an operator has installed it.
  if (isEmbedded) await writes.script('CREATE EXTENSION IF NOT EXISTS amcheck').catch(() => undefined)
  const relations = await readRelations(writes)
  const damages: Finding[] = []
  const damaged = new Set<string>()
  for (const relation of relations) {
    const { name, table } = relation
    if (damaged.has(table)) continue
    const failure = await readWhole(writes, relation).then(
      () => undefined,
      (error: unknown) => error
    )
    if (failure === undefined) continue
    if (isOfFullDisk(failure)) throw failure
    damaged.add(name)
    damages.push({
      part: 'writes',
      what: `${name} of the write side cannot be read: ${reasonOf(failure)}`,
      cost: 'its rows may be lost; reads and writes of it fail',
      repair: RESTORE
    })
  }
  return damages
}

type Relation = {
  readonly oid: number
  readonly name: string
  /** `i`, an index; `r`, a table; `S`, a sequence. */
  readonly kind: string
  /** Of an index; otherwise the same as the name. */
  readonly table: string
  /** The expressions by which an index orders the rows; null if it has not all of them. */
  readonly keys: string | null
  /** The function of amcheck; null where it is not installed, or for another kind of index. */
  readonly check: string | null
}

/** Tables first: a damaged one is found once, not by each of its indexes again. */
async function readRelations(writes: Queries): Promise<readonly Relation[]> {
  return await writes.query<Relation>(
    `SELECT c.oid::int AS oid, n.nspname || '.' || quote_ident(c.relname) AS name, c.relkind AS kind,
       coalesce(s.nspname || '.' || quote_ident(t.relname), n.nspname || '.' || quote_ident(c.relname)) AS table,
       CASE WHEN i.indpred IS NULL AND n.nspname <> 'pg_toast' THEN
         (SELECT string_agg(pg_get_indexdef(i.indexrelid, k, true), ', ' ORDER BY k)
          FROM generate_series(1, i.indnkeyatts) AS k)
       END AS keys,
       CASE WHEN m.amname = 'btree' THEN
         (SELECT p.oid::regproc::text FROM pg_proc AS p JOIN pg_extension AS e ON e.extname = 'amcheck'
          JOIN pg_depend AS d ON d.objid = p.oid AND d.refobjid = e.oid AND d.deptype = 'e'
          WHERE p.proname = 'bt_index_check' ORDER BY p.pronargs DESC LIMIT 1)
       END AS check
     FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace LEFT JOIN pg_am AS m ON m.oid = c.relam
     LEFT JOIN pg_index AS i ON i.indexrelid = c.oid
     LEFT JOIN pg_class AS t ON t.oid = i.indrelid LEFT JOIN pg_namespace AS s ON s.oid = t.relnamespace
     WHERE c.relkind IN ('r', 'i', 'S') AND n.nspname IN ('public', 'pg_catalog', 'pg_toast')
     ORDER BY c.relkind = 'i', name`
  )
}

const ONLY_INDEX_SCANS =
  'SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_indexonlyscan = off; ' +
  'SET LOCAL enable_sort = off'

async function readWhole(writes: Postgres, { oid, name, kind, table, keys, check }: Relation): Promise<void> {
  // Long values are read with the rows that refer to them.
  if (kind === 'r') await writes.query(`SELECT sum(length(t::text)) FROM ${name} AS t`)
  if (kind === 'S') await writes.query(`SELECT pg_sequence_last_value('${name}')`)
  if (kind !== 'i') return
  if (keys !== null)
    await writes.transaction(async (queries) => {
      await queries.script(ONLY_INDEX_SCANS)
      await queries.query(`SELECT count(t) FROM (SELECT t FROM ${table} AS t ORDER BY ${keys}) AS sorted`)
    })
  if (check !== null) await writes.query(`SELECT ${check}($1::oid::regclass, true)`, [oid])
}
