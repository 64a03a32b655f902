import { readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type RevisionFile, revisionFiles } from '@gamenet/api'
import type { ClickHouse, Postgres } from '@gamenet/engines'
import type { PageFault } from '@gamenet/engines/log'
import { sealKeys } from '@gamenet/ingest'
import {
  changedDefinitions,
  countLoaded,
  eventTableNames,
  findLostParts,
  namesOfUsedTables,
  projections,
  readCheckpoints,
  readEventUsers,
  readMissingEvents,
  readRetractions,
  readWholeBlocks,
  type Store,
  storeAt,
  storeOver
} from '@gamenet/projector'
import { errorMessage, isTableDropped, loadCheckpoint, topics } from '@gamenet/schemas'
import { FailureError } from '../config.js'
import { bytesOfTables } from '../disk/disk-usage.js'
import { fullDisk } from '../disk/full-disk.js'
import { countWithoutKey } from '../erasure/ledger.js'
import { isOfDamage, TABLES_WAY_OUT } from '../wiring/engine-failures.js'
import type { Engines } from '../wiring/engines.js'
import type { PartComparison } from '../wiring/part-list.js'
import { withCheckThread } from './check-files.js'
import type { CheckedLog, CheckedPartition, CheckHost, LoadedPartition } from './check-thread.js'
import type { Finding, VerifyProgress, VerifyReport } from './damage-report.js'

const RESTORE = 'stop the service and restore the newest backup: gamenet restore DIR'
const LOG_COST = 'these events cannot be loaded again; rows of them in the tables stay'
const REASON_LENGTH_MAX = 300

const COST_UNUSED = 'neither steps nor answers use this table; its rebuild cannot be continued or rolled back'
const NO_DIFFERENCE: PartComparison = { vanished: [], miscounted: [], isDamaged: false }

type Damage = Omit<Finding, 'isRepaired'> & { isRepaired?: boolean }
type ReportBytes = (phase: VerifyProgress['phase'], bytes: number) => void

export type DamageOptions = {
  readonly repair: boolean
  /** The tables that lacked parts when they were opened. */
  readonly lost: readonly string[]
  /** How the tables of a stopped service differ from the list of their parts. */
  readonly parts?: PartComparison | undefined
}

/** Verifies all checksums, and compares the parts with each other. */
export async function findDamage(
  engines: Pick<Engines, 'clickhouse' | 'directory' | 'log' | 'logChoice' | 'names' | 'writes'>,
  options: DamageOptions,
  onProgress: (progress: VerifyProgress) => void,
  signal: AbortSignal
): Promise<VerifyReport> {
  const begun = performance.now()
  const { clickhouse, directory, log } = engines
  const { repair } = options
  const damages: Damage[] = []
  const writes = await engines.writes().catch(async (error: unknown) => {
    const full = directory && (await fullDisk(directory.path, error))
    if (full !== undefined) throw full
    if (error instanceof FailureError) throw error
    const what = `the write side is unusable: ${reasonOf(error)}`
    damages.push({ part: 'writes', what, cost: 'edits, ratings and events about people fail', repair: RESTORE })
    return undefined
  })
  const tablesBytes = await bytesOfTables(clickhouse.control, 'active')
  let [bytes, bytesTotal] = [0, tablesBytes]
  const report: ReportBytes = (phase, more) => {
    signal.throwIfAborted()
    bytes += more
    bytesTotal = Math.max(bytesTotal, bytes)
    onProgress({ phase, bytes, bytesTotal })
  }
  const writesDirectory = engines.names.writes === 'PostgreSQL' ? undefined : directory?.part('writes')
  const datasetsDirectory = directory?.part('datasets')
  const store = await storeAt('writes', storeOver(clickhouse.rebuild), projections)
  const loaded = await loadedPartitions(store)
  const host: CheckHost = {
    read: report,
    // Unreadable keys are a finding of their own.
    keys: async (people) => (writes === undefined ? new Map() : await sealKeys(writes, people).catch(() => new Map()))
  }
  const checkedLog = await withCheckThread(host, async (call) => {
    if (writesDirectory !== undefined) {
      const faults = await call('pages', writesDirectory)
      const cut = writes === undefined ? [] : await missingPages(writes, faults)
      damages.push(...(await damageOfPages([...faults, ...cut], writes, repair)))
    }
    if (writes !== undefined) damages.push(...(await damageOfWrites(writes)), ...(await damageOfKeys(store, writes)))
    if (datasetsDirectory !== undefined) {
      const damaged = await call('datasets', datasetsDirectory, await revisionFiles(datasetsDirectory))
      damages.push(...(await damageOfDatasets(datasetsDirectory, damaged, repair)))
    }
    if (log.files === undefined) return undefined
    return await call('log', engines.logChoice, loaded).catch((error: unknown) => {
      signal.throwIfAborted()
      const what = `the log cannot be read: ${reasonOf(error)}`
      damages.push({ part: 'log', what, cost: LOG_COST, repair: RESTORE })
      return undefined
    })
  })
  if (checkedLog !== undefined) damages.push(...damageOfLog(checkedLog))
  damages.push(...(await damageOfTables(clickhouse, options, report)))
  if (engines.names.tables === 'chDB') damages.push(...(await changedTables(clickhouse.control)))
  const partitions = checkedLog?.partitions ?? []
  damages.push(...(await damageOfCheckpoints({ store, log }, loaded, partitions).catch(noneIfDamaged)))
  return {
    findings: damages.map(({ isRepaired = false, ...finding }) => ({
      ...finding,
      what: shown(finding.what),
      isRepaired
    })),
    bytes,
    tookMs: Math.round(performance.now() - begun),
    notChecked: [
      ...(log.files === undefined ? ['files of the log'] : []),
      ...(writesDirectory === undefined ? ['files of the write side'] : [])
    ]
  }
}

