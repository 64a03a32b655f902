import type { ClickHouse } from '@gamenet/engines'
import { sharedClickHouse, until } from '@gamenet/engines/testing'
import { encodeEvent, type LogMessage, type Topic, topics } from '@gamenet/schemas'
import { Registry } from 'prom-client'
import tap from 'tap'
import { ownersOf } from '../src/generations/generations.js'
import {
  createProjector,
  type LogReader,
  migrate,
  type Projector,
  type ProjectorOptions,
  projections,
  projectionsWithout,
  type RetryReport,
  retryDeadLetters,
  type Store,
  storeOver,
  type Tables
} from '../src/index.js'
import { countDeadLetters } from '../src/store/dead-letter.js'
import { namesOf, readPointers } from '../src/store/generation.js'
import { replaceReadViews } from '../src/store/read-view.js'
import { foldInline, readInline } from '../testing/inline.js'
import { sealKeys, sealOf } from './people.js'

/** The first failure is retried at once; one that lasts costs a whole pass of processor time per retry. */
export const AT_ONCE = { firstMs: 1, maxMs: 50 }

export const QUIET = { info: () => {}, warn: () => {}, error: () => {} }

let opened: Promise<ClickHouse> | undefined

/** A database with empty tables; the tests of a process share it, because its migration takes seconds. */
export async function openTables(): Promise<ClickHouse> {
  opened ??= openMigrated()
  const engine = await opened
  await emptyTables(engine.control)
  return engine
}

async function openMigrated(): Promise<ClickHouse> {
  const engine = await sharedClickHouse(tap)
  await migrate(engine.control)
  return engine
}

/** Empties every table except the record of migrations, and drops all generations except the first ones. */
export async function emptyTables(tables: Tables): Promise<void> {
  const store = storeOver(tables)
  const { serving } = await store.do(readPointers)
  const made = new Set(await tablesOfRebuilds(tables))
  const areRebuilt = [...made].some((name) => !name.endsWith('__0'))
  for (const bare of new Set([...made].map((name) => name.replace(/__.*/, '')))) {
    if (made.has(`${bare}__0`) || !made.delete(serving.nameOf(bare))) continue
    await tables.execute(`RENAME TABLE ${serving.nameOf(bare)} TO ${bare}__0`)
  }
  for (const name of made) if (!name.endsWith('__0')) await tables.execute(`DROP TABLE ${name}`)
  const rows = await tables.rows(
    `SELECT t.name AS name FROM system.tables AS t
     WHERE t.database = currentDatabase() AND t.engine LIKE '%MergeTree' AND t.name != 'schema_migration' AND t.total_rows > 0`
  )
  for (const { name } of rows) await tables.execute(`TRUNCATE TABLE ${name}`)
  // Without a rebuild they show the first generations already. It takes two thirds of the processor time of all this.
  if (areRebuilt) await store.do(replaceReadViews, { all: false })
}

/** The tables with a generation in their names, samples and copies of rebuilds among them. */
export async function tablesOfRebuilds(tables: Tables): Promise<string[]> {
  const rows = await tables.rows(
    `SELECT t.name AS name FROM system.tables AS t
     WHERE t.database = currentDatabase() AND position(t.name, '__') > 0 ORDER BY t.name`
  )
  return rows.map(({ name }) => String(name))
}

/** Tables of rebuilds: all but the first generation of each. */
export async function laterGenerations(tables: Tables): Promise<string[]> {
  return (await tablesOfRebuilds(tables)).filter((name) => !name.endsWith('__0'))
}

/** A store of the first generation of every table. */
export function firstStore(tables: Tables): Store {
  const names = ownersOf(projections).flatMap((owner) => [...namesOf(owner, 0)])
  return storeOver(tables, { names: new Map(names) })
}

/** The engine's name of a table that answers read. */
export async function servingName(tables: Tables, table: string): Promise<string> {
  return (await storeOver(tables).do(readPointers)).serving.nameOf(table)
}

