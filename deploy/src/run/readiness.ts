import type { DataVersions, Readiness } from '@gamenet/api'
import { withTimeout } from '@gamenet/schemas'
import { Gauge, type Registry } from 'prom-client'
import type { Role } from '../stores/component.js'
import type { TableDamage } from '../stores/damaged-tables.js'
import type { Engines } from '../stores/engines.js'

/** Longer than a query waits for a connection, shorter than the usual timeout of probes. */
const CHECK_MS = 2000

const ENGINES = ['tables', 'log', 'writes'] as const
type Engine = (typeof ENGINES)[number]

/**
 * The engines without which a process can do nothing. An API answers from memory; `ingest` spools. If every process
 * reported "not ready" for an engine that all share, a load balancer would have none left.
 */
const NEEDED: Readonly<Record<Role, readonly Engine[]>> = {
  all: [],
  api: [],
  ingest: [],
  projector: ['tables', 'log'],
  offline: [],
  verify: []
}

export type ReadinessCheck = {
  /** Concurrent calls share one check. */
  ready(): Promise<Readiness>
  /** From now on the process is not ready: it is about to stop. */
  stopping(): void
}

export function readiness({
  role,
  engines,
  dataVersions,
  damage,
  registry,
  hasApi
}: {
  readonly role: Role
  readonly engines: Pick<Engines, 'names' | 'postgres'> & {
    readonly clickhouse: { readonly control: Pick<Engines['clickhouse']['control'], 'rows'> }
    readonly log: Pick<Engines['log'], 'extents'>
    readonly disk: Pick<Engines['disk'], 'isLow' | 'isFull'>
  }
  readonly dataVersions: Pick<DataVersions, 'hasBeenCurrent'>
  readonly damage: { readonly tables: Pick<TableDamage['tables'], 'inUse'> }
  readonly registry: Registry
  readonly hasApi: boolean
}): ReadinessCheck {
  const { postgres } = engines
  const checks: Readonly<Record<Engine, (() => Promise<unknown>) | undefined>> = {
    tables: () => engines.clickhouse.control.rows('SELECT 1 AS one'),
    log: () => engines.log.extents('scrape'),
    writes: postgres && (() => postgres.check())
  }
  /** Returns the fault of each engine in use; undefined for one that answers. */
  const look = async () => {
    const used = ENGINES.flatMap((engine) => (checks[engine] === undefined ? [] : [[engine, checks[engine]] as const]))
    return await Promise.all(used.map(async ([engine, ask]) => ({ engine, fault: await faultOf(ask()) })))
  }
  const engineFaults = shared(look)
  let isStopping = false
  new Gauge({
    name: 'gamenet_engine_up',
    help: 'Whether the log, the tables and the write side answer',
    labelNames: ['engine'] as const,
    registers: [registry],
    async collect() {
      for (const { engine, fault } of await engineFaults()) this.set({ engine }, fault === undefined ? 1 : 0)
    }
  })
  const check = async (): Promise<Readiness> => {
    if (isStopping) return { ok: false, reason: 'it is stopping' }
    if (hasApi && !dataVersions.hasBeenCurrent)
      return { ok: false, reason: 'the changes of the tables are not known yet' }
    const faults = (await engineFaults()).filter(({ fault }) => fault !== undefined)
    const sentence = ({ engine, fault }: (typeof faults)[number]) => `${engine} (${engines.names[engine]}) ${fault}`
    const blocking = faults.find(({ engine }) => NEEDED[role].includes(engine))
    if (blocking !== undefined) return { ok: false, reason: sentence(blocking) }
    return {
      ok: true,
      degraded: [...faults.map(sentence), ...diskFault(engines.disk)],
      repairing: (await damage.tables.inUse()).map(({ table }) => table)
    }
  }
  return {
    ready: shared(check),
    stopping: () => {
      isStopping = true
    }
  }
}

function diskFault(disk: Pick<Engines['disk'], 'isLow' | 'isFull'>): string[] {
  if (disk.isFull()) return ['a disk of DATA_DIR is full or read-only, and writes fail']
  return disk.isLow() ? ['a disk of DATA_DIR has less than DISK_FREE_MIN_BYTES free'] : []
}

/** Returns why a check fails, or undefined. */
export async function faultOf(check: Promise<unknown>): Promise<string | undefined> {
  const fault = check.then(
    () => undefined,
    () => 'cannot be reached'
  )
  return await withTimeout(fault, CHECK_MS, () => `did not answer within ${CHECK_MS} ms`)
}

/** Calls during a run share its result. */
function shared<Result>(run: () => Promise<Result>): () => Promise<Result> {
  let running: Promise<Result> | undefined
  return () => {
    running ??= run().finally(() => {
      running = undefined
    })
    return running
  }
}
