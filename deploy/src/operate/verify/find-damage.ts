import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { revisionFiles, type UnreadableDescription } from '@gamenet/api'
import type { Postgres } from '@gamenet/engines'
import { sealKeys } from '@gamenet/ingest'
import { projections, storeAt, storeOver } from '@gamenet/projector'
import { abortable, callThread, Refusal } from '@gamenet/schemas'
import { FailureError, FilesDamaged } from '../../config.js'
import { isOfFullDisk } from '../../data-directory/disk-errors.js'
import { bytesOfTables } from '../../data-directory/disk-usage.js'
import { unwritableDisk } from '../../data-directory/unwritable-disk.js'
import { reasonOf, shown } from '../../stores/damage.js'
import type { Finding, ReportBytes, VerifyProgress, VerifyReport } from '../../stores/damage-report.js'
import { engineFailure, noneIfDamaged, RESTORE, undefinedIfDamaged } from '../../stores/engine-failures.js'
import type { SoundEngines } from '../../stores/engines.js'
import { peopleOf } from '../../stores/ledger.js'
import type { LogChoice, OpenLog } from '../../stores/log.js'
import type { CheckedLog, CheckHost, CheckThread, DamagedRevision } from './check-thread.js'
import { changedTables, damageOfTables, type Marking } from './damage-of-tables.js'
import { damageOfWrites } from './damage-of-writes.js'
import { damageOfCheckpoints, damageOfOlderWrites, loadedPartitions, missingErasuresOf } from './engine-differences.js'

const LOG_COST = 'these events cannot be loaded again; rows of them in the tables stay'

/** The way out of a damaged batch of Kafka. */
const REPAIR_KAFKA = 'make a whole replica the leader of the partition, or accept a gap: docs/operators/kafka.md'

const COSTS = {
  log: 'the service does not start; events that are not in the tables are lost',
  tables: 'the service does not start, or queries that read these files fail',
  writes: 'edits, ratings and events about people fail'
}

