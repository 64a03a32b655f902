import { readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { revisionFiles, type UnreadableDescription } from '@gamenet/api'
import type { ClickHouse, Postgres } from '@gamenet/engines'
import { sealKeys } from '@gamenet/ingest'
import {
  changedDefinitions,
  countLoaded,
  eventTableNames,
  findLostParts,
  namesOfUsedTables,
  projections,
  readAppliedErasures,
  readCheckpoints,
  readMissingEvents,
  readOffsetsOf,
  readRetractions,
  readStalls,
  readWholeBlocks,
  type Store,
  storeAt,
  storeOver
} from '@gamenet/projector'
import { abortable, errorCode, isTableDropped, loadCheckpoint, Refusal, topics } from '@gamenet/schemas'
import { FailureError, FilesDamaged } from '../config.js'
import { bytesOfTables } from '../disk/disk-usage.js'
import { fullDisk } from '../disk/full-disk.js'
import { missingErasures, peopleBeingErased, peopleOf } from '../erasure/ledger.js'
import {
  engineFailure,
  isOfDamage,
  MAKE_TABLES_AGAIN,
  NEWER_WRITES,
  REPAIR_SERVER,
  RESTORE
} from '../wiring/engine-failures.js'
import type { Engines, SoundEngines } from '../wiring/engines.js'
import type { LogChoice, OpenLog } from '../wiring/log.js'
import { markLost, type PartComparison } from '../wiring/part-list.js'
import { wayFromOlderLog } from '../wiring/whole-log.js'
import { type CheckCall, withCheckThread } from './check-files.js'
import type { CheckedLog, CheckedPartition, CheckHost, DamagedRevision, LoadedPartition } from './check-thread.js'
import { type Damage, reasonOf, shown } from './damage.js'
import { damageOfWrites, type FilesOfWrites, isOfFullDisk } from './damage-of-writes.js'
import type { Finding, VerifyProgress, VerifyReport } from './damage-report.js'
import { findLostWrites } from './lost-writes.js'

const LOG_COST = 'these events cannot be loaded again; rows of them in the tables stay'

/** The way out of a damaged batch of Kafka. */
const REPAIR_KAFKA = 'make a whole replica the leader of the partition, or accept a gap: docs/operators/kafka.md'

const LOAD_AGAIN =
  'load them again: `gamenet rebuild start <projection> --from-log`, for a projection that reads the table'

const COST_UNUSED = 'neither steps nor answers use this table; its rebuild cannot be continued or rolled back'
const COSTS = {
  log: 'the service does not start; events that are not in the tables are lost',
  tables: 'the service does not start, or queries that read these files fail',
  writes: 'edits, ratings and events about people fail'
}
const NO_DIFFERENCE: PartComparison = { vanished: [], miscounted: [], isDamaged: false }

type ReportBytes = (phase: VerifyProgress['phase'], bytes: number) => void

export type DamageOptions = {
  readonly repair: boolean
  /** Whether `repair` rebuilds indexes of PostgreSQL that may hide lost rows. */
  readonly acceptLoss?: boolean
  /** The tables that lacked parts when they were opened. */
  readonly lost: readonly string[]
  /** How the tables of a stopped service differ from the list of their parts. */
  readonly parts?: PartComparison | undefined
  /** Whether the tables are on a server, where nothing is repaired. */
  readonly isServer?: boolean
  /** Why engines of a stopped service are not open. */
  readonly damaged?: readonly FilesDamaged[]
}

/** Verifies all checksums of the engines that are open, and compares the parts with each other. */
export async function findDamage(
  engines: SoundEngines,
  options: DamageOptions,
  onProgress: (progress: VerifyProgress) => void,
  signal: AbortSignal
): Promise<VerifyReport> {
  const begun = performance.now()
  const { clickhouse, directory, log, names } = engines
  const { repair, acceptLoss = false } = options
  const damages: Damage[] = (options.damaged ?? []).map(findingOf)
  const unusable: Damage[] = []
  const writes = await engines
    .writes()
    .catch((error: unknown) => {
      if (!(error instanceof Refusal)) throw error
      // Its tables and indexes say more, also those that a migration reads.
      unusable.push(findingOf(writesFailure(error)))
      return engines.openWrites()
    })
    .catch(async (error: unknown) => {
      const full = directory && (await fullDisk(directory.path, error))
      if (full !== undefined) throw full
      damages.push(findingOf(writesFailure(error)))
      return undefined
    })
  const tablesBytes = clickhouse === undefined ? 0 : await bytesOfTables(clickhouse.control, 'active')
  let [bytes, bytesTotal] = [0, tablesBytes]
  const report: ReportBytes = (phase, more) => {
    signal.throwIfAborted()
    bytes += more
    bytesTotal = Math.max(bytesTotal, bytes)
    onProgress({ phase, bytes, bytesTotal })
  }
  const writesDirectory = names.writes === 'PostgreSQL' ? undefined : directory?.part('writes')
  const datasetsDirectory = directory?.part('datasets')
  const areTablesRead = clickhouse !== undefined && !damages.some(({ part }) => part === 'tables')
  const store = areTablesRead
    ? await storeAt('writes', storeOver(clickhouse.rebuild), projections).catch(undefinedIfDamaged)
    : undefined
  const loaded = store === undefined ? [] : await loadedPartitions(store)
  const erasedAgain = await missingErasuresOf(store, writes).catch(noneIfDamaged)
  const host: CheckHost = { read: report, keys: (people) => keysOf(writes, people, erasedAgain) }
  const checkedLog = await withCheckThread(host, async (call) => {
    const files = writesDirectory === undefined ? undefined : await filesOfWrites(call, writesDirectory)
    const found = await damageOfWrites({ writes, files, repair, acceptLoss }).catch((error: unknown) => [
      findingOf(writesFailure(error))
    ])
    damages.push(...(found.length === 0 ? unusable : found))
    if (datasetsDirectory !== undefined) {
      const { files, unreadable } = await revisionFiles(datasetsDirectory)
      const damaged = await call('datasets', datasetsDirectory, files)
      damages.push(...(await damageOfDatasets(datasetsDirectory, [...damaged, ...unreadable], repair)))
    }
    if (log === undefined) return undefined
    return await abortable(signal, call('log', engines.logChoice, loaded)).catch((error: unknown) => {
      signal.throwIfAborted()
      damages.push(damageOfUnreadableLog(log, error))
      return undefined
    })
  })
  if (checkedLog !== undefined) damages.push(...damageOfLog(checkedLog, engines.logChoice))
  const isSound = !damages.some(({ part }) => part === 'writes')
  const older =
    writes !== undefined && store !== undefined && isSound
      ? await damageOfOlderWrites(store, writes, { log: checkedLog, erasedAgain }).catch(noneIfDamaged)
      : []
  damages.push(...older)
  if (clickhouse !== undefined) {
    damages.push(...(await damageOfTables(clickhouse, { ...options, isServer: names.tables !== 'chDB' }, report)))
    if (names.tables === 'chDB') damages.push(...(await changedTables(clickhouse.control)))
  }
  const partitions = checkedLog?.partitions ?? []
  if (store !== undefined && log !== undefined && (checkedLog ?? log.files) !== undefined)
    damages.push(
      ...(await damageOfCheckpoints({ store, log }, loaded, partitions, older.length > 0).catch(noneIfDamaged))
    )
  return {
    findings: damages.map(shownFinding),
    bytes,
    tookMs: Math.round(performance.now() - begun),
    notChecked: [
      ...(engines.logChoice.engine === 'kafka' ? ['files of the log'] : []),
      ...(writesDirectory === undefined ? ['files of the write side'] : [])
    ]
  }
}

function shownFinding({ repaired, repair, ...finding }: Damage): Finding {
  return {
    ...finding,
    what: shown(finding.what),
    repair: repaired ?? repair,
    isRepaired: repaired !== undefined
  }
}

/** Returns the keys that rebuilds may use: the next start deletes those of users who are erased again. */
async function keysOf(
  writes: Postgres | undefined,
  people: readonly number[],
  erasedAgain: readonly string[]
): Promise<ReadonlyMap<number, Uint8Array>> {
  if (writes === undefined) return new Map()
  const keys = new Map(await sealKeys(writes, people).catch(noneIfDamaged))
  if (erasedAgain.length > 0) for (const person of await peopleOf(writes, people, erasedAgain)) keys.delete(person)
  return keys
}

async function filesOfWrites(call: CheckCall, directory: string): Promise<FilesOfWrites> {
  const emptied = (table: string, indexes: readonly string[]) => call('emptiedPages', directory, table, indexes)
  return { ...(await call('pages', directory)), emptied }
}

function findingOf({ part, what, repair }: FilesDamaged): Damage {
  return { part, what, cost: COSTS[part], repair }
}

function writesFailure(error: unknown): FilesDamaged {
  const failure = engineFailure(error, 'chDB')
  if (failure instanceof FilesDamaged) return failure
  if (failure instanceof FailureError || isOfFullDisk(failure)) throw failure
  return new FilesDamaged('writes', `the write side is unusable: ${reasonOf(error)}`, RESTORE)
}

/** An unreadable table of the tables or of the write side is a finding of its own. */
function noneIfDamaged(error: unknown): never[] {
  undefinedIfDamaged(error)
  return []
}

function undefinedIfDamaged(error: unknown): undefined {
  if (!isOfDamage(error) && !isTableDropped(error) && !DAMAGED_WRITES.test(errorCode(error))) throw error
}

/** Damage that `openPglite` reports, and other errors of PostgreSQL in the classes data exception, system error and internal error. */
const DAMAGED_WRITES = /^(data_damaged|(22|58|XX)\w{3})$/

/**
 * Finds what a write side lacks that was deleted, or restored from an older copy. Of people without their keys, only events
 * show those who returned since then with new keys; only the tables show those whose events the log no longer has.
 */
async function damageOfOlderWrites(
  store: Store,
  writes: Postgres,
  { log, erasedAgain }: { readonly log: CheckedLog | undefined; readonly erasedAgain: readonly string[] }
): Promise<Damage[]> {
  const kept = log === undefined ? 0 : await keptWithoutKey(store, writes, log)
  const { users, changes } = await findLostWrites(store, writes)
  const lost = Math.max(kept, users)
  const damages: Damage[] = []
  if (erasedAgain.length > 0) {
    const what = `the write side lacks ${erasedAgain.length} erasures that the tables have: it was deleted, or is older than the tables`
    const cost = 'the next start erases these users again, also what they did since they returned'
    damages.push({ part: 'writes', what, cost, repair: NEWER_WRITES })
  }
  if (lost > 0) {
    const what = `the write side has no key of ${lost} users with events in the tables: it was deleted, or is older than the tables`
    const cost = 'their events cannot be loaded again; profiles, ratings and erasures since then are lost'
    damages.push({ part: 'writes', what, cost, repair: NEWER_WRITES })
  }
  if (changes > 0) {
    const what = `the write side lacks ${changes} changes of profiles and ratings that the tables have: it was deleted, or is older than the tables`
    const cost = 'answers show them until the same users change the same again; totals after a rating lack them'
    damages.push({ part: 'writes', what, cost, repair: NEWER_WRITES })
  }
  return damages
}

/** The erasures that the next start repeats, because only the tables know of them. */
async function missingErasuresOf(store: Store | undefined, writes: Postgres | undefined): Promise<string[]> {
  if (store === undefined || writes === undefined) return []
  return await missingErasures(writes, await store.do(readAppliedErasures))
}

/** Counts people without a key whose first event is in the tables. An erasure deletes it there after the key. */
async function keptWithoutKey(store: Store, writes: Postgres, { partitions }: CheckedLog): Promise<number> {
  const erased = await peopleBeingErased(writes)
  const people = new Set<number>()
  for (const { topic, epoch, partition, keyless } of partitions) {
    const kept = new Set(await store.do(readOffsetsOf, topic, { epoch, partition }, [...keyless.values()]))
    for (const [person, offset] of keyless) if (kept.has(offset) && !erased.has(person)) people.add(person)
  }
  return people.size
}

/** The newest revision of a file is made again from the tables, with its number if its description is readable; an earlier one cannot be. */
export async function damageOfDatasets(
  directory: string,
  damaged: readonly (DamagedRevision | UnreadableDescription)[],
  repair: boolean
): Promise<Damage[]> {
  const damages: Damage[] = []
  for (const { name, code, ...file } of damaged) {
    const path = join('datasets', name)
    const isRevision = 'isNewest' in file
    const cost = isRevision
      ? 'readers of this file fail or read wrong values'
      : 'earlier revisions are no longer served, and revisions are numbered from 1 again'
    if (code !== undefined) {
      const way = 'let the user of the service read it, or remove it while the service is stopped'
      damages.push({ part: 'datasets', what: `${path} cannot be read (${code})`, cost, repair: way })
      continue
    }
    if (repair) for (const each of isRevision ? [name] : file.copies) await rm(join(directory, each))
    const isMade = !isRevision || file.isNewest
    const then = isMade ? 'it is made again when it is requested' : 'this earlier revision is then no longer served'
    damages.push({
      part: 'datasets',
      what: `${path} ${isRevision ? 'does not match its SHA-256' : 'was damaged or deleted'}`,
      cost,
      repair: `gamenet verify --repair, which removes it; ${then}`,
      ...(repair && { repaired: `it was removed; ${then}` })
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
    const stored = await store.do(countLoaded, topic.name, place).catch(undefinedIfDamaged)
    const whole = topic.people && (await store.do(readWholeBlocks, topic.name, place).catch(undefinedIfDamaged))
    partitions.push({ topic: topic.name, ...place, stored, whole })
  }
  return partitions
}

function damageOfUnreadableLog({ files }: Pick<OpenLog, 'files'>, error: unknown): Damage {
  const what = `the log cannot be read: ${reasonOf(error)}`
  return files === undefined
    ? {
        part: 'log',
        what,
        cost: 'the tables were not compared with Kafka',
        repair: 'make Kafka reachable, and repeat the command'
      }
    : { part: 'log', what, cost: LOG_COST, repair: RESTORE }
}

/** Returns batches that do not match their checksum, and people whose keys cannot decrypt their events. */
function damageOfLog({ faults, partitions }: CheckedLog, { engine }: LogChoice): Damage[] {
  const repair = engine === 'kafka' ? REPAIR_KAFKA : RESTORE
  return [
    ...faults.map(({ topic, epoch, partition, first, next, reason }): Damage => {
      const what = `the log's events ${topic} ${epoch}/${partition}/${first} to ${next - 1} cannot be read: ${reason}`
      return { part: 'log', what, cost: LOG_COST, repair }
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
  { repair, isServer = false, lost, parts: { vanished, miscounted, isDamaged } = NO_DIFFERENCE }: DamageOptions,
  report: ReportBytes
): Promise<Damage[]> {
  const damages: Damage[] = []
  const nameOf = (await namesOfUsedTables(storeOver(tables)).catch(undefinedIfDamaged)) ?? new Map<string, string>()
  const isUnused = (table: string) => table.includes('__') && !nameOf.has(table)
  const detached = (await findLostParts(storeOver(tables))).map(({ table }) => table)
  const missing = [...detached, ...vanished.map(({ table }) => nameOf.get(table) ?? table)]
  for (const table of [...missing, ...lost.filter((each) => !missing.includes(each))]) {
    damages.push({
      part: 'tables',
      what: `a part of ${table} is missing, or was detached because it was unreadable`,
      cost: isUnused(table) ? COST_UNUSED : 'its rows are missing until they are restored',
      repair: isServer ? REPAIR_SERVER : isUnused(table) ? 'gamenet start, which drops the table' : 'gamenet start',
      ...(repair && !missing.includes(table) && { repaired: 'its rows were restored' })
    })
  }
  for (const { table, part, rows } of miscounted) {
    damages.push({
      part: 'tables',
      what: `part ${part} of ${table} has ${rows} rows, but its count.txt says otherwise`,
      cost: 'answers lack rows',
      repair: 'gamenet start, or gamenet verify --repair',
      ...(repair && { repaired: 'count.txt was written again' })
    })
  }
  if (isDamaged) {
    const cost = 'this check and the next start do not notice parts that vanished'
    const way = 'gamenet start, or gamenet verify --repair'
    const repaired = repair && { repaired: 'it was written again' }
    damages.push({ part: 'tables', what: 'parts.json is damaged', cost, repair: way, ...repaired })
  }
  for (const { name, path, bytes } of await tablesOfParts(tables)) {
    for (const { part, message } of await damagedParts(rebuild, name, miscounted)) {
      const isDetached = repair && !isServer && part !== ''
      if (isDetached) await detachPart(tables, name, path, part)
      const then = `the next start ${isUnused(name) ? 'drops the table' : 'restores its rows'}`
      damages.push({
        part: 'tables',
        what: `part ${part} of ${name} is damaged: ${message}`,
        cost: isUnused(name) ? COST_UNUSED : 'queries that read it fail, or return wrong answers',
        repair: isServer ? REPAIR_SERVER : `gamenet verify --repair, which detaches it; ${then}`,
        ...(isDetached && { repaired: `it was detached; ${then}` })
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
    return { part: 'tables', what: `${name} is not defined as the program created it`, cost, repair: MAKE_TABLES_AGAIN }
  })
}

/**
 * Detaches a part in the way in which the engine detaches an unreadable one at its start. The mark comes first: after a kill in between,
 * the next start restores the rows.
 */
async function detachPart(tables: ClickHouse['control'], table: string, path: string, part: string): Promise<void> {
  const folder = join(path, 'detached')
  const before = new Set(await readdir(folder).catch(() => []))
  const mark = await markLost(path, part)
  await tables.execute(`ALTER TABLE ${table} DETACH PART '${part}'`)
  const [detached, ...others] = (await readdir(folder)).filter((name) => !before.has(name) && name !== basename(mark))
  if (detached === undefined || others.length > 0)
    throw new FailureError(`${part} of ${table} could not be detached to ${dirname(folder)}.`)
  await rename(join(folder, detached), mark)
}

/** Verifies that checkpoints are within the log, and that event tables contain all events before them. */
async function damageOfCheckpoints(
  { store, log }: Pick<Engines, 'store' | 'log'>,
  loaded: readonly LoadedPartition[],
  checked: readonly CheckedPartition[],
  isWriteSideOlder: boolean
): Promise<Damage[]> {
  const damages: Damage[] = []
  // Events of an undone import are in the log, but not in the table.
  const retracted = await store.do(readRetractions)
  const stalled = await readStalls({ store, log })
  for (const stall of stalled) {
    const { topic, epoch, partition, wanted, first, next } = stall
    damages.push({
      part: 'checkpoints',
      what: `${topic} ${epoch}/${partition} is loaded up to ${wanted}; the log has ${first} to ${next}`,
      cost: 'the topic is stalled; events that the log lost cannot be loaded again',
      repair:
        wanted > next
          ? wayFromOlderLog(log, stall)
          : `gamenet gap list, then gamenet gap accept ${topic}; or ${RESTORE}`
    })
  }
  for (const { topic, epoch, partition, next, stored } of loaded) {
    const table = eventTableNames.get(topic)
    const isHere = (each: { topic: string; epoch: number; partition: number }) =>
      each.topic === topic && each.epoch === epoch && each.partition === partition
    const events = checked.find(isHere)?.events ?? 0
    if (
      table === undefined ||
      stalled.some(isHere) ||
      retracted.some((each) => each.topic === topic) ||
      stored === undefined ||
      stored.events + stored.deadLetters >= events
    )
      continue
    damages.push({
      part: 'checkpoints',
      what: `${table} holds ${stored.events} events of ${topic} ${epoch}/${partition} below ${next}; the log has ${events}`,
      cost: 'answers lack these events',
      repair: `${isWriteSideOlder ? 'first repair the write side; then ' : ''}${LOAD_AGAIN}`
    })
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
