import { randomBytes } from 'node:crypto'
import { type ClientAddresses, clientAddresses, DataVersions } from '@gamenet/api'
import type { Postgres } from '@gamenet/engines'
import { createPeople } from '@gamenet/ingest'
import { migrate, type ReadSide, readSide, storeOver } from '@gamenet/projector'
import { pause, withServing } from '@gamenet/schemas'
import { pino } from 'pino'
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { Config } from '../config.js'
import type { Operations, ProcessState } from '../operate/operation.js'
import { requireOperatorToken } from '../operator/exposure.js'
import { buildMetricsApp, buildOperatorApp } from '../operator/operator-app.js'
import {
  type Components,
  isCommand,
  openComponents,
  type ProcessContext,
  type Role,
  runs
} from '../stores/component.js'
import { concurrentWriters, stepsOf } from '../stores/concurrent-writers.js'
import { openTableDamage } from '../stores/damaged-tables.js'
import { once, openEngines, startFailure } from '../stores/engines.js'
import { loggedError } from '../stores/logged-error.js'
import { requireNewestWrites } from '../stores/older-writes.js'
import { openSpoolingLog, usesSpool } from '../stores/spool.js'
import { refuseUnsuitable } from '../stores/suitable-tables.js'
import { requireWholeLog } from '../stores/whole-log.js'
import { VERSION } from '../version.js'
import { openApi } from './api.js'
import { connectionLimit, connectionsText } from './connection-limits.js'
import { fillDemo, openDemo } from './demo.js'
import type { Dependencies, Needs, Steps } from './dependencies.js'
import { addEngineMetrics } from './engine-metrics.js'
import { createServiceIngest, startRelay } from './ingest.js'
import { listen } from './listen.js'
import { operations } from './operations.js'
import { changedAnswersOf } from './preview.js'
import { startProjector } from './projector.js'
import { endpointsOf, readQuestions } from './questions.js'
import { readiness } from './readiness.js'
import { reapplyErasures } from './reapply-erasures.js'
import { type ServiceOperations, serviceOperations } from './service-operations.js'
import { endOfSupport, readUncleanLog, upstreamNotice } from './start-notices.js'
import { uncaughtErrors } from './uncaught-errors.js'

export type { Role } from '../stores/component.js'

export type Service = {
  readonly operations: Operations
  /** The public address; null for roles without one. */
  readonly apiUrl: string | null
  readonly operatorUrl: string | null
  /** The address of the port with only health and metrics; null without METRICS_PORT. */
  readonly metricsUrl: string | null
  /** Role of an engine → its name. */
  readonly engines: Readonly<Record<string, string>>
  /** The demo network's address; null if a real network is scraped. */
  readonly demoUrl: string | null
  /** The address of the auth service; null if there is none. */
  readonly authUrl: string | null
  /** A demo user for signing in; null without the demo auth service. */
  readonly demoUser: { readonly username: string; readonly email: string; readonly password: string } | null
  /** Reports "not ready", and answers for SHUTDOWN_DELAY_SECONDS more, so that load balancers notice. */
  drain(): Promise<void>
  /** Finishes running work and releases everything. */
  close(): Promise<void>
  /** Handles what nothing caught: see {@link uncaughtErrors}. */
  onUncaught(error: unknown): void
}

const RUNNING: readonly Role[] = ['all', 'ingest', 'projector', 'api']
const UPSTREAM_LOOK_MS = 2000
const EVERY: readonly Role[] = [...RUNNING, 'offline', 'verify']

