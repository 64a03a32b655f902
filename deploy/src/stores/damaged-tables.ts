import { type ClickHouse, ClickHouseError } from '@gamenet/engines'
import {
  changedDefinitions,
  continueWithout,
  type DamagedTable,
  DamagedTables,
  dataTables,
  dropDetachedParts,
  type LostBookkeeping,
  type Projector,
  projections,
  readBrokenParts,
  readDamagedParts,
  type Store
} from '@gamenet/projector'
import { type Parameters, pause, Refusal, SharedRun, tablesIn } from '@gamenet/schemas'
import type { Logger } from 'pino'
import { Gauge, type Registry } from 'prom-client'
import { isOfDamage, MISFIT_CODES, NOT_ENOUGH_SPACE } from './engine-failures.js'
import type { Engines } from './engines.js'

/** A damaged table or its consequence, for status. */
export type DamageStatus = {
  readonly table: string
  /** `repairing`: it is being rebuilt. `left`: an operator must decide. */
  readonly state: 'repairing' | 'left'
  readonly reason: string
}

/** Damage of tables: what answers must not read, and its repair, which the projector runs. */
export type TableDamage = {
  readonly tables: DamagedTables
  /** Wraps readers to refuse damaged tables: an answer without their rows would be wrong. */
  guarded(readers: ClickHouse['readers']): Pick<ClickHouse['readers'], 'rows' | 'json' | 'stream'>
  /** Names the projector of this process, which repairs. */
  repairedBy(projector: Pick<Projector, 'caughtUp'>): void
  /** Resolves with true when no table in use is damaged; with false when the service stops first. */
  whenSound(): Promise<boolean>
  status(): Promise<DamageStatus[]>
  /** The part of `status` that no file in use shows any more: lost rows, and parts that a server has detached. */
  setAside(): Promise<DamageStatus[]>
  stop(): Promise<void>
}

const RETRY_AFTER_SECONDS = 30
const AGAIN_MS = 5000

/** Reads what is known of damage, before anything loads, projects or answers. A server's tables are only reported. */
export async function openTableDamage({
  engines: { store, damageWatch },
  registry,
  logger
}: {
  readonly engines: Pick<Engines, 'store' | 'damageWatch'>
  readonly registry: Registry
  readonly logger: Logger
}): Promise<TableDamage> {
  const stopping = new AbortController()
  const tables = new DamagedTables(store, projections)
  const isOurs = damageWatch !== undefined
  let lost: readonly LostBookkeeping[] = []
  /** Checks of tables in which damage was met, one after the other; many statements may meet it. */
  let checked: Promise<void> = Promise.resolve()
  const awaited = new Set<string>()
  let projector: Pick<Projector, 'caughtUp'> | undefined
  const continued = async () => {
    lost = await continueWithout(store, tables)
    for (const { table, reason } of lost) logger.error({ table }, sentenceOfLost({ table, reason }))
  }
  /** Drops the record of the loss when everything is projected again. */
  const settling = new SharedRun(async () => {
    while (lost.length > 0 && projector !== undefined && !stopping.signal.aborted) {
      try {
        await projector.caughtUp({ signal: stopping.signal })
        for (const { table } of lost) await store.do(dropDetachedParts, table)
        lost = []
      } catch (error) {
        if (stopping.signal.aborted) return
        logger.warn({ err: error }, 'the bookkeeping that was lost is not complete yet')
        await pause(AGAIN_MS, stopping.signal)
      }
    }
  })
  if (damageWatch !== undefined) {
    await tables.open()
    await continued()
    damageWatch.onData = (met) => {
      const more = met.filter((name) => !tables.has(name) && !awaited.has(name))
      for (const name of more) awaited.add(name)
      checked = checked
        .then(() => checkTables(store, tables, more, logger))
        .finally(() => more.forEach((name) => void awaited.delete(name)))
    }
    damageWatch.onBookkeeping = async () => {
      await continued()
      void settling.run()
    }
    for (const { table, reason } of await tables.inUse()) logger.error({ table, reason }, 'a table is damaged')
  }
  const refuse = (sql: string, parameters: Parameters = {}): void => {
    const isDamaged = tablesIn(sql).some((table) => tables.has(String(parameters[table] ?? table)))
    // Answers up to a position would end too early.
    const isWithoutPosition = lost.some(({ table }) => table === 'checkpoint') && sql.includes('FROM checkpoint ')
    if (isDamaged || isWithoutPosition)
      throw new Refusal('data_damaged', [], { retryAfterSeconds: RETRY_AFTER_SECONDS })
  }
  const setAside = async (): Promise<DamageStatus[]> => [
    ...lost.map((each): DamageStatus => {
      return { table: each.table, state: each.reason === null ? 'repairing' : 'left', reason: sentenceOfLost(each) }
    }),
    ...(isOurs ? [] : [...(await store.do(readBrokenParts))].map(statusOnServer))
  ]
  const status = async (): Promise<DamageStatus[]> => [
    ...(await tables.inUse()).map((each) => statusOf(each, projector !== undefined)),
    ...tables.gone.map((reason): DamageStatus => ({ table: 'events', state: 'left', reason })),
    ...(await setAside())
  ]
  addMetric(registry, status)
  return {
    tables,
    guarded: (readers) => guarded(readers, refuse, isOurs),
    repairedBy: (given) => {
      projector = given
      void settling.run()
    },
    whenSound: async () => {
      while ((await tables.inUse()).length > 0 && !stopping.signal.aborted) await pause(AGAIN_MS, stopping.signal)
      return !stopping.signal.aborted
    },
    status,
    setAside,
    stop: async () => {
      stopping.abort()
      await checked
      if (projector !== undefined) await settling.run()
    }
  }
}

