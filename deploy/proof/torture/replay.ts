import type { ClickHouse, Postgres } from '@gamenet/engines'
import { sealKeys } from '@gamenet/ingest'
import {
  createProjector,
  dataTables,
  type LogReader,
  migrate,
  projections,
  readPointers,
  storeOver
} from '@gamenet/projector'
import { readInline } from '@gamenet/projector/testing'
import { type Logger, topics } from '@gamenet/schemas'
import { Registry } from 'prom-client'

/**
 * Version columns, `version` unless listed here. A version is the newest position that the step read, so steps of different
 * lengths store the same row with different versions.
 */
const VERSIONS: Readonly<Record<string, string>> = { presence_day: 'position' }
/** Conditions of rows that only correct another row; whether they are needed depends on the time of each step. */
const VOIDS: Readonly<Record<string, string>> = Object.assign({}, ...projections.map(({ voids }) => voids))
const STANDSTILL_MS = 300_000
const ROWS_SHOWN = 3

/** Loads and projects the complete log into tables, without faults. */
export async function projectLog(needs: {
  readonly tables: ClickHouse
  readonly reader: LogReader
  readonly writes: Postgres
  readonly logger: Logger
}): Promise<void> {
  const { tables, reader, writes } = needs
  await migrate(tables.control)
  const projector = createProjector({
    tables,
    startReading: readInline(reader, topics),
    sealKeys: (people) => sealKeys(writes, people),
    registry: new Registry(),
    logger: needs.logger,
    onChange: () => {}
  })
  projector.start()
  try {
    await projector.caughtUp({ standstillMs: STANDSTILL_MS })
  } finally {
    await projector.stop()
  }
}

/** By table: the number of its rows, and a hash that does not depend on their order. */
export type Prints = ReadonlyMap<string, string>

export async function printsOf(tables: ClickHouse): Promise<Prints> {
  const { serving } = await storeOver(tables.control).do(readPointers)
  const prints = new Map<string, string>()
  const names = dataTables(projections).toSorted()
  // A replica first takes the rows that the others have.
  await tables.control.sync(names.map((name) => serving.nameOf(name)))
  for (const name of names) {
    const [row] = await tables.projections.rows(
      `SELECT count() AS rows, toString(sum(cityHash64(${lineOf(name)}))) AS hash
       FROM {name: Identifier} AS r FINAL WHERE ${notVoid(name)}`,
      { name: serving.nameOf(name) }
    )
    prints.set(name, `${row?.rows} rows, hash ${row?.hash}`)
  }
  return prints
}

function lineOf(table: string): string {
  return `formatRowNoNewline('JSONCompactEachRow', r.* EXCEPT (${VERSIONS[table] ?? 'version'}))`
}

function notVoid(table: string): string {
  const isVoid = VOIDS[table]
  return isVoid === undefined ? 'true' : `NOT (${isVoid})`
}

export function differingTables(found: Prints, wanted: Prints): string[] {
  return [...new Set([...found.keys(), ...wanted.keys()])].filter((name) => found.get(name) !== wanted.get(name))
}

/** Returns the rows of a table as lines. */
export async function linesOf(tables: ClickHouse, name: string): Promise<string[]> {
  const rows = await tables.projections.rows(
    `SELECT ${lineOf(name)} AS line FROM {name: Identifier} AS r FINAL WHERE ${notVoid(name)}`,
    { name }
  )
  return rows.map(({ line }) => String(line))
}

export function differenceOf(name: string, found: readonly string[], wanted: readonly string[]): string {
  const only = (these: readonly string[], those: ReadonlySet<string>) => these.filter((line) => !those.has(line))
  const [extra, missing] = [only(found, new Set(wanted)), only(wanted, new Set(found))]
  const text = (lines: readonly string[]) => lines.slice(0, ROWS_SHOWN).join(' ') || 'none'
  return `${name} differs from an undisturbed run on the log: ${extra.length} of ${found.length} rows are unexpected (${text(extra)}), ${missing.length} are missing (${text(missing)})`
}
