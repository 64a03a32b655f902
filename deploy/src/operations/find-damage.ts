import { readdir, rename } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type ClickHouse, checkPages, type Postgres } from '@gamenet/engines'
import type { CheckedEvents } from '@gamenet/engines/log'
import { sealKeys } from '@gamenet/ingest'
import { changedDefinitions, eventTableNames, findLostParts } from '@gamenet/projector'
import { errorMessage, loadCheckpoint, openSealed, readSealedValue, topics } from '@gamenet/schemas'
import { FailureError } from '../config.js'
import { TABLES_WAY_OUT } from '../wiring/engine-failures.js'
import type { Engines } from '../wiring/engines.js'
import type { Finding, VerifyProgress, VerifyReport } from './damage-report.js'

const RESTORE = 'stop the service and restore the newest backup: gamenet restore DIR'
const REASON_LENGTH_MAX = 300

/** The topics of plain events. */
const PLAIN_TOPICS = new Set(topics.filter(({ people }) => people === undefined).map(({ name }) => name))

type Damage = Omit<Finding, 'isRepaired'> & { isRepaired?: boolean }
type ReportBytes = (phase: VerifyProgress['phase'], bytes: number) => void

/** Verifies all checksums, and compares the parts with each other. */
export async function findDamage(
  engines: Engines,
  { repair }: { readonly repair: boolean },
  onProgress: (progress: VerifyProgress) => void,
  signal: AbortSignal
): Promise<VerifyReport> {
  const begun = performance.now()
  const { clickhouse, directory, log } = engines
  const damages: Damage[] = []
  const writes = await engines.writes().catch((error: unknown) => {
    const what = `the write side is unusable: ${reasonOf(error)}`
    damages.push({ part: 'writes', what, cost: 'edits, ratings and events about people fail', repair: RESTORE })
    return undefined
  })
  const tablesBytes = await bytesOfTables(clickhouse.control)
  let [bytes, bytesTotal] = [0, tablesBytes]
  const report: ReportBytes = (phase, more) => {
    signal.throwIfAborted()
    bytes += more
    bytesTotal = Math.max(bytesTotal, bytes)
    onProgress({ phase, bytes, bytesTotal })
  }
  const writesDirectory = engines.names.writes === 'PostgreSQL' ? undefined : directory?.part('writes')
  if (writesDirectory !== undefined) damages.push(...(await damageOfPages(writes, writesDirectory, repair, report)))
  if (writes !== undefined) damages.push(...(await damageOfWrites(writes)))
  const expected = await Expected.begin(clickhouse.control)
  if (log.files !== undefined) damages.push(...(await damageOfLog(log.files, writes, expected, report)))
  damages.push(...(await damageOfTables(clickhouse.control, repair, report)))
  if (engines.names.tables === 'chDB') damages.push(...(await changedTables(clickhouse.control)))
  damages.push(...(await damageOfCheckpoints(engines, expected)))
  return {
    findings: damages.map(({ isRepaired = false, ...finding }) => ({
      ...finding,
      what: shown(finding.what),
      isRepaired
    })),
    bytes,
    tookMs: Math.round(performance.now() - begun),
    notChecked: [
      ...(log.files === undefined ? ['files of the log'] : []),
      ...(writesDirectory === undefined ? ['files of the write side'] : [])
    ]
  }
}

async function bytesOfTables(tables: ClickHouse['control']): Promise<number> {
  const [row] = await tables.rows(
    'SELECT sum(p.bytes_on_disk) AS bytes FROM system.parts AS p WHERE p.active AND p.database = currentDatabase()'
  )
  return Number(row?.bytes ?? 0)
}

/** Returns an engine's message on one line without its stack. */
function shown(text: string): string {
  const line = (text.split(/,? Stack trace/)[0] ?? '').replace(/\s+/g, ' ').trim()
  return line.length > REASON_LENGTH_MAX ? `${line.slice(0, REASON_LENGTH_MAX)}…` : line
}

function reasonOf(error: unknown): string {
  const said = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return shown(errorMessage(said))
}

/** Verifies the pages of the write side by their checksums. Indexes are rebuilt from their tables; tables cannot be. */
async function damageOfPages(
  writes: Postgres | undefined,
  directory: string,
  repair: boolean,
  report: ReportBytes
): Promise<Damage[]> {
  const damages: Damage[] = []
  const faults = checkPages(directory, (bytes) => report('writes', bytes))
  for (const { file, filenode, pages } of faults) {
    const [relation] =
      (await writes?.query<{ name: string; kind: string }>(
        `SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) AS name, c.relkind AS kind
       FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE pg_relation_filenode(c.oid) = $1`,
        [filenode]
      )) ?? []
    const { name = 'no table of this program', kind = '' } = relation ?? {}
    const what = `${pages.length} pages of writes/${file} (${name}) are damaged`
    if (kind === 'i' && writes !== undefined) {
      const isMade = repair && (await made(writes, name))
      damages.push({
        part: 'writes',
        what,
        cost: 'queries by this index fail',
        repair: 'rebuild the index from its table: gamenet verify --repair',
        isRepaired: isMade
      })
    } else {
      const isOurs = (kind !== '' || writes === undefined) && /^base\/5\//.test(file)
      const cost = isOurs
        ? 'the rows of these pages are lost; reads and writes of them fail'
        : 'none; the service does not read it'
      damages.push({ part: 'writes', what, cost, repair: RESTORE })
    }
  }
  return damages
}