/** Checks the tables of a statement that met damage, and marks those that have damaged parts. Never rejects. */
async function checkTables(
  store: Store,
  damaged: DamagedTables,
  names: readonly string[],
  logger: Logger
): Promise<void> {
  try {
    for (const name of names)
      for (const { part, reason } of await store.do(readDamagedParts, name)) {
        logger.error({ table: name, part, reason }, 'a table is damaged')
        await damaged.mark([[name, `its part ${part} does not match its checksum`]])
      }
  } catch (error) {
    logger.warn({ err: error, tables: names }, 'damage was met, and the tables cannot be checked')
  }
}

function statusOf({ table, reason, left }: DamagedTable, isRepairing: boolean): DamageStatus {
  const way = left ?? (isRepairing ? 'it is being rebuilt' : 'gamenet start rebuilds it')
  return {
    table,
    state: left === null ? 'repairing' : 'left',
    reason: `${table} is damaged: ${reason}. Answers that need it, or what is computed from it, are refused; ${way}.`
  }
}

function statusOnServer([name, parts]: readonly [string, number]): DamageStatus {
  const reason =
    `${parts} parts of ${name} could not be read by the server at its start, so rows are missing. Rebuild what reads ` +
    `it (gamenet rebuild, with --from-log for a table event_*), and drop the parts: ALTER TABLE ${name} DROP ` +
    `DETACHED PARTITION ALL SETTINGS allow_drop_detached = 1`
  return { table: name, state: 'left', reason }
}

function sentenceOfLost({ table, reason }: LostBookkeeping): string {
  return `Rows of ${table} were damaged and are lost: ${reason ?? 'they are written again'}.`
}

function guarded(
  { rows, json, stream }: ClickHouse['readers'],
  refuse: (sql: string, parameters?: Parameters) => void,
  isOurs: boolean
) {
  const guard =
    <Rest extends unknown[], Answer>(read: (sql: string, ...rest: Rest) => Promise<Answer>) =>
    async (sql: string, ...rest: Rest): Promise<Answer> => {
      refuse(sql, rest[0] as Parameters | undefined)
      return await read(sql, ...rest).catch((error) => refuseUnreadable(error, isOurs ? { rows } : undefined))
    }
  return { rows: guard(rows), json: guard(json), stream: guard(stream) }
}

/** `definedByUs`: the tables, if only this program defines them; then a definition that differs from it is damaged. */
async function refuseUnreadable(
  error: unknown,
  definedByUs: Pick<ClickHouse['readers'], 'rows'> | undefined
): Promise<never> {
  if (!(error instanceof ClickHouseError) || error.code === undefined) throw error
  const options = { retryAfterSeconds: RETRY_AFTER_SECONDS, cause: error }
  if (error.code === NOT_ENOUGH_SPACE) throw new Refusal('disk_full', [], options)
  const isMisfit = definedByUs !== undefined && MISFIT_CODES.has(error.code)
  const isDamaged = isOfDamage(error) || (isMisfit && (await changedDefinitions(definedByUs)).length > 0)
  throw isDamaged ? new Refusal('data_damaged', [], options) : error
}

function addMetric(registry: Registry, status: () => Promise<DamageStatus[]>): void {
  const gauge = new Gauge({
    name: 'gamenet_damaged_tables',
    help: 'Alarm: findings about damaged tables that are not repaired yet, and about events that stay lost',
    labelNames: ['table'],
    registers: [registry],
    async collect() {
      // Other metrics show whether the tables are unavailable.
      const found = await status().catch(() => undefined)
      if (found === undefined) return
      gauge.reset()
      for (const table of dataTables(projections)) gauge.set({ table }, 0)
      for (const { table } of found) gauge.inc({ table })
    }
  })
}
