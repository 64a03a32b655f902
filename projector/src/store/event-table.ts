import { conditionOf, type Topic } from '@gamenet/schemas'
import { type EventTable, eventTableName } from '../events/event-table.js'
import { eventTableOf } from '../events/event-tables.js'
import type { RowBlock } from '../rows/row-writer.js'
import type { Progress } from './checkpoint.js'
import { operation } from './operation.js'
import type { Range } from './range.js'
import { USER_COLUMNS } from './user-rows.js'

/**
 * The checkpoint whose `next` is above the number of every person whose events were decrypted. It reveals a write side
 * that was restored from an older copy, which would assign used numbers to new people.
 */
export const PEOPLE_CHECKPOINT = 'people'

/** Stores events, all or none. They are keyed by position: storing them again keeps one. */
export const storeEvents = operation(
  'stores events',
  async (tables, { table, columns }: Pick<EventTable, 'table' | 'columns'>, block: RowBlock): Promise<void> => {
    await tables.insert(table, columns, block)
  }
)

/** Event tables whose deleted events answers about an earlier instant show. */
export const KEPT_WHEN_UNDONE = ['network_count', 'title_count', 'leaderboard', 'leaderboard_entry']

/**
 * Creates a view with the events known at an instant: recorded by then, a late one if its late batch was stored by
 * then, without the imports whose undo was recorded by then. Those undone later are read where an undo has put them.
 * @param retractions the table with the undos of imports
 */
export const createKnownView = operation(
  'creates a view on known events',
  async (
    tables,
    name: string,
    { table, retractions, topic }: { readonly table: string; readonly retractions: string; readonly topic: Topic },
    knownMs: number
  ): Promise<void> => {
    const noun = eventTableName(topic).replace('event_', '')
    const at = `fromUnixTimestamp64Milli(toInt64(${knownMs}), 'UTC')`
    const sources = [table, ...(KEPT_WHEN_UNDONE.includes(noun) ? [`undone_${noun}`] : [])]
    const all = sources.map((source) => `SELECT s.*, s.position, s.version FROM ${source} AS s`).join(' UNION ALL ')
    await tables.execute(
      `CREATE VIEW ${name} AS SELECT e.* FROM (${all}) AS e
       WHERE e.recorded_at <= ${at}
         AND (e.epoch, e.partition, e.offset) NOT IN (
           SELECT arrayJoin(b.positions) AS late FROM late_batch AS b
           WHERE b.topic = '${topic.name}' GROUP BY late HAVING min(b.stored_at) > ${at})
         AND e.import_id NOT IN (
           SELECT r.retracted_import_id FROM ${retractions} AS r WHERE r.recorded_at <= ${at})`
    )
  }
)

/**
 * Deletes the events of imports from an event table; resolves when no statement sees them any more. First copies those
 * that answers about an earlier instant show: after a crash in between they are in both tables.
 */
export const deleteImports = operation(
  'deletes the events of imports',
  async (tables, table: string, importIds: readonly string[]): Promise<void> => {
    // Ids of imports are hexadecimal digits. A mutation stays in the table's files and accepts no parameters.
    const ids = importIds.filter((id) => /^[0-9a-f]{32}$/.test(id)).map((id) => `'${id}'`)
    const where = `WHERE import_id IN (${ids.join(', ')})`
    const noun = table.replace('event_', '')
    if (KEPT_WHEN_UNDONE.includes(noun))
      await tables.execute(`INSERT INTO undone_${noun} SELECT * FROM ${tables.target(table)} ${where}`)
    await tables.execute(`DELETE FROM ${tables.target(table)} ${where}`)
  }
)

/** Copies the events of a range from another generation of an event table. */
export const copyEvents = operation(
  'copies events',
  async (tables, { table, columns }: Pick<EventTable, 'table' | 'columns'>, from: string, range: Range) => {
    const { sql, parameters } = conditionOf(range)
    const values = columns.map((column) => `e.${column}`).join(', ')
    await tables.execute(
      `INSERT INTO ${tables.target(table)} (${columns.join(', ')}) SELECT ${values} FROM ${from} AS e FINAL
        WHERE ${sql}`,
      parameters
    )
  }
)

/**
 * Counts the events of a partition below an offset, and its dead letters that were not retried, which would be events
 * too; events of undone imports are neither.
 */
