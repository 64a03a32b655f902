import { setTimeout as pause } from 'node:timers/promises'
import type { ClickHouse } from '@gamenet/engines'
import { boardKey, decodeEvent, type LogRecord, leaderboardEntryTopic, titleCountTopic } from '@gamenet/schemas'
import fc from 'fast-check'
import type { Projector, Tables } from '../src/index.js'
import { AnyEvent, appendedOf } from './any-event.js'
import { around } from './around.js'
import { latch } from './latch.js'
import type { MemoryLog } from './memory-log.js'
import { projectorOn, servingName } from './pipeline.js'

export const HISTORY = 'leaderboard-history'

/** A board of the log, or the title of one of its counts: a key that has events. */
export type Spoilt = {
  readonly projection: string
  readonly key: string
  readonly condition: string
  readonly tables: readonly string[]
}

/** Columns that somebody edits, with what they get: a version above all others, for one. */
const EDITED: Readonly<Record<string, string>> = {
  ...{ online: '4711', max: '4711', rank: '4711', rating: "'4711'", player_keys: '[]', players: '[]' },
  ...{ version: '18446744073709551615', position: '18446744073709551615' }
}

type Spoil = (engine: ClickHouse, spoilt: Spoilt, log: MemoryLog) => Promise<void>

const BOARD_TABLES = [
  ...['leaderboard_history', 'leaderboard_entry', 'leaderboard_change', 'leaderboard_feed', 'rank_reached'],
  ...['record_history', 'player_entry', 'timed_entry']
]

export function keyIn(
  log: MemoryLog,
  topic: typeof leaderboardEntryTopic | typeof titleCountTopic
): Spoilt | undefined {
  const events = recordsOf(log, topic.name).flatMap((record) => {
    const decoded = decodeEvent(topic as typeof leaderboardEntryTopic, record)
    return decoded.ok ? [decoded.event] : []
  })
  const event = events.at(-1)
  if (event === undefined) return undefined
  const { titleId, leaderboardId } = event
  if (topic === leaderboardEntryTopic)
    return {
      projection: HISTORY,
      key: boardKey(event),
      condition: `title_id = '${titleId}' AND leaderboard_id = ${leaderboardId}`,
      tables: BOARD_TABLES
    }
  return {
    projection: 'title-count',
    key: titleId,
    condition: `title_id = '${titleId}'`,
    tables: ['title_count', 'title_count_hour', 'title_count_day']
  }
}

function recordsOf(log: MemoryLog, name: string): LogRecord[] {
  return log.partitions.flatMap(({ topic, records }) => (topic === name ? records : []))
}

export const WAYS: Readonly<Record<'edited' | 'lost' | 'undone', Spoil>> = {
  /** Values, positions and versions of rows, as somebody edits them. */
  edited: async ({ control }: ClickHouse, { condition, tables }: Spoilt) => {
    for (const each of tables) {
      const table = await servingName(control, each)
      const edits = await control.rows(
        `SELECT c.name AS name FROM system.columns AS c WHERE c.database = currentDatabase()
           AND c.table = {table: String} AND has({edited: Array(String)}, c.name) AND NOT c.is_in_sorting_key`,
        { table, edited: Object.keys(EDITED) }
      )
      const edited = edits.map(({ name }) => `${EDITED[String(name)]} AS ${name}`).join(', ')
      if (edited !== '')
        await control.execute(`INSERT INTO ${table} SELECT * REPLACE (${edited}) FROM ${table} WHERE ${condition}`)
    }
  },
  /** Rows are missing, as after a damaged part was detached. */
  lost: async ({ control }: ClickHouse, { condition, tables }: Spoilt) => {
    for (const each of tables)
      await control.execute(`DELETE FROM ${await servingName(control, each)} WHERE ${condition}`)
  },
  /** The events of an import are deleted, and the rows that were computed from them are not. */
  undone: async ({ control }: ClickHouse, { projection, condition }: Spoilt, log: MemoryLog) => {
    const topic = projection === HISTORY ? leaderboardEntryTopic : titleCountTopic
    await control.execute(
      `DELETE FROM event_${topic.name.replaceAll('-', '_')}__0 WHERE ${condition} AND offset % 2 = 0`
    )
    const [, titleId = '', board] = /^title_id = '(\w+)'(?: AND leaderboard_id = (\d+))?$/.exec(condition) ?? []
    for (const record of recordsOf(log, topic.name)) {
      const decoded = decodeEvent(topic as typeof leaderboardEntryTopic, record)
      if (!decoded.ok || record.offset % 2 !== 0 || decoded.event.titleId !== titleId) continue
      if (board !== undefined && decoded.event.leaderboardId !== Number(board)) continue
      Object.assign(record, { value: new Uint8Array([1]) })
    }
  }
}

export const Log = fc.array(appendedOf(AnyEvent, [0]), { minLength: 3, maxLength: 5 })
export const Way = fc.constantFrom(...(Object.keys(WAYS) as (keyof typeof WAYS)[]))
export const Topic = fc.constantFrom(leaderboardEntryTopic, titleCountTopic)

/** A process that corrects the key unless an earlier one has, until it has, or until it dies at a call. Returns whether it died. */
export async function live(
  engine: ClickHouse,
  { log, spoilt }: { readonly log: MemoryLog; readonly spoilt: Spoilt },
  isLast: (what: string) => boolean
): Promise<boolean> {
  let hasDied = false
  const { tables, died } = mortal(engine.rebuild, (what) => {
    hasDied ||= isLast(what)
    return hasDied
  })
  const projector = projectorOn({ ...engine, rebuild: tables }, log)
  projector.start()
  const done = operate(projector, spoilt)
  await Promise.race([died, done.catch(() => undefined)])
  await projector.stop()
  await done.catch((error: unknown) => {
    if (!hasDied) throw error
  })
  return hasDied
}

/** Corrects the key unless an earlier process has. */
async function operate({ rebuilds }: Projector, { projection, key }: Spoilt): Promise<void> {
  for (;;) {
    const [newest] = await rebuilds.list()
    if (newest === undefined || newest.state === 'cancelled') await rebuilds.start(projection, { key })
    else if (newest.state === 'swapped') return
    await pause(10)
  }
}

/**
 * Tables of a process that dies at a call, which gets the statement, or the table of an insert: it takes effect, but is
 * not acknowledged.
 */
function mortal(of: Tables, isLast: (what: string) => boolean): { tables: Tables; died: Promise<void> } {
  const death = latch()
  let isDead = false
  const call = async <Result>(work: () => Promise<Result>, what: string): Promise<Result> => {
    const isEnd = !isDead && isLast(what)
    if (!isDead) {
      isDead = isEnd
      const result = await work()
      if (!isEnd) return result
    }
    death.open()
    throw new Error('the process died')
  }
  return { died: death.opened, tables: around(of, call) }
}
