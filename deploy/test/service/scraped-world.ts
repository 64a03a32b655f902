import type { ClickHouse, Postgres } from '@gamenet/engines'
import { createIngest, createPeople, type Ingest, sealKeys } from '@gamenet/ingest'
import { createProjector, type Projector, readSide, storeOver, type Tables } from '@gamenet/projector'
import { readInline } from '@gamenet/projector/testing'
import { decodeEvent, type Logger, type Topic, topics } from '@gamenet/schemas'
import { Registry } from 'prom-client'
import type { Test } from 'tap'
import { openTestEngines } from './open-engines.js'
import { startUpstream, type Upstream } from './upstream.js'

const AT_ONCE = { firstMs: 1, maxMs: 5 }
const QUIET = { info: () => {}, warn: () => {}, error: () => {} }

/** The real environment of ingest: pages over HTTP, log, tables, write side, and a projector that loads them. */
export type ScrapedWorld = {
  readonly upstream: Upstream
  readonly tables: ClickHouse
  readonly writes: Postgres
  readonly projector: Projector
  /** Opens another process that scrapes on request, until the test ends. */
  ingest(options?: {
    readonly life?: Life
    readonly boardSeconds?: number
    readonly playersSeconds?: number
    readonly logger?: Logger
    /** Its clock, in milliseconds since 1970. */
    readonly now?: () => number
  }): ScrapingProcess
  /** Returns all messages of a topic in order. */
  events<Event>(topic: Topic<Event>): Promise<Event[]>
  /** Ends all leases, and makes every visit due. */
  passTime(): Promise<void>
}

export type ScrapingProcess = { readonly ingest: Ingest; readonly registry: Registry }

/** The life of a process: every call to an engine passes through it, a statement that is executed under its text. */
export type Life = { call<Answer>(name: string, work: () => Promise<Answer>): Promise<Answer> }

const UNDISTURBED: Life = { call: (_, work) => work() }

/** A life that ends at the n-th call to an engine (from 0), with that call's work done or not; all later calls fail. */
export function lifeUntil(calls: number, isDone: boolean): Life & { isOver(): boolean } {
  let left = calls
  return {
    isOver: () => left < 0,
    async call(_, work) {
      if (left < 0) throw new Error('this process is dead')
      left -= 1
      if (left >= 0) return await work()
      if (isDone) await work()
      throw new Error('this process just died')
    }
  }
}

/** Returns an engine as a process sees it. */
function living(tables: Tables, life: Life): Tables {
  return {
    execute: (sql, parameters) => life.call(sql, () => tables.execute(sql, parameters)),
    rows: (sql, parameters) => life.call('rows', () => tables.rows(sql, parameters)),
    json: (sql, parameters) => life.call('json', () => tables.json(sql, parameters)),
    insert: (table, columns, body) => life.call(`insert ${table}`, () => tables.insert(table, columns, body))
  }
}

export type WorldOptions = {
  /** The scraped network; default: `upstream`. */
  readonly upstreamUrl?: string
  /** The clock of all scrapes. */
  readonly now?: () => number
  /** The life of the projector; it continues after a failed call. */
  readonly projecting?: Life
}

export async function openScrapedWorld(t: Test, options: WorldOptions = {}): Promise<ScrapedWorld> {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const { tables, log, writes } = await openTestEngines(t)
  const projector = createProjector({
    tables: {
      loader: living(tables.loader, options.projecting ?? UNDISTURBED),
      projections: living(tables.projections, options.projecting ?? UNDISTURBED),
      rebuild: tables.rebuild
    },
    startReading: readInline(log, topics, AT_ONCE),
    sealKeys: (people) => sealKeys(writes, people),
    registry: new Registry(),
    logger: QUIET,
    onChange: () => {},
    backoff: AT_ONCE
  })
  projector.start()
  t.teardown(() => projector.stop())
  return {
    upstream,
    tables,
    writes,
    projector,
    ingest({ life = UNDISTURBED, boardSeconds = 0, playersSeconds = 0, now = options.now, logger = QUIET } = {}) {
      const registry = new Registry()
      const ingest = createIngest({
        log: {
          append: (topic, messages) => life.call(`append ${topic}`, () => log.append(topic, messages)),
          extents: (topic) => life.call('extents', () => log.extents(topic))
        },
        tables: {
          rows: (sql, parameters, read) => life.call('rows', () => tables.readers.rows(sql, parameters, read))
        },
        ...readSide(storeOver(tables.control)),
        writes: async () => ({ query: (sql, values) => life.call('query', () => writes.query(sql, values)) }),
        people: createPeople({ writes: async () => writes, registry }),
        upstreamUrl: options.upstreamUrl ?? upstream.url,
        ...(now === undefined ? {} : { now }),
        periods: { network: 0, games: 0, matches: 0, boards: boardSeconds, players: playersSeconds },
        requestsPerSecond: 1000,
        userAgent: 'gamenet-stats/test',
        registry,
        logger
      })
      t.teardown(() => ingest.stop())
      return { ingest, registry }
    },
    async events(topic) {
      await projector.caughtUp()
      const found: { event: unknown; offset: number }[] = []
      const reading = new AbortController()
      const [extent] = await log.extents(topic.name)
      if (extent === undefined) return []
      await log
        .consume({
          topics: [topic.name],
          startAt: async () => 0,
          deliver: async ({ records }) => {
            for (const record of records) {
              const decoded = decodeEvent(topic, record)
              if (!decoded.ok) throw new Error(decoded.reason)
              found.push({ event: decoded.event, offset: record.offset })
              if (record.offset + 1 >= extent.next) reading.abort()
            }
          },
          signal: reading.signal
        })
        .catch((error: unknown) => {
          if (!reading.signal.aborted) throw error
        })
      return found.map(({ event }) => event) as never
    },
    async passTime() {
      await writes.query("UPDATE board_lease SET lease_until = now() - interval '1 second', due_at = now()")
    }
  }
}