/** The components of each role, in the order of opening; they are closed in reverse order. */
const components: Components<Dependencies & Steps> = {
  processWarnings: { roles: RUNNING, open: warnOfProcess },
  damageMet: { roles: EVERY, open: () => new Set() },
  onUncaught: { roles: RUNNING, open: uncaughtErrors },
  connectionLimit: { roles: EVERY, open: ({ config, logger }) => connectionLimit(config, logger) },
  clients: { roles: ['all', 'api'], open: ({ config, logger }) => namedClients(config, logger) },
  engines: { roles: EVERY, open: openEngines, close: (engines) => engines.close() },
  engineMetrics: { roles: EVERY, open: ({ registry, engines }) => addEngineMetrics(registry, engines) },
  concurrentWriters: {
    roles: EVERY,
    open: ({ config, engines, registry }) => concurrentWriters(config, engines, registry)
  },

  // Before anything is loaded, projected or answered: schemas, then repairs of an engine restored from an older copy.
  suitableTables: {
    roles: EVERY,
    when: (config) => config.CLICKHOUSE_URL !== undefined,
    open: ({ config, engines, logger }) =>
      refuseUnsuitable(engines.clickhouse.control, {
        addresses: config.CLICKHOUSE_URL?.length ?? 1,
        warn: (sentence) => logger.warn(sentence)
      })
  },
  migrations: { roles: EVERY, open: ({ engines }) => migrate(engines.clickhouse.control) },
  // Before an erasure changes the tables or PostgreSQL, and before anything gets a number.
  numberedWrites: { roles: EVERY, open: openNumberedWrites },
  erasures: { roles: ['all', 'ingest', 'projector'], open: reapplyErasures },
  damage: { roles: EVERY, open: openTableDamage, close: (damage) => damage.stop() },

  // Before anything is appended.
  wholeLog: { roles: [...RUNNING, 'offline'], open: ({ engines }) => requireWholeLog(engines) },

  tables: { roles: EVERY, open: ({ engines, damage }) => damage.guarded(engines.clickhouse.readers) },
  readSide: { roles: EVERY, open: openReadSide },
  dataVersions: { roles: EVERY, open: openDataVersions, close: (versions) => versions.stop() },
  projector: {
    roles: ['all', 'projector', 'offline'],
    // No other process would load an embedded log.
    when: (config, role) => !isCommand(role) || config.KAFKA_BROKERS === undefined,
    open: startProjector,
    close: (projector) => projector.stop()
  },

  demo: {
    roles: ['all', 'ingest', 'offline'],
    when: (config) => config.UPSTREAM_URL === undefined,
    open: openDemo,
    close: (demo) => demo.close()
  },
  authUrl: { roles: EVERY, open: ({ config, demo }) => config.AUTH_URL ?? demo?.auth?.url },
  people: { roles: EVERY, open: ({ numberedWrites, registry }) => createPeople({ writes: numberedWrites, registry }) },
  spool: { roles: ['all', 'ingest'], when: usesSpool, open: openSpoolingLog },
  ingest: {
    roles: ['all', 'ingest', 'offline'],
    open: createServiceIngest,
    close: (ingest) => ingest.stop()
  },

  readiness: { roles: EVERY, open: (needs) => readiness({ ...needs, hasApi: runs(components.api, needs) }) },
  operations: { roles: EVERY, open: openOperations },
  api: { roles: ['all', 'api'], open: openApi },
  operatorToken: {
    roles: RUNNING,
    // The command line finds it in the data directory.
    open: ({ config, engines }) =>
      config.OPERATOR_TOKEN ?? (engines.directory === undefined ? undefined : randomBytes(24).toString('base64url'))
  },
  operatorPort: { roles: RUNNING, open: openOperatorPort },
  metricsPort: { roles: RUNNING, when: (config) => config.METRICS_PORT !== undefined, open: openMetricsPort },
  // Running operations end before the components that they use, and before the operator port, which waits for their
  // answers.
  operationsInFlight: { roles: EVERY, open: ({ operations }) => operations, close: (operations) => operations.stop() },
  announcement: {
    roles: RUNNING,
    open: ({ engines, operatorPort = '', operatorToken }) =>
      engines.directory?.announce({ operatorUrl: operatorPort, operatorToken })
  },
  // The announcement says that the log may be damaged.
  uncleanLog: { roles: RUNNING, open: readUncleanLog, close: (stop) => stop() },

  scraping: { roles: ['all', 'ingest'], open: ({ ingest }) => ingest?.start() },
  upstreamNotice: {
    roles: ['all', 'ingest'],
    when: (config) => config.UPSTREAM_URL !== undefined && config.SCRAPE_NETWORK_SECONDS > 0,
    open: noticeUpstream,
    close: clearInterval
  },
  relay: { roles: ['all', 'ingest'], open: startRelay, close: (relay) => relay.stop() },
  unfinishedErasures: { roles: ['all', 'ingest'], open: ({ operations }) => operations.finish.erasures() },
  unfinishedImportUndos: { roles: ['all', 'projector'], open: finishImportUndos },
  // Closed first: demo users act through the API.
  demoHistory: {
    roles: ['all'],
    when: (config) => config.UPSTREAM_URL === undefined,
    open: fillDemo,
    close: (history) => history.stop()
  }
}

