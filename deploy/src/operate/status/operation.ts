import type { readProgress } from '@gamenet/projector'
import { type RebuildState, RebuildStatus } from '@gamenet/projector/rebuild'
import { millisecondsOf, pause, SCRAPE_SOURCES, type ScrapeRan, shownInstant, withServing } from '@gamenet/schemas'
import { z } from 'zod'
import { DiskStatus } from '../../data-directory/disk.js'
import type { Engines } from '../../stores/engines.js'
import { VERSION } from '../../version.js'
import { StallStatus, stallStatus } from '../gap/operation.js'
import { Instant, NoInput, type OperationNeeds, operation } from '../operation.js'

const SourceStatus = z.object({
  source: z.string(),
  /** 0 if it is scraped on request only; null in a process that does not scrape. */
  periodSeconds: z.int().nullable(),
  /** The last run in the tables, or a later one of this process. */
  lastRun: z
    .object({ observedAt: Instant, outcome: z.string(), durationMs: z.int(), published: z.int(), reason: z.string() })
    .nullable()
})
type LastRun = NonNullable<z.infer<typeof SourceStatus>['lastRun']>

export const Status = z.object({
  version: z.string(),
  startedAt: Instant,
  engines: z.record(z.string(), z.string()),
  /** The child process of an embedded ClickHouse, and how often it was started again; null for a server. */
  clickhouse: z.object({ pid: z.int().nullable(), restarts: z.int() }).nullable(),
  /** Why the process is not ready; null when it is. */
  notReady: z.string().nullable(),
  /** Engines that do not answer, disks that are full and damage that is known, while the process continues. */
  degraded: z.array(z.string()),
  sources: z.array(SourceStatus),
  topics: z.array(
    z.object({
      topic: z.string(),
      epoch: z.int(),
      partition: z.int(),
      head: z.int().nullable(),
      loaded: z.int(),
      /** Age of the topic's oldest event that is not loaded; null if another process loads. */
      lagSeconds: z.number().nullable()
    })
  ),
  /** Pending dead letters by topic; topics without any are absent. */
  deadLetters: z.record(z.string(), z.int()),
  projections: z.array(
    z.object({
      projection: z.string(),
      state: z.string(),
      lagEvents: z.int(),
      /** Age of the oldest event that it has not consumed; null if another process projects. */
      lagSeconds: z.number().nullable(),
      reason: z.string().nullable()
    })
  ),
  /** Rebuilds that run or have tables left; empty if another process projects. */
  rebuilds: z.array(RebuildStatus),
  stalled: z.array(StallStatus),
  /** Messages in the spool of this process; null in processes without a spool. */
  spool: z
    .object({
      bytes: z.int(),
      bytesMax: z.int(),
      messages: z.int(),
      oldestAt: Instant.nullable(),
      reason: z.string().nullable()
    })
    .nullable(),
  /** Damaged tables, and what is lost with them. */
  damage: z.array(z.object({ table: z.string(), state: z.enum(['repairing', 'left']), reason: z.string() })),
  /** Erasures that are not complete; null if PostgreSQL is not open or does not answer. */
  erasures: z.object({ pending: z.int(), oldestSeconds: z.number() }).nullable(),
  /** Why loading is stalled, or null. */
  trouble: z.string().nullable(),
  disk: DiskStatus,
  /** Background work, such as the demo's history. */
  background: z.array(z.object({ name: z.string(), done: z.int(), total: z.int() }))
})
export type Status = z.infer<typeof Status>

const STARTED_AT = shownInstant(Math.round(performance.timeOrigin))

