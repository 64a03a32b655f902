import { statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import {
  type ChdbOptions,
  type ClickHouse,
  LANE_LIMITS,
  type LaneName,
  migratePostgres,
  openChdb,
  openPglite,
  openPinned,
  openPostgres,
  type Postgres,
  passwordOf
} from '@gamenet/engines'
import { LogDamaged, readLogApart } from '@gamenet/engines/log'
import { endLeases } from '@gamenet/ingest'
import { type Store, storeOver } from '@gamenet/projector'
import { CHANGED_CHANNEL } from '@gamenet/schemas'
import { type Config, FilesDamaged, UsageError } from '../config.js'
import { claimDataDirectory, type DataDirectory } from '../data-directory/data-directory.js'
import { type Disk, openDisk } from '../data-directory/disk.js'
import { VERSIONS } from '../version.js'
import { isCommand, type ProcessContext } from './component.js'
import { Disposers } from './disposers.js'
import { endAtOnce } from './end-at-once.js'
import { explained } from './engine-failures.js'
import { failureSince } from './failure-since.js'
import { unfreeze } from './freeze.js'
import { ERASED_CHANNEL } from './ledger.js'
import { type LogChoice, type OpenLog, openLog } from './log.js'
import { readLogChoice } from './log-choice.js'
import { HeldLocks } from './postgres-pass-lock.js'
import { removeSnapshots } from './snapshot.js'
import { isSpoolKnown } from './spool.js'
import { type DamageWatch, watchedTables } from './watched-tables.js'

/** The three engines of a service and, if one of them is embedded, their common directory. */
export type Engines = {
  readonly directory: DataDirectory | undefined
  /** Whether all three engines are embedded. */
  readonly isEmbedded: boolean
  readonly log: OpenLog
  readonly logChoice: LogChoice
  readonly clickhouse: ClickHouse
  /** Watches the statements of embedded tables; undefined for a server. */
  readonly damageWatch: DamageWatch | undefined
  /** A ClickHouse server is sent no write while one of them may be lost. */
  readonly heldLocks: HeldLocks
  /** Carries out operations on the tables, on the connection of operators. */
  readonly store: Store
  /** The free space of the data directory's disks; checked before large writes. */
  readonly disk: Disk
  /** Open if it was requested: a command opens it only when an operation needs it. */
  readonly postgres: Postgres | undefined
  /** Returns the write side with its newest schema; opens it if necessary. */
  writes(): Promise<Postgres>
  /** The same with any schema. */
  openWrites(): Promise<Postgres>
  /** Migrates a persistent write side; returns the names of the applied migrations. */
  migrateWrites(): Promise<string[]>
  /** Whether ClickHouse is a process of this service, whose files are in the directory. */
  readonly ownsTables: boolean
  /** Whether PostgreSQL is embedded. */
  readonly ownsWrites: boolean
  /** The password of the service's user on a ClickHouse server. */
  readonly servicePassword: string
  /** Role of an engine → its name, for people. */
  readonly names: Readonly<Record<string, string>>
  /** Closes the open engines in reverse order. */
  close(): Promise<void>
}

/** Engines that were opened each on its own: without those whose files are damaged. */
export type SoundEngines = Pick<
  Engines,
  'directory' | 'logChoice' | 'ownsTables' | 'ownsWrites' | 'writes' | 'openWrites'
> & {
  readonly log: Engines['log'] | undefined
  readonly clickhouse: Engines['clickhouse'] | undefined
}

type Context = Pick<ProcessContext, 'config' | 'role' | 'logger'> & {
  readonly damageMet?: Set<string>
}

/** Opens the configured engines. If one cannot be opened, the open ones are closed again. */
export async function openEngines(context: Context): Promise<Engines> {
  const { opened, close, damaged, writing, ...engines } = await openSoundEngines(context)
  const { config, logger } = context
  const { directory, log, clickhouse } = engines
  try {
    if (log === undefined || clickhouse === undefined) throw damaged[0]
    const postgres = await writing
    const watched =
      config.CLICKHOUSE_URL === undefined ? watchedTables(clickhouse) : { clickhouse, damageWatch: undefined }
    const disk = opened(await diskOf(config, directory, clickhouse, postgres, (sentence) => logger.warn(sentence)))
    return { ...engines, log, ...watched, store: storeOver(watched.clickhouse.control), disk, postgres, close }
  } catch (error) {
    await close()
    throw await startFailure(config, error)
  }
}

/**
 * Opens each of the configured engines. If one cannot be opened for another reason than damaged files, the open ones
 * are closed again.
 */
export async function openSoundEngines({ config, role, logger, damageMet = new Set() }: Context) {
  // A command opens PostgreSQL only when it needs it: the first start of PGlite takes seven seconds.
  const withPostgres = !isCommand(role)
  const warn = (sentence: string) => logger.warn(sentence)
  const disposers = new Disposers()
  let writing: Promise<Postgres> | undefined
  const opened = <Engine extends { close(): Promise<void> }>(engine: Engine): Engine =>
    disposers.add(engine, () => engine.close())
  const close = async () => {
    // Engines that are still opening are closed too.
    await writing?.catch(() => undefined)
    await disposers.close()
  }
  const damaged: FilesDamaged[] = []
  const openedIfSound = async <Engine extends { close(): Promise<void> }>(open: () => Promise<Engine> | Engine) => {
    try {
      return opened(await open())
    } catch (error) {
      const failure = await startFailure(config, error)
      if (!(failure instanceof FilesDamaged)) throw failure
      damaged.push(failure)
      return undefined
    }
  }
  try {
    const [serverUrl] = config.CLICKHOUSE_URL ?? []
    const ownsTables = serverUrl === undefined
    const ownsWrites = config.POSTGRES_URL === undefined
    const owned = { ownsTables, ownsWrites, servicePassword: ownsTables ? '' : passwordOf(serverUrl) }
    const needsDirectory = config.KAFKA_BROKERS === undefined || ownsTables
    const isEmbedded = config.KAFKA_BROKERS === undefined && ownsTables && ownsWrites
    // `gamenet start` claims the directory even if no engine needs it, so that commands find the service.
    const directory =
      needsDirectory || role === 'all'
        ? await claimDataDirectory(config.DATA_DIR, VERSIONS, withPostgres ? 'run' : 'command')
        : undefined
    if (directory !== undefined) {
      disposers.add(directory, () => directory.release())
      await removeRemains(directory)
    }
    const part = (name: string) => directory?.part(name) ?? name
    const writesPath = directory?.part('writes')
    const openWrites = once(async () => {
      try {
        return opened(await openWriteSide(config, writesPath, damageMet))
      } catch (error) {
        // A command opens it late.
        throw await startFailure(config, error)
      }
    })
    const migrated = once(async () => {
      const opened = await openWrites()
      await migratePostgres(opened)
      if (ownsWrites) await endLeases(opened)
    })
    const writes = async () => {
      await migrated()
      return await openWrites()
    }
    const migrateWrites = async () =>
      writesPath === undefined && ownsWrites ? [] : await migratePostgres(await openWrites())
    // An embedded PostgreSQL starts in its own thread for a second while the other engines are opened here.
    writing = withPostgres ? writes() : undefined
    writing?.catch(() => undefined)
    const logChoice = readLogChoice(config, part('log'))
    if (config.KAFKA_REPLICATION === 1)
      warn(
        'KAFKA_REPLICATION is 1: topics that are created now are lost with the disk of one broker. Unset, the ' +
          'brokers’ default applies.'
      )
    const onUnavailable = (await isSpoolKnown(config, role)) ? warn : undefined
    const log = await openedIfSound(async () => {
      if (directory !== undefined) await refuseUnreadableLog(directory, logChoice, role)
      return openLog(logChoice, role, { onUnavailable, isReading: role === 'verify' })
    })
    const heldLocks = new HeldLocks()
    const beforeWrite = (lane: LaneName) => heldLocks.requireSure(lane)
    const clickhouse = await openedIfSound(() => openTables(config, part('tables'), { warn, beforeWrite }))
    const names = {
      log: logChoice.engine,
      tables: ownsTables ? 'ClickHouse (embedded)' : 'ClickHouse',
      ...(withPostgres ? { writes: ownsWrites ? 'PGlite' : 'PostgreSQL' } : {})
    }
    const engines = { directory, isEmbedded, log, logChoice, clickhouse, openWrites, writes, migrateWrites, names }
    return { ...engines, ...owned, heldLocks, damaged, writing, opened, close }
  } catch (error) {
    await close()
    throw await startFailure(config, error)
  }
}

/** Removes incomplete uploads and copies of a killed process. */
async function removeRemains(directory: DataDirectory): Promise<void> {
  await rm(directory.part('uploads'), { recursive: true, force: true })
  await unfreeze(directory.part('tables'))
  await removeSnapshots(directory.part('tables'))
}

/** Returns the failure of a start with its cause, if it is one of the machine or of files. */
export async function startFailure({ DATA_DIR, CLICKHOUSE_URL }: Config, error: unknown): Promise<unknown> {
  return await explained(error, resolve(DATA_DIR), CLICKHOUSE_URL === undefined)
}

/** Default of LOG_EPOCH. */
const FIRST_EPOCH = 1

/** Opens ClickHouse: a server, or a child of this process on the path. */
export function openTables(
  config: Config,
  path: string,
  { beforeWrite, ...options }: Pick<ChdbOptions, 'warn'> & { readonly beforeWrite?: (lane: LaneName) => void }
): Promise<ClickHouse> | ClickHouse {
  const { CLICKHOUSE_URL: urls, CLICKHOUSE_SSL_CA_FILE: ca, CLICKHOUSE_MEMORY_BYTES: memoryBytes } = config
  const reads = {
    readers: config.CLICKHOUSE_READERS,
    limits: {
      readers: {
        ...LANE_LIMITS.readers,
        threads: config.CLICKHOUSE_READER_THREADS ?? LANE_LIMITS.readers.threads,
        memoryBytes: config.CLICKHOUSE_READER_MEMORY_BYTES ?? LANE_LIMITS.readers.memoryBytes
      }
    }
  }
  return urls === undefined
    ? openChdb({ path, memoryBytes, onLost: endAtOnce, ...reads, ...options })
    : openPinned({ urls, ca, beforeWrite, warn: options.warn, ...reads })
}

/**
 * Refuses a missing or empty log file: a recreated log would reuse offsets, and its new events would be skipped as
 * already loaded. Without a backup, a higher LOG_EPOCH begins another log, once the rest of the lost one is removed.
 */
function refuseLostLog(directory: DataDirectory, epoch: number): void {
  const bytesOf = (...path: string[]) => statSync(join(directory.path, ...path), { throwIfNoEntry: false })?.size
  const isLost = epoch === FIRST_EPOCH || bytesOf('log', 'lock.mdb') !== undefined
  if (!isLost || (bytesOf('log', 'data.mdb') ?? 0) > 0 || bytesOf('tables', 'store') === undefined) return
  throw new LogDamaged(`The log's file ${join(directory.path, 'log', 'data.mdb')} is missing or empty`)
}

/** Refuses a log that is lost, or has a page that has ended the process before or would end `gamenet verify`. */
async function refuseUnreadableLog(directory: DataDirectory, logChoice: LogChoice, role: string): Promise<void> {
  if (logChoice.engine !== 'lmdb') return
  refuseLostLog(directory, logChoice.epoch)
  const isSuspect = directory.unclean === 'suspect' || role === 'verify'
  if (isSuspect) await readLogApart(logChoice.path, 'keys')
}

/** What each channel announces, for a PostgreSQL whose LISTEN delivers nothing. */
const POLLED = {
  [CHANGED_CHANNEL]: 'SELECT r.last_value AS newest FROM revision AS r',
  [ERASED_CHANNEL]: 'SELECT count(*) AS erased, max(f.erased_at) AS newest FROM erasure AS f'
}

/**
 * Opens the write side. A service that shares log and tables must share it too: with separate keys, no other process
 * could decrypt its events.
 */
async function openWriteSide(config: Config, dir: string | undefined, damageMet: Set<string>): Promise<Postgres> {
  const { POSTGRES_URL: url, POSTGRES_LISTEN_URL: listenUrl } = config
  if (url !== undefined) return openPostgres({ url, listenUrl, polled: POLLED })
  const onChecked = failureSince(damageMet, 'PostgreSQL cannot be vacuumed or checkpointed')
  if (dir !== undefined) return await openPglite({ dir, upkeep: { onChecked } })
  throw new UsageError(
    'This needs the write side, which all processes of one installation must share. Set POSTGRES_URL.'
  )
}

/**
 * Returns the disk of the embedded engines. Servers have their own disks; at most the service's usage there is
 * reported.
 */
function diskOf(
  config: Config,
  directory: DataDirectory | undefined,
  clickhouse: ClickHouse,
  postgres: Postgres | undefined,
  warn: (sentence: string) => void
): Promise<Disk> {
  const where = (server: unknown, name: string) => (server === undefined ? directory?.part(name) : undefined)
  const directories = {
    log: where(config.KAFKA_BROKERS, 'log'),
    tables: where(config.CLICKHOUSE_URL, 'tables'),
    writes: where(config.POSTGRES_URL, 'writes')
  }
  const onMerges = (statement: string) => async () => {
    if (directories.tables !== undefined) await clickhouse.control.execute(statement)
  }
  return openDisk({
    directory: directory?.path,
    directories,
    usedOf: { log: directories.log, tables: clickhouse.control, writes: directories.writes ?? postgres },
    guard: {
      freeMinBytes: config.DISK_FREE_MIN_BYTES,
      stopMerges: onMerges('SYSTEM STOP MERGES'),
      startMerges: onMerges('SYSTEM START MERGES'),
      warn
    }
  })
}

/** Runs the work at the first call. After a failure the next call runs it again. */
export function once<Result>(work: () => Promise<Result>): () => Promise<Result> {
  let done: Promise<Result> | undefined
  return () => {
    done ??= work().catch((error: unknown) => {
      done = undefined
      throw error
    })
    return done
  }
}