/** The newest data version. */
export async function newestVersion(tables: Tables): Promise<number> {
  const [row] = await tables.rows('SELECT max(d.version) AS version FROM data_change AS d')
  return Number(row?.version)
}

/** A projector that reads the log in this thread. */
export function projectorOn(
  tables: { loader: Tables; projections: Tables; rebuild?: Tables },
  reader: LogReader,
  options: Pick<
    Partial<ProjectorOptions>,
    | 'registry'
    | 'onChange'
    | 'sealKeys'
    | 'erasedPeople'
    | 'areKeysLost'
    | 'damaged'
    | 'isShared'
    | 'passLock'
    | 'division'
    | 'rebuildLock'
    | 'projections'
    | 'reservedBytes'
    | 'explain'
    | 'catchUpMs'
    | 'longestAnswerMs'
  > & {
    /** Topics whose schemas validate. */
    readonly topics?: readonly Topic[]
  } = {}
): Projector {
  return createProjector({
    tables: { rebuild: tables.projections, ...tables },
    startReading: readInline(reader, options.topics ?? topics, AT_ONCE),
    sealKeys: options.sealKeys ?? sealKeys,
    folding: foldInline(),
    ...options,
    registry: options.registry ?? new Registry(),
    logger: QUIET,
    onChange: options.onChange ?? (() => {}),
    isShared: options.isShared ?? false,
    longestAnswerMs: options.longestAnswerMs ?? 0,
    backoff: AT_ONCE
  })
}

/** Runs a projector, and `meanwhile` concurrently, until both have ended and everything in the log is projected. */
export async function runToHead(
  tables: { loader: Tables; projections: Tables },
  reader: LogReader,
  {
    meanwhile = async () => {},
    ...options
  }: {
    topics?: readonly Topic[]
    isShared?: boolean
    meanwhile?: (tables: Tables, projector: Projector) => Promise<void>
  } = {}
): Promise<void> {
  const projector = projectorOn(tables, reader, options)
  projector.start()
  try {
    await meanwhile(tables.loader, projector)
    await projector.caughtUp()
  } finally {
    await projector.stop()
  }
}

/** The schemas of the next program: the same, with the next version. */
export const newerTopics: readonly Topic[] = topics.map((topic) => ({
  ...topic,
  version: 2
}))

/** Returns the same message with the next version, as the next program publishes it. */
export function newer({ headers, ...message }: LogMessage): LogMessage {
  return { ...message, headers: { ...headers, ce_type: String(headers.ce_type).replace(/1$/, '2') } }
}

/** Retries all dead letters by the schemas of the next program, and waits until it is projected. */
export async function retryAll(tables: Tables, projector: Projector): Promise<RetryReport[]> {
  const reports: RetryReport[] = []
  const store = storeOver(tables)
  for (const name of (await store.do(countDeadLetters)).keys()) {
    const report = await retryDeadLetters(
      {
        store,
        topics: newerTopics,
        withSealKeys: async (people, use) => use(await sealKeys(people)),
        inStep: (step) => projector.inStep(step),
        onProgress: () => {},
        signal: new AbortController().signal
      },
      name,
      'all'
    )
    if (report.retried > 0) projector.wakeForLate()
    await until(async () => (await projectionsWithout(store, name, report.batches)).length === 0)
    reports.push(report)
  }
  return reports
}

/** An event as a source publishes it; those about people are sealed with made-up keys. */
export function message<Event>(topic: Topic<Event>, event: Event, source = '/test'): LogMessage {
  return encodeEvent(topic, event, { source }, topic.people?.(event).map(sealOf))
}

/** An event as an import publishes it. */
export function imported<Event>(topic: Topic<Event>, event: Event): LogMessage {
  return encodeEvent(
    topic,
    event,
    { source: '/import/file', importId: 'f'.repeat(32) },
    topic.people?.(event).map(sealOf)
  )
}