/**
 * Opens the components of the role. Throws a `UsageError` or `FailureError` with one sentence on failure; then nothing
 * is left open.
 */
export async function openService(
  config: Config,
  role: Role,
  { acceptsOlder = false }: { readonly acceptsOlder?: boolean } = {}
): Promise<Service> {
  requireOperatorToken(config, role)
  const errors = pino.destination(2)
  // A full disk behind standard error costs lines of the log, not the service.
  errors.on('error', () => undefined)
  const logger = pino({ level: config.LOG_LEVEL, serializers: { err: loggedError } }, errors)
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  new Gauge({
    name: 'gamenet_build_info',
    help: 'The version of the program and the role of the process',
    labelNames: ['version', 'role'] as const,
    registers: [registry]
  }).set({ version: VERSION, role }, 1)
  const context = { config, role, acceptsOlder, logger, registry }
  const { values, close } = await openComponents(components, context).catch(async (error: unknown) => {
    throw await startFailure(config, error)
  })
  return {
    operations: values.operations.operations,
    apiUrl: values.api ?? null,
    operatorUrl: values.operatorPort ?? null,
    metricsUrl: values.metricsPort ?? null,
    engines: values.engines.names,
    demoUrl: values.demo?.url ?? null,
    authUrl: values.authUrl ?? null,
    demoUser: values.demo?.person ?? null,
    drain: async () => {
      values.readiness.stopping()
      await pause(config.SHUTDOWN_DELAY_SECONDS * 1000)
    },
    close,
    onUncaught: values.onUncaught
  }
}

function namedClients({ TRUSTED_PROXIES: proxies }: Config, logger: ProcessContext['logger']): ClientAddresses {
  return clientAddresses(proxies, (peer) =>
    logger.warn(
      { peer },
      'A peer sends X-Forwarded-For, and TRUSTED_PROXIES does not contain it. Limits per address do not apply to it: ' +
        'if it is your proxy, add it.'
    )
  )
}

/** Returns what `gamenet doctor` says of the addresses that limits go by. */
function proxiesText({ config, clients }: Needs): string {
  if (clients === undefined) return 'no API in this process'
  const { TRUSTED_PROXIES: trusted = [] } = config
  const untrusted = [...clients.untrustedProxies].join(', ')
  const found = `TRUSTED_PROXIES has ${trusted.length === 0 ? 'none' : trusted.join(', ')}`
  if (untrusted === '') return found
  return (
    `${found}; X-Forwarded-For came from ${untrusted}, to which limits per address do not apply: add what is ` +
    `your proxy`
  )
}

function warnOfProcess({ logger }: Pick<Needs, 'logger'>): void {
  const old = endOfSupport(process.versions.node, Date.now())
  if (old !== undefined) logger.warn(old)
  if (process.getuid?.() === 0) logger.warn('The service runs as root. Start it as a separate user that owns DATA_DIR.')
}

function noticeUpstream({ ingest, config, logger }: Needs): NodeJS.Timeout {
  const begunMs = performance.now()
  const look = upstreamNotice({
    url: config.UPSTREAM_URL ?? '',
    network: () => ingest?.status().find(({ source }) => source === 'network'),
    sinceStartMs: () => performance.now() - begunMs,
    say: (sentence) => logger.warn(sentence)
  })
  return setInterval(look, UPSTREAM_LOOK_MS).unref()
}