export const status = operation({
  name: 'status',
  route: 'GET /status',
  input: NoInput,
  result: Status,
  run: async (needs) => {
    const { engines, ingest, state } = needs
    const nowMs = Date.now()
    const [readiness, datasets, runs, progress, rebuilds, disk, damage, erasures] = await Promise.all([
      state.ready(),
      unusableDatasets(engines),
      newestRuns(engines, nowMs).catch(noRunsIfDamaged),
      progressOf(needs),
      unfinishedRebuilds(needs),
      engines.disk.status(),
      needs.damage.status(),
      pendingErasures(engines).catch(() => null)
    ])
    const sources = SCRAPE_SOURCES.map((source) => {
      const own = ingest?.status().find((each) => each.source === source)
      return {
        source,
        periodSeconds: ingest === undefined ? null : (own?.periodSeconds ?? 0),
        lastRun: newerRun(own?.lastRun, runs.past.get(source), nowMs)
      }
    })
    return {
      version: VERSION,
      startedAt: STARTED_AT,
      engines: { ...engines.names },
      clickhouse: processOf(engines),
      notReady: readiness.ok ? null : readiness.reason,
      degraded: [
        ...((readiness.ok && readiness.degraded) || []),
        ...datasets,
        ...state.damageMet,
        ...replicasAway(engines.clickhouse),
        ...clockBack(runs.newestMs, nowMs)
      ],
      sources,
      ...progress,
      spool: state.spool?.status() ?? null,
      damage,
      erasures,
      rebuilds,
      disk,
      background: [state.demo?.progress() ?? []].flat().filter((work) => work.total > 0)
    }
  }
})

function processOf({ clickhouse }: Engines): Status['clickhouse'] {
  const found = clickhouse.process?.()
  return found === undefined ? null : { pid: found.pid ?? null, restarts: found.restarts }
}

/** Returns the faults of replicas, also of those that this process does not use. */
export function replicasAway({ replicas }: Pick<Engines['clickhouse'], 'replicas'>): string[] {
  const found = replicas?.() ?? []
  return found.flatMap(({ address, fault }) => (fault === undefined ? [] : [`the replica ${address} ${fault}`]))
}

/** A difference of clocks that no transfer explains. */
export const CLOCK_SECONDS_MAX = 2

/** Says that scrapes are dated after now: answers leave their values out until then. */
export function clockBack(newestRunMs: number, nowMs: number): string[] {
  const aheadMs = newestRunMs - nowMs
  if (aheadMs <= CLOCK_SECONDS_MAX * 1000) return []
  return [
    `the newest scrape is ${Math.round(aheadMs / 1000)} s ahead of this clock; answers leave its values out until ` +
      'then (gamenet doctor)'
  ]
}

async function unusableDatasets({ directory }: Engines): Promise<string[]> {
  if (directory === undefined) return []
  const { unusableNames } = await import('@gamenet/api')
  const [first, ...others] = await unusableNames(directory.part('datasets'))
  if (first === undefined) return []
  const more = others.length === 0 ? '' : ` and ${others.length} others`
  return [`datasets/${first}${more} cannot be read (gamenet verify)`]
}

async function pendingErasures({ postgres }: Engines): Promise<Status['erasures']> {
  if (postgres === undefined) return null
  const { readLedger } = await import('../../stores/ledger.js')
  const pending = (await readLedger(postgres)).filter(({ doneAt }) => doneAt === null)
  const oldestMs = Math.max(...pending.map(({ erasedAt }) => Date.now() - erasedAt.getTime()), 0)
  return { pending: pending.length, oldestSeconds: Math.round(oldestMs / 1000) }
}

type TableProgress = Awaited<ReturnType<typeof readProgress>>
type Progress = Pick<Status, 'topics' | 'deadLetters' | 'projections' | 'stalled' | 'trouble'>

async function progressOf({ engines, projector }: OperationNeeds): Promise<Progress> {
  if (projector === undefined) return await progressByTables(engines)
  const status = await projector.status()
  return {
    topics: status.topics.flatMap(({ topic, partitions, lagSeconds }) =>
      partitions.map((each) => ({ topic, ...each, lagSeconds }))
    ),
    deadLetters: Object.fromEntries(
      status.topics.filter(({ deadLetters }) => deadLetters > 0).map(({ topic, deadLetters }) => [topic, deadLetters])
    ),
    projections: status.projections.map(({ projection, state, lag, lagSeconds, reason }) => ({
      projection,
      state,
      lagEvents: lag,
      lagSeconds,
      reason
    })),
    stalled: status.stalled.map(stallStatus),
    trouble: status.loaderTrouble
  }
}

/** How long a process without a projector waits for another one to move what is behind. */
const STILL_MS = 5000
const LOOK_MS = 200

/**
 * For processes without a projector. Reads until nothing is behind or something has moved: nothing else shows that a
 * projector runs.
 */