/** An unreadable table is a finding of its own. */
function noneIfDamaged(error: unknown): never[] {
  if (isOfDamage(error)) return []
  throw error
}

/** Returns an engine's message on one line without its stack. */
function shown(text: string): string {
  const line = (text.split(/,? Stack trace/)[0] ?? '').replace(/\s+/g, ' ').trim()
  return line.length > REASON_LENGTH_MAX ? `${line.slice(0, REASON_LENGTH_MAX)}…` : line
}

function reasonOf(error: unknown): string {
  const said = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return shown(errorMessage(said))
}

/** Verifies the pages of the write side by their checksums. Indexes are rebuilt from their tables; tables cannot be. */
async function damageOfPages(
  faults: readonly PageFault[],
  writes: Postgres | undefined,
  repair: boolean
): Promise<Damage[]> {
  const damages: Damage[] = []
  for (const { file, filenode, pages } of faults) {
    const [relation] =
      (await writes?.query<{ name: string; kind: string }>(
        `SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) AS name, c.relkind AS kind
       FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE pg_relation_filenode(c.oid) = $1`,
        [filenode]
      )) ?? []
    const { name = 'no table of this program', kind = '' } = relation ?? {}
    const what = `${pages.length} pages of writes/${file} (${name}) are damaged`
    if (kind === 'i' && writes !== undefined) {
      const isMade = repair && (await made(writes, name))
      damages.push({
        part: 'writes',
        what,
        cost: 'queries by this index fail',
        repair: 'rebuild the index from its table: gamenet verify --repair',
        isRepaired: isMade
      })
    } else {
      const isOurs = (kind !== '' || writes === undefined) && /^base\/5\//.test(file)
      const cost = isOurs
        ? 'the rows of these pages are lost; reads and writes of them fail'
        : 'none; the service does not read it'
      damages.push({ part: 'writes', what, cost, repair: RESTORE })
    }
  }
  return damages
}

/**
 * Returns pages that an index refers to and the files lack: a file that was cut between two pages has right checksums. Each index is
 * read with the rows that it refers to.
 */
async function missingPages(writes: Postgres, known: readonly PageFault[]): Promise<PageFault[]> {
  const indexes = await writes.query<{ table: string; keys: string }>(
    `SELECT i.indrelid::regclass::text AS table,
       (SELECT string_agg(pg_get_indexdef(i.indexrelid, k, true), ', ' ORDER BY k) FROM generate_series(1, i.indnkeyatts) AS k) AS keys
     FROM pg_index AS i JOIN pg_class AS t ON t.oid = i.indrelid
     WHERE t.relkind = 'r' AND i.indpred IS NULL AND t.relnamespace IN ('public'::regnamespace, 'pg_catalog'::regnamespace)`
  )
  const faults = new Map<string, PageFault>()
  for (const { table, keys } of indexes) {
    const read = writes.transaction(async (queries) => {
      await queries.script(ONLY_INDEX_SCANS)
      await queries.query(`SELECT count(t) FROM (SELECT t FROM ${table} AS t ORDER BY ${keys}) AS sorted`)
    })
    const reason = await read.then(() => '', reasonOf)
    const [, page, file = '', filenode] = MISSING_PAGE.exec(reason) ?? []
    if (filenode !== undefined && !known.some((each) => each.file === file))
      faults.set(file, { file, filenode: Number(filenode), pages: [Number(page)] })
  }
  return [...faults.values()]
}

