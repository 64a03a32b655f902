import {
  actions,
  buildApp,
  type ChatSettings,
  ConsistentReads,
  catalogCache,
  DataVersions,
  endpoints,
  type ReadTables
} from '@gamenet/api'
import { createIngest, createPeople, createRelay, type Ingest, type People, sealKeys } from '@gamenet/ingest'
import { createProjector, lateReader, migrate, type Projector } from '@gamenet/projector'
import { CHANGED_CHANNEL, errorCode } from '@gamenet/schemas'
import type { FastifyInstance } from 'fastify'
import { type Logger, pino } from 'pino'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { type Demo, startDemo } from '../../demo/demo.js'
import { type Config, FailureError, UsageError } from '../config.js'
import { freeMinBytesOf } from '../disk/disk-guard.js'
import { ERASED_CHANNEL } from '../erasure/ledger.js'
import { reapplyErasures } from '../erasure/reapply-erasures.js'
import type { Operations } from '../operations/operation.js'
import { serviceOperations, type Unfinished } from '../operations/service-operations.js'
import { buildOperatorApp } from '../operator/operator-app.js'
import { advanceSequences } from './advance-sequences.js'
import { type ConcurrentWriters, concurrentWriters, stepRunner, stepsEnded } from './concurrent-writers.js'
import { Disposers } from './disposers.js'
import { asFailure } from './engine-failures.js'
import { type Engines, openEngines } from './engines.js'
import { addEngineMetrics, readiness } from './health.js'
import { type LostRows, openLostRows, type RepairTime } from './lost-rows.js'
import { addPages, serviceAuthFile } from './pages.js'
import { readingThread, reloadReadersOf } from './reading-thread.js'
import { openSpoolingLog } from './spool.js'
import type { SpoolingLog } from './spooling-log.js'
import { openSwaps, type TableSwaps } from './swaps.js'
import { VERSION } from './version.js'

/** What a process does. `offline`: nothing by itself; its operations are asked and it ends. */
export type Role = 'all' | 'ingest' | 'projector' | 'api' | 'offline'

export type Service = {
  readonly operations: Operations
  /** The public address; null for roles without one. */
  readonly apiUrl: string | null
  readonly operatorUrl: string | null
  /** Role of an engine → its name. */
  readonly engines: Readonly<Record<string, string>>
  /** The demo network's address; null where a real network is scraped. */
  readonly demoUrl: string | null
  /** Where users sign in; null where nobody can. */
  readonly authUrl: string | null
  /** Somebody of the demo network to sign in as; null where there is no demo auth service. */
  readonly demoUser: { readonly username: string; readonly email: string; readonly password: string } | null
  /** Finishes what is in flight and releases everything. */
  close(): Promise<void>
}

const REQUESTS_PER_SECOND = 2
/** The demo network is ours to load. */
const DEMO_REQUESTS_PER_SECOND = 50
const POLL_MS = 250

/**
 * Puts engines, ingest, projector, API, demo and operator port together, as the role asks.
 * Throws a `UsageError` or `FailureError` with one sentence when it cannot; then nothing is left open.
 */
export async function openService(config: Config, role: Role, threadPoolSize: number): Promise<Service> {
  requireRealEngines(config, role)
  const disposers = new Disposers()
  try {
    return await assemble(config, role, threadPoolSize, disposers)
  } catch (error) {
    await disposers.close()
    throw error
  }
}