export const countLoaded = operation('counts loaded events', async (tables, topic: string, before: Progress) => {
  const table = eventTableName({ name: topic })
  const where = 't.epoch = {epoch: UInt16} AND t.partition = {partition: UInt16} AND t.offset < {next: UInt64}'
  const [row] = await tables.rows(
    `SELECT (SELECT count() FROM {${table}: Identifier} AS t FINAL WHERE ${where}) AS events,
       (SELECT count() FROM dead_letter_state AS t WHERE t.topic = {topic: String} AND t.state != 'retried'
         AND ${where}) AS deadLetters`,
    { ...before, topic }
  )
  return { events: Number(row?.events), deadLetters: Number(row?.deadLetters) }
})

/** Reads the first ranges of offsets, below one, without an event or a dead letter. */
export const readMissingOffsets = operation(
  'reads missing offsets',
  async (tables, topic: string, before: Progress, limit: number) => {
    const table = eventTableName({ name: topic })
    const where = 't.epoch = {epoch: UInt16} AND t.partition = {partition: UInt16} AND t.offset < {next: UInt64}'
    const rows = await tables.rows(
      `SELECT g.first AS first, g.next AS next
       FROM (
         SELECT o.offset AS next, lagInFrame(o.offset + 1, 1, 0) OVER (ORDER BY o.offset) AS first
         FROM (
           SELECT t.offset AS offset FROM {${table}: Identifier} AS t WHERE ${where}
           UNION DISTINCT SELECT t.offset FROM dead_letter AS t WHERE t.topic = {topic: String} AND ${where}
           UNION DISTINCT SELECT {next: UInt64}
         ) AS o
       ) AS g
       WHERE g.first < g.next ORDER BY g.first LIMIT {limit: UInt32}`,
      { ...before, topic, limit }
    )
    return rows.map(({ first, next }) => ({ first: Number(first), next: Number(next) }))
  }
)

const BLOCK_EVENTS = 512

/** Blocks of a partition: block `n` begins at offset `n * blockEvents`. */
export type Blocks = { readonly blockEvents: number; readonly blocks: ReadonlySet<number> }

/**
 * Reads the blocks of a partition below an offset whose events are all in the event table, none of them the first of a
 * user.
 */
export const readWholeBlocks = operation(
  'reads whole blocks of events',
  async (tables, topic: string, before: Progress): Promise<Blocks> => {
    const { table, columns } = eventTableOf({ name: topic })
    const where = 'e.epoch = {epoch: UInt16} AND e.partition = {partition: UInt16} AND e.offset < {next: UInt64}'
    const from = `FROM {${table}: Identifier} AS e FINAL WHERE ${where}`
    const firsts = columns
      .filter((column) => USER_COLUMNS.includes(column))
      .map((column) => `AND block NOT IN (SELECT intDiv(min(e.offset), ${BLOCK_EVENTS}) ${from} GROUP BY e.${column})`)
    const rows = await tables.rows(
      `SELECT intDiv(e.offset, ${BLOCK_EVENTS}) AS block ${from}
       GROUP BY block HAVING count() = ${BLOCK_EVENTS} ${firsts.join(' ')}`,
      before
    )
    return { blockEvents: BLOCK_EVENTS, blocks: new Set(rows.map((row) => Number(row.block))) }
  }
)

/** The newest state of the write side in these tables. */
export type NewestWrites = {
  /** The highest revision of a profile or rating; 0 without any. */
  readonly revision: number
  /** The highest number of a person; 0 without any. */
  readonly person: number
}

/** Reads the newest state of the write side in these tables. */
export const readNewestWrites = operation('reads the newest writes', async (tables): Promise<NewestWrites> => {
  const [row] = await tables.rows(
    `SELECT (SELECT max(e.revision) FROM {event_profile: Identifier} AS e) AS profile,
       (SELECT max(e.revision) FROM {event_rating: Identifier} AS e) AS rating,
       (SELECT max(c.next) FROM checkpoint AS c WHERE c.name = {people: String}) AS people`,
    { people: PEOPLE_CHECKPOINT }
  )
  return {
    revision: Math.max(Number(row?.profile ?? 0), Number(row?.rating ?? 0)),
    person: Math.max(0, Number(row?.people ?? 0) - 1)
  }
})