/** Opens the write side for new numbers; a command does so only when it needs one. */
async function openNumberedWrites(needs: Needs): Promise<() => Promise<Postgres>> {
  const { engines, role, acceptsOlder } = needs
  const writes = once(async () => {
    const opened = await engines.writes()
    await requireNewestWrites(opened, engines.store, acceptsOlder)
    return opened
  })
  if (!isCommand(role)) await writes()
  return writes
}

/** Answers read positions, so these reads share the bounded queue of their queries. */
function openReadSide({ engines, tables }: Needs): ReadSide {
  const readers = storeOver({ ...engines.clickhouse.control, rows: (...query) => tables.rows(...query) })
  return { ...readSide(engines.store), positions: readSide(readers).positions }
}

function openDataVersions({ readSide, logger }: Needs): DataVersions {
  return new DataVersions({
    changes: readSide.changes,
    serving: readSide.serving,
    arrived: readSide.arrived,
    onFailure: (error) => logger.warn({ err: error }, 'the changes of the tables cannot be read')
  })
}

function openOperations(needs: Needs): ServiceOperations {
  const { config, role, engines, concurrentWriters, projector, dataVersions, migrations, ingest, people, damage } =
    needs
  const { demo, spool, damageMet, readiness, logger } = needs
  return serviceOperations({
    ...{ engines, projector, ingest, people, damage, logger },
    state: { demo, spool, damageMet, ready: readiness.ready, checks: checksOf(needs) },
    changedAnswers: changedAnswersOf(needs),
    hasLog: role !== 'api' || config.KAFKA_BROKERS !== undefined,
    steps: projector ?? stepsOf(concurrentWriters),
    isRunning: !isCommand(role),
    onChange: () => dataVersions.refresh(),
    applied: role === 'offline' ? migrations : []
  })
}

/** Returns the checks of settings for `gamenet doctor`. */
function checksOf(needs: Needs): ProcessState['checks'] {
  const { QUESTIONS_DIR: folder, PUBLIC_URL: publicUrl } = needs.config
  return {
    connections: () => connectionsText(needs.connectionLimit),
    proxies: async () => proxiesText(needs),
    links: async () =>
      publicUrl ??
      'PUBLIC_URL is not set: pages have relative addresses, and links to them no preview elsewhere. ' +
        'Set it on a public service.',
    'saved questions': async () => {
      const questions = await readQuestions(folder, withServing(needs.tables, await needs.readSide.serving()))
      return folder === undefined ? 'none (QUESTIONS_DIR)' : `${endpointsOf(questions).length} in ${folder}`
    }
  }
}

/** Starts the operator port and returns its address. */
async function openOperatorPort({
  config,
  operations: own,
  operatorToken,
  readiness,
  ...needs
}: Needs): Promise<string> {
  const { OPERATOR_HOST: host, OPERATOR_PORT: port } = config
  const app = buildOperatorApp(operations, { ...needs, ...own, token: operatorToken, ready: readiness.ready, host })
  needs.disposers.add(app, () => app.close())
  return await listen(app, host, port, 'OPERATOR_PORT')
}

/** Starts the port with only health and metrics and returns its address. */
async function openMetricsPort({ config, readiness, ...needs }: Needs): Promise<string> {
  const { METRICS_HOST: host, METRICS_PORT: port = 0 } = config
  const app = buildMetricsApp({ ...needs, ready: readiness.ready, host })
  needs.disposers.add(app, () => app.close())
  return await listen(app, host, port, 'METRICS_PORT')
}

/** Completes import undos that an earlier process left, in the background, once no table is damaged. */
function finishImportUndos({ operations, damage, logger }: Needs): void {
  const finish = async () => ((await damage.whenSound()) ? await operations.finish.importUndos() : 0)
  finish().catch((error: unknown) => {
    logger.error({ err: error }, 'an interrupted import undo could not be completed; the next start retries')
  })
}