async function assemble(config: Config, role: Role, threadPoolSize: number, disposers: Disposers): Promise<Service> {
  const logger = pino({ level: config.LOG_LEVEL }, pino.destination(2))
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const engines = disposers.add(
    await openEngines({
      config,
      role,
      // A command opens it only when it needs it: a first start takes PGlite seven seconds.
      withPostgres: role !== 'offline',
      withDirectory: role === 'all',
      warn: (sentence) => logger.warn(sentence),
      threadPoolSize
    }),
    (engines) => engines.close()
  )
  addEngineMetrics(registry, engines)
  const others = concurrentWriters(config, engines)
  const { applied, lostRows } = await prepareTables({ config, engines, role, others, registry, logger, disposers })
  const dataVersions = openVersions(engines, logger, disposers)
  const tables = lostRows.guarded(engines.clickhouse.readers)
  const shared = { config, engines, tables, registry, logger, disposers, others }
  const swaps = openSwaps({ config, engines, dataVersions, logger, hasApi: hasApi(role) })
  disposers.add(swaps, () => swaps.stop())
  const projector = hasProjector(role, config) ? startProjector({ ...shared, dataVersions, swaps }) : undefined
  // Only now the tables tell all that they know of the write side.
  if (projector !== undefined) {
    lostRows.finish(projector, async () => advanceSequences(await engines.writes(), engines.clickhouse.control, logger))
  }
  const demo = await openDemo(config, role, logger, disposers)
  const authUrl = config.AUTH_URL ?? demo?.auth?.url
  const people = createPeople({ writes: () => engines.writes(), registry })
  const spooling = await openSpoolingLog({ ...shared, role })
  const ingest = hasIngest(role) ? makeIngest({ ...shared, people, demo, swaps, spooling }) : undefined
  const { operations, cutOff, stop } = serviceOperations({
    engines,
    hasLog: role !== 'api' || config.KAFKA_BROKERS !== undefined,
    projector,
    stepsEnded: stepsEnded(others, projector),
    inStep: stepRunner(others, projector),
    ingest,
    people,
    demo,
    spooling,
    lostRows,
    isRunning: role !== 'offline',
    onChange: () => dataVersions.refresh(),
    applied: role === 'offline' ? applied : []
  })
  const ready = readiness(engines, dataVersions, hasApi(role), lostRows)
  const api = hasApi(role)
    ? await startApi({ ...shared, dataVersions, swaps, ready, authUrl, chat: chatOf(config, demo) })
    : null
  const operatorUrl =
    role === 'offline' ? null : await startOperator({ config, operations, registry, logger, ready, disposers })
  // Ended first, while the parts that they use are still there.
  disposers.add(stop, (stop) => stop())
  if (operatorUrl !== null) await engines.directory?.announce(operatorUrl)
  if (role === 'all' || role === 'ingest') {
    ingest?.start()
    startRelay({ engines, registry, logger, people, disposers })
  }
  const retractions = async () => ((await lostRows.whenRepaired()) ? await cutOff.retractions() : 0)
  finishCutOff(role, { ...cutOff, retractions }, logger)
  if (role === 'all' && demo !== undefined && projector !== undefined)
    fillDemo({ demo, engines, people, projector, apiUrl: api, disposers })
  return {
    operations,
    apiUrl: api,
    operatorUrl,
    engines: engines.names,
    demoUrl: demo?.url ?? null,
    authUrl: authUrl ?? null,
    demoUser: demo?.person ?? null,
    close: () => disposers.close()
  }
}

/** `applied`: the names of the migrations that were applied. */
async function prepareTables({
  config,
  engines,
  role,
  others,
  registry,
  logger,
  disposers
}: Omit<Needs, 'tables'> & { role: Role; others: ConcurrentWriters }): Promise<{
  applied: string[]
  lostRows: LostRows
}> {
  const applied = await asFailure(migrate(engines.clickhouse.control))
  if (engines.postgres !== undefined) await advanceSequences(engines.postgres, engines.clickhouse.control, logger)
  await reapplyErasures(engines, role, stepsEnded(others), logger)
  const lostRows = await openLostRows({ engines, repairs: repairsOf(role, config), registry, logger })
  return { applied, lostRows: disposers.add(lostRows, () => lostRows.stop()) }
}

/** Undefined where a real network is scraped, or none. */
async function openDemo(config: Config, role: Role, logger: Logger, disposers: Disposers): Promise<Demo | undefined> {
  if (!hasIngest(role) || config.UPSTREAM_URL !== undefined) return undefined
  return disposers.add(await startDemo(logger, demoParts(role, config)), (demo) => demo.close())
}

function openVersions({ clickhouse }: Engines, logger: Logger, disposers: Disposers): DataVersions {
  const dataVersions = new DataVersions({
    tables: clickhouse.control,
    onFailure: (error) => logger.warn({ err: error }, 'what changed in the tables cannot be read')
  })
  return disposers.add(dataVersions, () => dataVersions.stop())
}

function requireRealEngines(config: Config, role: Role): void {
  if (role === 'all' || role === 'offline') return
  const missing = [
    ...(config.KAFKA_BROKERS === undefined && role !== 'api' ? ['KAFKA_BROKERS'] : []),
    ...(config.CLICKHOUSE_URL === undefined ? ['CLICKHOUSE_URL'] : []),
    ...(config.POSTGRES_URL === undefined ? ['POSTGRES_URL'] : [])
  ]
  if (missing.length === 0) return
  throw new UsageError(
    `gamenet ${role} shares its engines with other processes and needs ${missing.join(', ')}; embedded engines belong to one process: gamenet start.`
  )
}

