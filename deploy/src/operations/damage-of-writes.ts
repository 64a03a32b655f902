import type { Postgres } from '@gamenet/engines'
import type { CheckedPages, PageFault } from '@gamenet/engines/log'
import { Refusal } from '@gamenet/schemas'
import { RESTORE } from '../wiring/engine-failures.js'
import { type Damage, reasonOf } from './damage.js'

export type WritesToCheck = {
  /** Undefined if it cannot be opened. */
  readonly writes: Postgres | undefined
  /** Undefined for a server. */
  readonly files: FilesOfWrites | undefined
  readonly repair: boolean
  /** Whether `repair` rebuilds the indexes of tables that may have lost rows, too. */
  readonly acceptLoss: boolean
}

export type FilesOfWrites = CheckedPages & {
  /** Returns the emptied pages of a table's file, by its B-tree indexes. */
  readonly emptied: (file: string, indexes: readonly string[]) => Promise<readonly number[]>
}

/** The database of the service, and what all databases share. */
const OURS = /^(?:base\/5|global)\//

/** Finds damaged and missing pages, rows and sequences of the write side. Indexes are rebuilt from their tables; tables cannot be. */
export async function damageOfWrites({ writes, files, repair, acceptLoss }: WritesToCheck): Promise<Damage[]> {
  const faults = files?.faults ?? []
  if (writes === undefined)
    return faults.map((fault) => damageOfTable(fault, OURS.test(fault.file) ? 'a table or index' : undefined))
  const relations = await readRelations(writes)
  const relationOf = ({ file, filenode }: Pick<PageFault, 'file' | 'filenode'>) =>
    files === undefined || OURS.test(file) ? relations.find((each) => each.filenode === filenode) : undefined
  const all: PageFault[] = [...faults]
  const damages: Damage[] = []
  const zeroed = new Set(files?.zeroed.map((file) => relationOf(file)?.name))
  const isCompared = await (files === undefined ? Promise.resolve([]) : emptiedTables(writes, relations, files)).then(
    (found) => all.push(...found) >= 0,
    (error: unknown) => {
      if (isOfFullDisk(error)) throw error
      const what = `pages of zeros of the write side cannot be compared with its indexes: ${reasonOf(error)}`
      damages.push({ part: 'writes', what, cost: 'rows of these pages may be lost', repair: RESTORE })
      return false
    }
  )
  all.push(...(await faultsOfScans(writes, relations, all)))
  const damaged = new Set(all.flatMap((fault) => relationOf(fault)?.name ?? []))
  const isSound = ({ name }: Relation) => !damaged.has(name) && !zeroed.has(name)
  /**
   * A table may have been cut together with its index, or have pages of zeros to which a damaged index referred. Then only another index
   * shows that no row is lost; rebuilt, this one would hide it. Lost rows of the catalogs and of long values are missed by reads.
   */
  const mayBeRebuilt = ({ table }: Relation, { isCut }: PageFault) =>
    !damaged.has(table) &&
    ((!table.startsWith('public.') && !isCut && !zeroed.has(table)) ||
      ((isCompared || !zeroed.has(table)) &&
        relations.some((each) => each.table === table && each.isOfAllRows && isSound(each))))
  for (const fault of all) {
    const relation = relationOf(fault)
    if (relation?.kind !== 'i') {
      damages.push(damageOfTable(fault, relation?.name))
      continue
    }
    const { name, table } = relation
    const isComplete = mayBeRebuilt(relation, fault)
    const isRebuilt = repair && (isComplete || acceptLoss) && !damaged.has(table) && (await rebuilt(writes, name))
    const ways = isComplete ? REBUILD : damaged.has(table) ? RESTORE : `${RESTORE}; or ${REBUILD_WITH_LOSS}`
    damages.push({
      part: 'writes',
      what: whatOf(fault, name),
      cost: `queries by this index fail${isComplete ? '' : `; nothing shows whether ${table} lost rows`}`,
      repair: ways,
      ...(isRebuilt && {
        repaired: `the index was rebuilt from ${isComplete ? 'its table' : 'the rows that its table has'}`
      })
    })
  }
  return [...damages, ...(await unreadableRelations(writes, relations, all))]
}

/** Whether PostgreSQL had no space for a statement, which is not damage. */
export function isOfFullDisk(error: unknown): boolean {
  return error instanceof Refusal && error.code === 'disk_full'
}

const REBUILD = 'gamenet verify --repair, which rebuilds the index from its table'
const REBUILD_WITH_LOSS =
  'gamenet verify --repair --accept-loss, which rebuilds the index from the rows that its table has'

function whatOf({ file, pages }: PageFault, name: string): string {
  const path = `writes/${file} (${name})`
  return pages.length === 0 ? `${path} is missing` : `${pages.length} pages of ${path} are damaged`
}

function damageOfTable(fault: PageFault, name: string | undefined): Damage {
  const cost =
    name === undefined
      ? 'none; the service does not read it'
      : 'the rows of these pages are lost; reads and writes of them fail'
  return { part: 'writes', what: whatOf(fault, name ?? 'no table of this program'), cost, repair: RESTORE }
}

type Relation = {
  readonly name: string
  /** `i`, an index; `r`, a table; `t`, the long values of one; `S`, a sequence. */
  readonly kind: string
  readonly filenode: number
  /** Relative to the directory of the database. */
  readonly path: string
  /** Of an index. */
  readonly table: string
  readonly isOfAllRows: boolean
  readonly keys: string
}