const ONLY_INDEX_SCANS =
  'SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_sort = off'
const MISSING_PAGE = /could not read blocks? (\d+)\S* in file "((?:base\/\d+|global)\/(\d+)[^"]*)"/

/** Rebuilds an index; false if its table is damaged too. */
async function made(writes: Postgres, index: string): Promise<boolean> {
  return await writes.script(`REINDEX INDEX ${index}`).then(
    () => true,
    () => false
  )
}

/** Reads all rows and sequences of the write side. */
async function damageOfWrites(writes: Postgres): Promise<Damage[]> {
  const damages: Damage[] = []
  const relations = await writes.query<{ name: string; kind: string }>(
    `SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) AS name, c.relkind AS kind FROM pg_class AS c
     JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE c.relkind IN ('r', 'S') AND n.nspname IN ('public', 'pg_catalog') ORDER BY name`
  )
  for (const { name, kind } of relations) {
    try {
      await writes.query(
        kind === 'S' ? `SELECT pg_sequence_last_value('${name}')` : `SELECT sum(length(t::text)) FROM ${name} AS t`
      )
    } catch (error) {
      const what = `${name} of the write side cannot be read: ${reasonOf(error)}`
      damages.push({
        part: 'writes',
        what,
        cost: 'its rows are lost; reads and writes of it fail',
        repair: RESTORE
      })
    }
  }
  return damages
}

/** Finds users whose events were loaded with keys that the write side lacks: it was deleted, or restored from an older copy. */
async function damageOfKeys(store: Store, writes: Postgres): Promise<Damage[]> {
  const users = new Set<string>()
  for (const { name } of topics.filter(({ people }) => people !== undefined)) {
    // An unreadable table is a finding of its own.
    for (const userKey of await store.do(readEventUsers, name).catch(() => [])) users.add(userKey)
  }
  // An unreadable table is a finding of its own.
  const lost = await countWithoutKey(writes, [...users]).catch(() => 0)
  if (lost === 0) return []
  const what = `the write side has no key of ${lost} users with events in the tables: it was deleted, or is older than the tables`
  const cost = 'their events cannot be loaded again; profiles, ratings and erasures since then are lost'
  return [{ part: 'writes', what, cost, repair: RESTORE }]
}

/** The newest revision of a file is made again from the tables, with its number; an earlier one cannot be. */
async function damageOfDatasets(
  directory: string,
  damaged: readonly RevisionFile[],
  repair: boolean
): Promise<Damage[]> {
  const damages: Damage[] = []
  for (const { name, isNewest } of damaged) {
    if (repair) await rm(join(directory, name))
    damages.push({
      part: 'datasets',
      what: `${join('datasets', name)} does not match its SHA-256`,
      cost: 'readers of this file fail or read wrong values',
      repair: `gamenet verify --repair removes it; ${isNewest ? 'it is made again when it is requested' : 'this earlier revision is then no longer served'}`,
      isRepaired: repair
    })
  }
  return damages
}

/**
 * Reads how far the partitions of the log are loaded. Rows are counted before the log is read: an erasure deletes keys before rows, so
 * events without a row at this time are not counted there either.
 */
async function loadedPartitions(store: Store): Promise<LoadedPartition[]> {
  const topicOf = new Map(topics.map((topic) => [loadCheckpoint(topic.name), topic]))
  const partitions: LoadedPartition[] = []
  for (const { name, ...place } of await store.do(readCheckpoints).catch(noneIfDamaged)) {
    const topic = topicOf.get(name)
    if (topic === undefined) continue
    // An unreadable table is a finding of its own.
    const stored = await store.do(countLoaded, topic.name, place).catch(() => undefined)
    const whole = topic.people && (await store.do(readWholeBlocks, topic.name, place).catch(() => undefined))
    partitions.push({ topic: topic.name, ...place, stored, whole })
  }
  return partitions
}