/** An embedded log has no other process that would load it. */
function hasProjector(role: Role, config: Config): boolean {
  return role === 'all' || role === 'projector' || (role === 'offline' && config.KAFKA_BROKERS === undefined)
}

function repairsOf(role: Role, config: Config): RepairTime {
  if (config.CLICKHOUSE_URL !== undefined) return 'never'
  return hasProjector(role, config) ? 'now' : 'later'
}

function hasApi(role: Role): boolean {
  return role === 'all' || role === 'api'
}

function hasIngest(role: Role): boolean {
  return role === 'all' || role === 'ingest' || role === 'offline'
}

/** Ends what an earlier process left undone, in the background. */
function finishCutOff(role: Role, { forgettings, retractions }: Unfinished, logger: Logger): void {
  const finish = (work: Promise<number>, what: string) => {
    const failed = `${what} that was cut off could not be ended; it is tried again at the next start`
    work.catch((error: unknown) => logger.error({ err: error }, failed))
  }
  if (role === 'all' || role === 'ingest') finish(forgettings(), 'a forgetting')
  if (role === 'all' || role === 'projector') finish(retractions(), 'taking an import back')
}

/** The API alone has sessions and looks at chat accounts. */
function demoParts(role: Role, config: Config): Parameters<typeof startDemo>[1] {
  const isWhole = role === 'all'
  return { withAuth: isWhole && config.AUTH_URL === undefined, withChat: isWhole && config.CHAT_API_URL === undefined }
}

/** Of the chat platform that is configured, else of the demo's. */
function chatOf(config: Config, demo: Demo | undefined): ChatSettings | undefined {
  const { CHAT_API_URL: apiUrl, CHAT_API_TOKEN: token, CHAT_HOSTS: hosts = [], CHAT_AVATAR_URL: avatarUrl } = config
  if (apiUrl !== undefined) return { apiUrl, token, hosts, avatarUrl }
  return demo?.chat === undefined ? undefined : { ...demo.chat, apiUrl: demo.chat.url }
}

type Needs = {
  readonly config: Config
  readonly engines: Engines
  readonly registry: Registry
  readonly logger: Logger
  readonly disposers: Disposers
  /** What may be read of the tables. */
  readonly tables: ReadTables
}

function startProjector({
  config,
  engines,
  registry,
  logger,
  dataVersions,
  swaps,
  others,
  disposers
}: Needs & { dataVersions: DataVersions; swaps: TableSwaps; others: ConcurrentWriters }): Projector {
  const projector = createProjector({
    tables: {
      loader: engines.clickhouse.loader,
      projections: engines.clickhouse.projections,
      rebuild: engines.clickhouse.rebuild
    },
    startReading: async (only) => readingThread({ choice: engines.logChoice, only }),
    reloadReaders: reloadReadersOf(engines.logChoice),
    sealKeys: async (people) => await sealKeys(await engines.writes(), people),
    registry,
    logger,
    aroundSwap: swaps.around,
    keepFree: (diskBytes) => freeMinBytesOf(config.DISK_FREE_MIN_BYTES, diskBytes),
    ...others,
    // A refresh that fails is told by DataVersions itself.
    onChange: () => void dataVersions.refresh().catch(() => undefined)
  })
  projector.start()
  return disposers.add(projector, () => projector.stop())
}

function makeIngest({
  config,
  engines,
  tables,
  registry,
  logger,
  people,
  demo,
  swaps,
  disposers,
  spooling
}: Needs & {
  people: People
  demo: Demo | undefined
  swaps: TableSwaps
  spooling: SpoolingLog | undefined
}): Ingest {
  const ingest = createIngest({
    log: spooling ?? engines.log,
    tables,
    writes: () => engines.writes(),
    people,
    upstreamUrl: config.UPSTREAM_URL ?? demo?.url ?? '',
    periods: {
      network: config.SCRAPE_NETWORK_SECONDS,
      games: config.SCRAPE_GAMES_SECONDS,
      matches: config.SCRAPE_MATCHES_SECONDS,
      boards: config.SCRAPE_BOARDS_SECONDS,
      players: config.SCRAPE_PLAYERS_SECONDS
    },
    achievements: {
      apart: (read) => new ConsistentReads(swaps.count).read(read),
      late: lateReader(engines.clickhouse.control, 'achievements')
    },
    requestsPerSecond:
      config.SCRAPE_REQUESTS_PER_SECOND ?? (demo === undefined ? REQUESTS_PER_SECOND : DEMO_REQUESTS_PER_SECOND),
    userAgent: `gamenet-stats/${VERSION} (+${publicUrl(config)})`,
    registry,
    logger
  })
  return disposers.add(ingest, () => ingest.stop())
}