/** Rebuilds an index; false if its table is damaged too. */
async function made(writes: Postgres, index: string): Promise<boolean> {
  return await writes.script(`REINDEX INDEX ${index}`).then(
    () => true,
    () => false
  )
}

/** Reads all rows of the write side. */
async function damageOfWrites(writes: Postgres): Promise<Damage[]> {
  const damages: Damage[] = []
  const names = await writes.query<{ name: string }>(
    `SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) AS name FROM pg_class AS c
     JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE c.relkind = 'r' AND n.nspname IN ('public', 'pg_catalog') ORDER BY name`
  )
  for (const { name } of names) {
    try {
      await writes.query(`SELECT sum(length(t::text)) FROM ${name} AS t`)
    } catch (error) {
      const what = `${name} of the write side cannot be read: ${reasonOf(error)}`
      damages.push({
        part: 'writes',
        what,
        cost: 'its rows are lost; reads and writes of it fail',
        repair: RESTORE
      })
    }
  }
  return damages
}

/** The number of events that tables should contain, counted over what was loaded at the start. */
class Expected {
  readonly #next = new Map<string, number>()
  readonly #events = new Map<string, number>()

  static async begin(tables: ClickHouse['control']): Promise<Expected> {
    const expected = new Expected()
    const rows = await tables.rows(
      `SELECT c.name AS name, c.epoch AS epoch, c.partition AS partition, max(c.next) AS next FROM checkpoint AS c
       GROUP BY c.name, c.epoch, c.partition`
    )
    for (const { name, epoch, partition, next } of rows)
      expected.#next.set(`${name} ${epoch}/${partition}`, Number(next))
    return expected
  }