async function progressByTables({ store, log, isEmbedded }: Engines): Promise<Progress> {
  const { readProgress } = await import('@gamenet/projector')
  const first = await readProgress({ store, log })
  const endMs = performance.now() + STILL_MS
  const isStill = () => !isEmbedded && eventsBehind(progress) > 0 && positionsOf(progress) === positionsOf(first)
  let progress = first
  while (isStill() && performance.now() < endMs) {
    await pause(LOOK_MS)
    progress = await readProgress({ store, log })
  }
  return {
    topics: progress.topics.flatMap(({ topic, partitions }) =>
      partitions.map((each) => ({ topic, ...each, lagSeconds: null }))
    ),
    deadLetters: Object.fromEntries(progress.deadLetters),
    projections: progress.projections.map(({ projection, lag }) => ({
      projection,
      state: 'elsewhere',
      lagEvents: lag,
      lagSeconds: null,
      reason: null
    })),
    stalled: progress.stalled.map(stallStatus),
    trouble: isStill()
      ? `${eventsBehind(progress)} events wait, and none was loaded or projected for ${STILL_MS / 1000} s; start a ` +
        'projector'
      : null
  }
}

/** Events that a projector should load or project now. */
function eventsBehind({ topics, projections, stalled }: TableProgress): number {
  if (stalled.length > 0) return 0
  const unread = topics.flatMap(({ partitions }) => partitions.map(({ head, loaded }) => (head ?? loaded) - loaded))
  return [...unread, ...projections.map(({ lag }) => lag)].reduce((sum, lag) => sum + lag, 0)
}

function positionsOf({ topics, projections }: TableProgress): string {
  const loaded = topics.flatMap(({ partitions }) => partitions.map((each) => each.loaded))
  return String([...loaded, ...projections.map(({ lag }) => lag)])
}

/** States in which a rebuild has no tables. */
const OVER: readonly RebuildState[] = ['cancelled', 'rolled-back', 'dropped']

async function unfinishedRebuilds({ projector }: OperationNeeds): Promise<RebuildStatus[]> {
  if (projector === undefined) return []
  return (await projector.rebuilds.list()).filter(({ state }) => !OVER.includes(state))
}

/** Returns the newer of two runs up to now. The tables may lack a run of this process while the log is unavailable. */
function newerRun(own: ScrapeRan | null | undefined, known: LastRun | undefined, nowMs: number): LastRun | null {
  const ms = (run: { readonly observedAt: string }) => millisecondsOf(run.observedAt)
  if (!own || ms(own) > nowMs || (known !== undefined && ms(known) >= ms(own))) return known ?? null
  const { source: _source, reason = '', ...run } = own
  return { ...run, reason }
}

const Run = z.object({
  source: z.string(),
  observedAtMs: z.coerce.number(),
  outcome: z.string(),
  durationMs: z.int(),
  published: z.int(),
  reason: z.string()
})

/** A damaged table is in the list of damage. */
async function noRunsIfDamaged(error: unknown): Promise<Runs> {
  const { undefinedIfDamaged } = await import('../../stores/engine-failures.js')
  undefinedIfDamaged(error)
  return { past: new Map(), newestMs: 0 }
}

type Runs = { readonly past: Map<string, LastRun>; readonly newestMs: number }

/**
 * Returns the last run of every source in the tables up to now, of any process, and the instant of the newest of all.
 */
async function newestRuns({ clickhouse, store }: Engines, nowMs: number): Promise<Runs> {
  const { readPointers } = await import('@gamenet/projector')
  const { serving } = await store.do(readPointers)
  const rows = await withServing(clickhouse.control, serving).rows(
    `SELECT s.source AS source, toUnixTimestamp64Milli(s.ts) AS observedAtMs, s.outcome AS outcome,
           s.duration_ms AS durationMs, s.published AS published, s.reason AS reason
    FROM {scrape: Identifier} AS s FINAL ORDER BY s.source, s.ts DESC
    LIMIT 1 BY s.source, observedAtMs > {nowMs: Int64}`,
    { nowMs }
  )
  const runs = rows.map((row) => Run.parse(row))
  const past = runs.filter(({ observedAtMs }) => observedAtMs <= nowMs)
  return {
    past: new Map(
      past.map(({ source, observedAtMs, ...run }) => [source, { observedAt: shownInstant(observedAtMs), ...run }])
    ),
    newestMs: Math.max(0, ...runs.map(({ observedAtMs }) => observedAtMs))
  }
}
