import { type ClickHouse, openChdb } from '@gamenet/engines'
import { encodeEvent, type LogMessage, type Topic, topics } from '@gamenet/schemas'
import { Registry } from 'prom-client'
import {
  createProjector,
  foldBeside,
  type LogReader,
  migrate,
  type Projector,
  type ProjectorOptions,
  readBeside,
  type Tables
} from '../src/index.js'
import { sealKeys, sealOf } from './people.js'

/** Failures are tried again at once. */
export const AT_ONCE = { firstMs: 1, mostMs: 5 }

export const QUIET = { info: () => {}, warn: () => {}, error: () => {} }

export type Teardown = { teardown(work: () => unknown): void; testdir(): string }

/** A real ClickHouse with migrated tables, for one test file: a process can have one open directory. */
export async function openTables(t: Teardown): Promise<ClickHouse> {
  const engine = await openChdb({ path: t.testdir() })
  t.teardown(() => engine.close())
  await migrate(engine.control)
  return engine
}

/** Empties every table but the record of migrations; those of rebuilds are dropped. */
export async function emptyTables(tables: Tables): Promise<void> {
  const made = await tables.rows(
    `SELECT t.name AS name FROM system.tables AS t WHERE t.database = currentDatabase() AND position(t.name, '__') > 0`
  )
  for (const { name } of made) await tables.execute(`DROP TABLE ${name}`)
  const rows = await tables.rows(
    `SELECT t.name AS name FROM system.tables AS t
     WHERE t.database = currentDatabase() AND t.engine LIKE '%MergeTree' AND t.name != 'schema_migration' AND t.total_rows > 0`
  )
  for (const { name } of rows) await tables.execute(`TRUNCATE TABLE ${name}`)
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
  options: {
    registry?: Registry
    onChange?: () => void
    sealKeys?: ProjectorOptions['sealKeys']
    projections?: ProjectorOptions['projections']
  } = {}
): Projector {
  return createProjector({
    tables: { rebuild: tables.projections, ...tables },
    startReading: readBeside(reader, topics, AT_ONCE),
    sealKeys: options.sealKeys ?? sealKeys,
    folding: foldBeside(),
    ...(options.projections === undefined ? {} : { projections: options.projections }),
    registry: options.registry ?? new Registry(),
    logger: QUIET,
    onChange: options.onChange ?? (() => {}),
    backoff: AT_ONCE
  })
}

/** Loads and projects all that the log holds, then stops. */
export async function runToHead(tables: { loader: Tables; projections: Tables }, reader: LogReader): Promise<void> {
  const projector = projectorOn(tables, reader)
  projector.start()
  try {
    await projector.settled()
  } finally {
    await projector.stop()
  }
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