  /** Counts the loaded events from `first` to below `next`. */
  add({ topic, epoch, partition, first, next }: Omit<CheckedEvents, 'records'>): void {
    const place = `${loadCheckpoint(topic)} ${epoch}/${partition}`
    const loaded = Math.min(next, this.#next.get(place) ?? 0) - first
    if (loaded > 0) this.#events.set(place, (this.#events.get(place) ?? 0) + loaded)
  }

  /** Returns the partitions of a topic with loaded events. */
  of(topic: string): { epoch: number; partition: number; next: number; events: number }[] {
    const prefix = `${loadCheckpoint(topic)} `
    return [...this.#next]
      .filter(([place]) => place.startsWith(prefix))
      .map(([place, next]) => {
        const [epoch = 0, partition = 0] = place.slice(prefix.length).split('/').map(Number)
        return { epoch, partition, next, events: this.#events.get(place) ?? 0 }
      })
  }
}

/** Verifies every batch by its checksum, and decrypts every sealed event whose keys exist. */
async function damageOfLog(
  log: NonNullable<Engines['log']['files']>,
  writes: Postgres | undefined,
  expected: Expected,
  report: ReportBytes
): Promise<Damage[]> {
  const cost = 'these events cannot be loaded again; rows of them in the tables stay'
  const unopened = new Map<string, { count: number; first: number }>()
  const take = async (events: CheckedEvents, bytes: number) => {
    const { topic, epoch, partition, records } = events
    if (records.length === 0) expected.add(events)
    const sealed = records.map(({ value }) => readSealedValue(value))
    const people = [...new Set(sealed.flatMap((each) => each?.people ?? []))]
    const keys: ReadonlyMap<number, Uint8Array> = writes === undefined ? new Map() : await sealKeys(writes, people)
    for (const [n, { offset, headers }] of records.entries()) {
      const each = sealed[n]
      if (each !== undefined && !each.people.every((person) => keys.has(person))) continue
      expected.add({ topic, epoch, partition, first: offset, next: offset + 1 })
      if (each === undefined) continue
      try {
        openSealed(
          each,
          { topic, id: headers.ce_id ?? '' },
          each.people.map((person) => keys.get(person) ?? new Uint8Array())
        )
      } catch {
        const place = `${topic} ${epoch}/${partition}`
        const { count = 0, first = offset } = unopened.get(place) ?? {}
        unopened.set(place, { count: count + 1, first })
      }
    }
    report('log', bytes)
  }
  try {
    const faults = await log.check(take, (topic) => !PLAIN_TOPICS.has(topic))
    return [
      ...faults.map(({ topic, epoch, partition, first, next, reason }): Damage => {
        const what = `the log's events ${topic} ${epoch}/${partition}/${first} to ${next - 1} cannot be read: ${reason}`
        return { part: 'log', what, cost, repair: RESTORE }
      }),
      ...[...unopened].map(([place, { count, first }]): Damage => {
        const what = `${count} events of ${place}, from offset ${first} on, cannot be decrypted with the keys of their people`
        return { part: 'seals', what, cost, repair: RESTORE }
      })
    ]
  } catch (error) {
    return [{ part: 'log', what: `the log cannot be read: ${reasonOf(error)}`, cost, repair: RESTORE }]
  }
}

/** Verifies every part of every table by its checksums. */
async function damageOfTables(tables: ClickHouse['control'], repair: boolean, report: ReportBytes): Promise<Damage[]> {
  const damages: Damage[] = []
  const again = 'gamenet verify --repair sets them aside, and the next start restores their rows'
  for (const { table } of await findLostParts(tables)) {
    const what = `a part of ${table} is missing, or was set aside because it was unreadable`
    damages.push({
      part: 'tables',
      what,
      cost: 'its rows are missing until they are restored',
      repair: 'gamenet start'
    })
  }
  const names = await tables.rows(
    `SELECT t.name AS name, t.data_paths[1] AS path, t.total_bytes AS bytes FROM system.tables AS t
     WHERE t.database = currentDatabase() AND t.engine LIKE '%MergeTree' ORDER BY name`
  )
  for (const row of names) {
    const [name, path] = [String(row.name), String(row.path)]
    const parts = await tables
      .rows(`CHECK TABLE ${name}`)
      .catch((error: unknown) => [{ is_passed: 0, part_path: '', message: reasonOf(error) }])
    for (const part of parts) {
      if (Number(part.is_passed) === 1) continue
      const partName = String(part.part_path)
      if (repair && partName !== '') await setAside(tables, name, path, partName)
      damages.push({
        part: 'tables',
        what: `part ${partName} of ${name} is damaged: ${String(part.message)}`,
        cost: 'queries that read it fail, or return wrong answers',
        repair: again,
        isRepaired: repair && partName !== ''
      })
    }
    report('tables', Number(row.bytes ?? 0))
  }
  return damages
}

async function changedTables(tables: ClickHouse['control']): Promise<Damage[]> {
  const cost = 'answers from it may be wrong'
  return (await changedDefinitions(tables)).map((name) => {
    return { part: 'tables', what: `${name} is not defined as the program created it`, cost, repair: TABLES_WAY_OUT }
  })
}

/** Sets a part aside as the engine does with an unreadable part at a start. */
async function setAside(tables: ClickHouse['control'], table: string, path: string, part: string): Promise<void> {
  const folder = join(path, 'detached')
  const before = new Set(await readdir(folder).catch(() => []))
  await tables.execute(`ALTER TABLE ${table} DETACH PART '${part}'`)
  const detached = (await readdir(folder)).filter((name) => !before.has(name))
  if (detached.length !== 1) throw new FailureError(`${part} of ${table} could not be set aside in ${dirname(folder)}.`)
  await rename(join(folder, detached[0] ?? ''), join(folder, `broken-on-start_${detached[0]}`))
}

/** Verifies that checkpoints are within the log, and that event tables contain what the checkpoints say. */
async function damageOfCheckpoints({ clickhouse, log }: Engines, expected: Expected): Promise<Damage[]> {
  const tables = clickhouse.control
  const damages: Damage[] = []
  const [retracted] = await tables.rows('SELECT count() AS n FROM import_retraction AS r')
  for (const { name: topic } of topics) {
    const table = eventTableNames.get(topic)
    const extents = await log.extents(topic)
    for (const { epoch, partition, next, events } of expected.of(topic)) {
      const extent = extents.find((each) => each.epoch === epoch && each.partition === partition)
      const place = `${topic} ${epoch}/${partition}`
      if (extent === undefined || next > extent.next || (next < extent.first && next > 0)) {
        damages.push({
          part: 'checkpoints',
          what: `${place} is loaded up to ${next}; the log has ${extent?.first ?? 0} to ${extent?.next ?? 0}`,
          cost: 'the topic is stalled; events that the log lost cannot be loaded again',
          repair: `gamenet gap list, then gamenet gap accept ${topic}; or ${RESTORE}`
        })
        continue
      }
      if (table === undefined || Number(retracted?.n) > 0) continue
      const where = 't.epoch = {epoch: UInt16} AND t.partition = {partition: UInt16} AND t.offset < {next: UInt64}'
      const [held] = await tables
        .rows(
          `SELECT (SELECT count() FROM ${table} AS t FINAL WHERE ${where}) AS rows,
             (SELECT count() FROM parked_message AS t FINAL WHERE t.topic = {topic: String} AND ${where}) AS parked`,
          { epoch, partition, next, topic }
        )
        // An unreadable table is a finding of its own.
        .catch(() => [])
      if (held === undefined || Number(held.rows) + Number(held.parked) >= events) continue
      damages.push({
        part: 'checkpoints',
        what: `${table} holds ${held.rows} events of ${place} below ${next}; the log has ${events}`,
        cost: 'answers lack these events',
        repair: 'load them again: gamenet rebuild --from-log, for the projections that read the table'
      })
    }
  }
  return damages
}