async function readRelations(writes: Postgres): Promise<readonly Relation[]> {
  return await writes.query<Relation>(
    `SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) AS name, c.relkind AS kind,
       pg_relation_filenode(c.oid)::int AS filenode, pg_relation_filepath(c.oid) AS path, coalesce(quote_ident(s.nspname) || '.' || quote_ident(t.relname), '') AS table,
       i.indpred IS NULL AND t.oid IS NOT NULL AS "isOfAllRows",
       (SELECT string_agg(pg_get_indexdef(i.indexrelid, k, true), ', ' ORDER BY k) FROM generate_series(1, i.indnkeyatts) AS k) AS keys
     FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
     LEFT JOIN pg_index AS i ON i.indexrelid = c.oid
     LEFT JOIN pg_class AS t ON t.oid = i.indrelid LEFT JOIN pg_namespace AS s ON s.oid = t.relnamespace
     WHERE c.relkind IN ('r', 'i', 'S', 't') ORDER BY name`
  )
}

function isRead({ name }: Pick<Relation, 'name'>): boolean {
  return /^(?:public|pg_catalog)\./.test(name)
}

/** A running PostgreSQL adds pages of zeros and writes them later, so a page is emptied if it is so after each of two checkpoints. */
async function emptiedTables(
  writes: Postgres,
  relations: readonly Relation[],
  files: FilesOfWrites
): Promise<PageFault[]> {
  const faults: PageFault[] = []
  for (const { file, filenode } of files.zeroed) {
    const table = relations.find((each) => OURS.test(file) && each.filenode === filenode && each.kind !== 'i')
    const indexes = relations.filter((each) => each.isOfAllRows && each.table === table?.name).map(({ path }) => path)
    const look = async () => {
      await writes.script('CHECKPOINT')
      return await files.emptied(file, indexes)
    }
    const found = indexes.length === 0 ? [] : await look()
    const still = new Set(found.length === 0 ? [] : await look())
    const pages = found.filter((page) => still.has(page))
    if (pages.length > 0) faults.push({ file, filenode, pages })
  }
  return faults
}

/**
 * Reads each index with the rows that it refers to. Returns pages that an index refers to and the files lack (a file that was cut between
 * two pages has right checksums), and emptied pages of indexes.
 */
async function faultsOfScans(
  writes: Postgres,
  relations: readonly Relation[],
  known: readonly PageFault[]
): Promise<PageFault[]> {
  const faults = new Map<string, PageFault>()
  for (const { table, keys } of relations.filter((each) => each.isOfAllRows && isRead({ name: each.table }))) {
    const read = writes.transaction(async (queries) => {
      await queries.script(ONLY_INDEX_SCANS)
      await queries.query(`SELECT count(t) FROM (SELECT t FROM ${table} AS t ORDER BY ${keys}) AS sorted`)
    })
    const found = faultIn(await read.then(() => '', reasonOf), relations)
    if (found !== undefined && !known.some((each) => each.file === found.file)) faults.set(found.file, found)
  }
  return [...faults.values()]
}

function faultIn(reason: string, relations: readonly Relation[]): PageFault | undefined {
  const [, index, emptied] = EMPTIED_PAGE.exec(reason) ?? []
  const relation = relations.find(({ kind, name }) => kind === 'i' && name.endsWith(`.${index}`))
  if (relation !== undefined) return { filenode: relation.filenode, file: relation.path, pages: [Number(emptied)] }
  const [, page, file = '', filenode] = MISSING_PAGE.exec(reason) ?? MISSING_FILE.exec(reason) ?? []
  if (filenode === undefined) return undefined
  return { file, filenode: Number(filenode), pages: page === '' ? [] : [Number(page)], isCut: true }
}

const EMPTIED_PAGE = /index "([^"]+)" contains unexpected zero page at block (\d+)/
const ONLY_INDEX_SCANS =
  'SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_sort = off'
const MISSING_PAGE = /could not read blocks? (\d+)\S* in file "((?:base\/\d+|global)\/(\d+)[^"]*)"/
const MISSING_FILE = /could not open file ()"((?:base\/\d+|global)\/(\d+))": No such file/

/** Rebuilds an index; false if its table is damaged too. */
async function rebuilt(writes: Postgres, index: string): Promise<boolean> {
  return await writes.script(`REINDEX INDEX ${index}`).then(
    () => true,
    () => false
  )
}

/** Reads all rows and sequences, and returns those that cannot be read for another reason than known damage. */
async function unreadableRelations(
  writes: Postgres,
  relations: readonly Relation[],
  known: readonly PageFault[]
): Promise<Damage[]> {
  const damages: Damage[] = []
  for (const { name, kind } of relations.filter((each) => (each.kind === 'r' || each.kind === 'S') && isRead(each))) {
    try {
      await writes.query(
        kind === 'S' ? `SELECT pg_sequence_last_value('${name}')` : `SELECT sum(length(t::text)) FROM ${name} AS t`
      )
    } catch (error) {
      const reason = reasonOf(error)
      if (known.some(({ file }) => reason.includes(`"${file}"`))) continue
      const what = `${name} of the write side cannot be read: ${reason}`
      damages.push({ part: 'writes', what, cost: 'its rows are lost; reads and writes of it fail', repair: RESTORE })
    }
  }
  return damages
}