/** Returns batches that do not match their checksum, and people whose keys cannot decrypt their events. */
function damageOfLog({ faults, partitions }: CheckedLog): Damage[] {
  return [
    ...faults.map(({ topic, epoch, partition, first, next, reason }): Damage => {
      const what = `the log's events ${topic} ${epoch}/${partition}/${first} to ${next - 1} cannot be read: ${reason}`
      return { part: 'log', what, cost: LOG_COST, repair: RESTORE }
    }),
    ...partitions.flatMap(({ topic, epoch, partition, unopened }): Damage[] => {
      if (unopened === undefined) return []
      const what = `the keys of ${unopened.count} people cannot decrypt their events of ${topic} ${epoch}/${partition}, from offset ${unopened.first} on`
      return [{ part: 'seals', what, cost: LOG_COST, repair: RESTORE }]
    })
  ]
}

/** Verifies every part of every table, as long statements: large tables take minutes on a slow disk. */
export async function damageOfTables(
  { control: tables, rebuild }: Pick<ClickHouse, 'control' | 'rebuild'>,
  { repair, lost, parts: { vanished, miscounted, isDamaged } = NO_DIFFERENCE }: DamageOptions,
  report: ReportBytes
): Promise<Damage[]> {
  const damages: Damage[] = []
  const nameOf = await namesOfUsedTables(storeOver(tables))
  const isUnused = (table: string) => table.includes('__') && !nameOf.has(table)
  const detached = (await findLostParts(storeOver(tables))).map(({ table }) => table)
  const missing = [...detached, ...vanished.map(({ table }) => nameOf.get(table) ?? table)]
  for (const table of [...missing, ...lost.filter((each) => !missing.includes(each))]) {
    damages.push({
      part: 'tables',
      what: `a part of ${table} is missing, or was detached because it was unreadable`,
      cost: isUnused(table) ? COST_UNUSED : 'its rows are missing until they are restored',
      repair: isUnused(table) ? 'gamenet start, which drops the table' : 'gamenet start',
      isRepaired: repair && !missing.includes(table)
    })
  }
  for (const { table, part, rows } of miscounted) {
    damages.push({
      part: 'tables',
      what: `part ${part} of ${table} has ${rows} rows, but its count.txt says otherwise`,
      cost: 'answers lack rows',
      repair: 'gamenet start, or gamenet verify --repair',
      isRepaired: repair
    })
  }
  if (isDamaged) {
    const cost = 'this check and the next start do not notice parts that vanished'
    const way = 'gamenet start, or gamenet verify --repair'
    damages.push({ part: 'tables', what: 'parts.json is damaged', cost, repair: way, isRepaired: repair })
  }
  for (const { name, path, bytes } of await tablesOfParts(tables)) {
    for (const { part, message } of await damagedParts(rebuild, name, miscounted)) {
      if (repair && part !== '') await detachPart(tables, name, path, part)
      damages.push({
        part: 'tables',
        what: `part ${part} of ${name} is damaged: ${message}`,
        cost: isUnused(name) ? COST_UNUSED : 'queries that read it fail, or return wrong answers',
        repair: `gamenet verify --repair detaches it, and the next start ${isUnused(name) ? 'drops the table' : 'restores its rows'}`,
        isRepaired: repair && part !== ''
      })
    }
    report('tables', bytes)
  }
  return damages
}

/** Detaches damaged parts of the tables that a start reads before it can repair any: those without generations. */
export async function detachDamagedBookkeeping(
  { control: tables, rebuild }: Pick<ClickHouse, 'control' | 'rebuild'>,
  miscounted: PartComparison['miscounted'] = []
): Promise<void> {
  for (const { name, path } of await tablesOfParts(tables)) {
    if (name.includes('__')) continue
    for (const { part } of await damagedParts(rebuild, name, miscounted))
      if (part !== '') await detachPart(tables, name, path, part)
  }
}

type TableOfParts = { readonly name: string; readonly path: string; readonly bytes: number }