function startRelay({
  engines,
  registry,
  logger,
  people,
  disposers
}: Omit<Needs, 'config' | 'tables'> & { people: People }): void {
  const relay = createRelay({ writes: () => engines.writes(), log: engines.log, people, registry, logger })
  relay.start()
  const unlisten = engines.postgres?.listen(CHANGED_CHANNEL, relay.wake, relay.wake)
  disposers.add(relay, async () => {
    await unlisten?.()
    await relay.stop()
  })
}

async function startApi({
  config,
  engines,
  tables,
  registry,
  logger,
  dataVersions,
  swaps,
  ready,
  authUrl,
  chat,
  disposers
}: Needs & {
  dataVersions: DataVersions
  swaps: TableSwaps
  ready: ReturnType<typeof readiness>
  authUrl: string | undefined
  chat: ChatSettings | undefined
}): Promise<string> {
  // Embedded, the projector next door tells of every change; elsewhere the table is asked.
  if (config.CLICKHOUSE_URL === undefined) await dataVersions.refresh()
  else await dataVersions.start(POLL_MS)
  swaps.start(POLL_MS)
  const catalog = catalogCache({ tables, versionOf: (dependency) => dataVersions.versionOf(dependency) })
  if (engines.postgres !== undefined) disposers.add(dataVersions.follow(engines.postgres), (unfollow) => unfollow())
  const app = await buildApp(
    {
      endpoints,
      actions,
      tables,
      ...(engines.postgres === undefined ? {} : { writes: engines.postgres }),
      authUrl,
      writesPerMinute: config.WRITES_PER_MINUTE,
      chat,
      dataVersions,
      swaps: swaps.count,
      catalog,
      onDrop: (drop) => {
        if (engines.postgres === undefined) return
        disposers.add(engines.postgres.listen(ERASED_CHANNEL, drop, drop), (unlisten) => unlisten())
      },
      publicUrl: publicUrl(config),
      serviceAuth: await serviceAuthFile(authUrl),
      version: VERSION,
      registry,
      logger,
      matchesPeriodSeconds: config.SCRAPE_MATCHES_SECONDS,
      ready
    },
    (app) => addPages(app, authUrl)
  )
  disposers.add(app, () => app.close())
  return listen(app, config.HOST, config.PORT, 'PORT')
}

async function startOperator({
  config,
  operations,
  registry,
  logger,
  ready,
  disposers
}: Pick<Needs, 'config' | 'registry' | 'logger' | 'disposers'> & {
  operations: Operations
  ready: ReturnType<typeof readiness>
}): Promise<string> {
  const app = buildOperatorApp({ operations, registry, ready, logger, host: config.OPERATOR_HOST })
  disposers.add(app, () => app.close())
  return listen(app, config.OPERATOR_HOST, config.OPERATOR_PORT, 'OPERATOR_PORT')
}

async function listen(app: FastifyInstance, host: string, port: number, variable: string): Promise<string> {
  try {
    return await app.listen({ host, port })
  } catch (error) {
    const code = errorCode(error)
    const why = code === 'EADDRINUSE' ? 'is taken by another program' : `cannot be listened on (${code})`
    throw new FailureError(`${host}:${port} ${why}; set ${variable} to another port, or 0 for any free one.`)
  }
}

function publicUrl(config: Config): string {
  return config.PUBLIC_URL ?? `http://${config.HOST.includes(':') ? `[${config.HOST}]` : config.HOST}:${config.PORT}`
}

function fillDemo({
  demo,
  engines: { directory, disk, log },
  people,
  projector,
  apiUrl,
  disposers
}: {
  readonly demo: Demo
  readonly engines: Engines
  readonly people: People
  readonly projector: Projector
  readonly apiUrl: string | null
  readonly disposers: Disposers
}): void {
  if (directory === undefined || apiUrl === null) return
  const beforeEachPart = async (signal: AbortSignal) => {
    await disk.whenRoom(signal)
    await projector.settled()
  }
  // Ended before the API, at which users of the demo act.
  disposers.add(demo.fill({ log, people, apiUrl, fileNamed: directory.part, beforeEachPart }), (end) => end())
}