export type DamageOptions = {
  readonly marking: Marking
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
  const { clickhouse, directory, log, ownsTables, ownsWrites } = engines
  const { marking } = options
  const damages: Finding[] = (options.damaged ?? []).map(findingOf)
  const unusable: Finding[] = []
  const writes = await engines
    .writes()
    .catch((error: unknown) => {
      if (!(error instanceof Refusal)) throw error
      // Its tables and indexes say more, also those that a migration reads.
      unusable.push(findingOf(writesFailure(error)))
      return engines.openWrites()
    })
    .catch(async (error: unknown) => {
      const full = directory && (await unwritableDisk(directory.path, error))
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
  const writesDirectory = ownsWrites ? directory?.part('writes') : undefined
  const datasetsDirectory = directory?.part('datasets')
  const areTablesRead = clickhouse !== undefined && !damages.some(({ part }) => part === 'tables')
  const store = areTablesRead
    ? await storeAt('writes', storeOver(clickhouse.rebuild), projections).catch(undefinedIfDamaged)
    : undefined
  const loaded = store === undefined ? [] : await loadedPartitions(store)
  const erasedAgain = await missingErasuresOf(store, writes).catch(noneIfDamaged)
  const host: CheckHost = { read: report, keys: (people) => keysOf(writes, people, erasedAgain) }
  const checkedLog = await withCheckThread(host, async (call) => {
    if (writes !== undefined) {
      const found = await damageOfWrites(writes, writesDirectory !== undefined).catch((error: unknown) => [
        findingOf(writesFailure(error))
      ])
      damages.push(...(found.length === 0 ? unusable : found))
    }
    if (datasetsDirectory !== undefined) damages.push(...(await checkDatasets(call, datasetsDirectory)))
    if (log === undefined) return undefined
    const read = async () => {
      // Damage that ends a process ends that one.
      await log.files?.readApart('values', signal)
      return await abortable(signal, call('log', engines.logChoice, loaded))
    }
    return await read().catch((error: unknown) => {
      signal.throwIfAborted()
      damages.push(damageOfUnreadableLog(log, error))
      return undefined
    })
  })
  if (checkedLog !== undefined) damages.push(...damageOfLog(checkedLog, engines.logChoice))
  const sound = damages.some(({ part }) => part === 'writes') ? undefined : writes
  const older = await damageOfOlderWrites(store, sound, erasedAgain).catch(noneIfDamaged)
  damages.push(...older)
  const { partitions = [] } = checkedLog ?? {}
  if (clickhouse !== undefined) {
    damages.push(...(await damageOfTables(clickhouse, marking, report)))
    if (ownsTables) damages.push(...(await changedTables(clickhouse.control)))
  }
  if (store !== undefined && log !== undefined && (checkedLog ?? log.files) !== undefined)
    damages.push(
      ...(await damageOfCheckpoints(
        { store, log },
        { loaded, checked: partitions, marking: older.length > 0 ? undefined : marking }
      ).catch(noneIfDamaged))
    )
  return {
    findings: damages.map((damage) => ({ ...damage, what: shown(damage.what) })),
    bytes,
    tookMs: Math.round(performance.now() - begun),
    notChecked: [
      ...(engines.logChoice.engine === 'kafka' ? ['files of the log'] : []),
      ...(writesDirectory === undefined ? ['files of the write side'] : [])
    ]
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

async function checkDatasets(call: CheckCall, directory: string): Promise<Finding[]> {
  const { files, unreadable } = await revisionFiles(directory)
  const damaged = await call('datasets', directory, files)
  return damageOfDatasets([...damaged, ...unreadable])
}

const findingOf = ({ part, what, repair }: FilesDamaged): Finding => ({ part, what, cost: COSTS[part], repair })

function writesFailure(error: unknown): FilesDamaged {
  const failure = engineFailure(error, true)
  if (failure instanceof FilesDamaged) return failure
  if (failure instanceof FailureError || isOfFullDisk(failure)) throw failure
  return new FilesDamaged('writes', `the write side is unusable: ${reasonOf(error)}`, RESTORE)
}

/** The newest revision of a file is made again from the tables; an earlier one cannot be. */
export function damageOfDatasets(damaged: readonly (DamagedRevision | UnreadableDescription)[]): Finding[] {
  return damaged.map(({ name, code, ...file }): Finding => {
    const path = join('datasets', name)
    const cost = 'readers of this file fail or read wrong values'
    if (code !== undefined) {
      const way = 'let the user of the service read it, or remove it while the service is stopped'
      return { part: 'datasets', what: `${path} cannot be read (${code})`, cost, repair: way }
    }
    const isMade = 'isNewest' in file && file.isNewest
    const then = isMade ? 'it is made again when it is requested' : 'this earlier revision is then no longer served'
    const repair = `stop the service, remove ${path} and start it: ${then}`
    return { part: 'datasets', what: `${path} does not match its SHA-256`, cost, repair }
  })
}

function damageOfUnreadableLog({ files }: Pick<OpenLog, 'files'>, error: unknown): Finding {
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
function damageOfLog({ faults, partitions }: CheckedLog, { engine }: LogChoice): Finding[] {
  const repair = engine === 'kafka' ? REPAIR_KAFKA : RESTORE
  return [
    ...faults.map(({ topic, epoch, partition, first, next, reason }): Finding => {
      const what = `the log's events ${topic} ${epoch}/${partition}/${first} to ${next - 1} cannot be read: ${reason}`
      return { part: 'log', what, cost: LOG_COST, repair }
    }),
    ...partitions.flatMap(({ topic, epoch, partition, unopened }): Finding[] => {
      if (unopened === undefined) return []
      const what =
        `the keys of ${unopened.count} people cannot decrypt their events of ${topic} ` +
        `${epoch}/${partition}, from offset ${unopened.first} on`
      return [{ part: 'seals', what, cost: LOG_COST, repair: RESTORE }]
    })
  ]
}

/** Twice Node's default for a thread: with less, garbage collection takes a third of the time of unpacking. */
const YOUNG_HEAP_MB = 96

/** Calls a method of the thread. */
export type CheckCall = ReturnType<typeof callThread<CheckThread>>['call']

/** Runs `work` with the methods of a thread that checks files, and ends the thread afterwards. */
export async function withCheckThread<Result>(
  host: CheckHost,
  work: (call: CheckCall) => Promise<Result>
): Promise<Result> {
  const worker = new Worker(new URL('./check-thread.js', import.meta.url), {
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_HEAP_MB }
  })
  const { call } = callThread<CheckThread>(worker, host, { exited: 'the thread that checks files has ended' })
  try {
    return await work(call)
  } finally {
    await worker.terminate()
  }
}