async function tablesOfParts(tables: ClickHouse['control']): Promise<TableOfParts[]> {
  const rows = await tables.rows(
    `SELECT t.name AS name, t.data_paths[1] AS path, t.total_bytes AS bytes FROM system.tables AS t
     WHERE t.database = currentDatabase() AND t.engine LIKE '%MergeTree' ORDER BY name`
  )
  return rows.map(({ name, path, bytes }) => ({ name: String(name), path: String(path), bytes: Number(bytes ?? 0) }))
}

/** Returns the parts whose checksums are wrong, without those with only a wrong number of rows; the name is empty if it is unknown. */
async function damagedParts(
  rebuild: ClickHouse['rebuild'],
  table: string,
  miscounted: PartComparison['miscounted']
): Promise<{ readonly part: string; readonly message: string }[]> {
  const parts = await rebuild
    .rows(`CHECK TABLE ${table}`)
    .catch((error: unknown) =>
      isTableDropped(error) ? [] : [{ is_passed: 0, part_path: '', message: reasonOf(error) }]
    )
  return parts
    .filter(({ is_passed: isPassed }) => Number(isPassed) !== 1)
    .map(({ part_path: part, message }) => ({ part: String(part), message: String(message) }))
    .filter(({ part }) => !miscounted.some((each) => each.table === table && each.part === part))
}

async function changedTables(tables: ClickHouse['control']): Promise<Damage[]> {
  const cost = 'answers from it may be wrong'
  return (await changedDefinitions(tables)).map((name) => {
    return { part: 'tables', what: `${name} is not defined as the program created it`, cost, repair: TABLES_WAY_OUT }
  })
}

/** Detaches a part in the way in which the engine detaches an unreadable one at its start. */
async function detachPart(tables: ClickHouse['control'], table: string, path: string, part: string): Promise<void> {
  const folder = join(path, 'detached')
  const before = new Set(await readdir(folder).catch(() => []))
  await tables.execute(`ALTER TABLE ${table} DETACH PART '${part}'`)
  const detached = (await readdir(folder)).filter((name) => !before.has(name))
  if (detached.length !== 1) throw new FailureError(`${part} of ${table} could not be detached to ${dirname(folder)}.`)
  await rename(join(folder, detached[0] ?? ''), join(folder, `broken-on-start_${detached[0]}`))
}

/** Verifies that checkpoints are within the log, and that event tables contain all events before them. */
async function damageOfCheckpoints(
  { store, log }: Pick<Engines, 'store' | 'log'>,
  loaded: readonly LoadedPartition[],
  checked: readonly CheckedPartition[]
): Promise<Damage[]> {
  const damages: Damage[] = []
  // Events of an undone import are in the log, but not in the table.
  const retracted = await store.do(readRetractions)
  for (const { name: topic } of topics) {
    const table = eventTableNames.get(topic)
    const extents = await log.extents(topic)
    for (const { epoch, partition, next, stored } of loaded.filter((each) => each.topic === topic)) {
      const isHere = (each: { epoch: number; partition: number }) =>
        each.epoch === epoch && each.partition === partition
      const extent = extents.find(isHere)
      const events = checked.find((each) => each.topic === topic && isHere(each))?.events ?? 0
      const place = `${topic} ${epoch}/${partition}`
      if (extent === undefined || next > extent.next || (next < extent.first && next > 0)) {
        damages.push({
          part: 'checkpoints',
          what: `${place} is loaded up to ${next}; the log has ${extent?.first ?? 0} to ${extent?.next ?? 0}`,
          cost: 'the topic is stalled; events that the log lost cannot be loaded again',
          repair: `gamenet gap list, then gamenet gap accept ${topic}; or ${RESTORE}`
        })
        continue
      }
      if (
        table === undefined ||
        retracted.some((each) => each.topic === topic) ||
        stored === undefined ||
        stored.events + stored.deadLetters >= events
      )
        continue
      damages.push({
        part: 'checkpoints',
        what: `${table} holds ${stored.events} events of ${place} below ${next}; the log has ${events}`,
        cost: 'answers lack these events',
        repair:
          'load them again: `gamenet rebuild start <projection> --from-log`, for a projection that reads the table'
      })
    }
  }
  for (const { table, topic, epoch, partition, next } of await readMissingEvents(store)) {
    damages.push({
      part: 'checkpoints',
      what: `${table} lost rows of ${topic} ${epoch}/${partition}; the log has only the events from offset ${next} on`,
      cost: 'rows of earlier events may be missing',
      repair: RESTORE
    })
  }
  return damages
}
