import type { ReadTables } from '@gamenet/api'
import type { Log } from '@gamenet/ingest'
import type { BoardLeases } from '@gamenet/ingest/internals'
import type { LogReader, PassLock, Projection, Tables } from '@gamenet/projector'
import { LOCAL_PASS_LOCK, type RebuildOperations } from '@gamenet/projector/internals'
import { projectionCheckpoint } from '@gamenet/schemas'
import { HOUR_MS, type PlainFold } from './plain-folds.js'
import { aheadOfLive, keepingUndone, notCaughtUp, unchangedCheckpoint } from './rebuild-bugs.js'
import type { Definition, Row } from './replacing-table.js'
import { simulatedProjections } from './simulated.js'
import { TABLES } from './table-definitions.js'

/**
 * A classic mistake, made by putting something wrong between the real parts: what a process of the program calls passes
 * through here on its way.
 */
export type Bug = {
  loaderTables(tables: Tables): Tables
  runnerTables(tables: Tables): Tables
  /** Called once in the life of a process. */
  rebuildTables(tables: Tables): Tables
  retryTables(tables: Tables): Tables
  /** Ending what a crash has cut off; and refusing to go on before. */
  recovery(recovery: Recovery): Recovery
  /** How a process protects its projections, rebuilds and loader from concurrent swaps. */
  passLock(lock: PassLock): PassLock
  loaderPassLock(lock: PassLock): PassLock
  readerTables(tables: ReadTables & Pick<Tables, 'json'>): ReadTables & Pick<Tables, 'json'>
  reader(reader: LogReader): LogReader
  publishedLog(log: Log): Log
  relayedLog(log: Log): Log
  leases(leases: BoardLeases): BoardLeases
  projections(projections: readonly Projection[]): readonly Projection[]
  readonly folds: Readonly<Record<string, PlainFold>>
  readonly tables: Readonly<Record<string, Definition>>
}

const same = <Value>(value: Value): Value => value

/** Nothing wrong. */
export const NO_BUG: Bug = {
  loaderTables: same,
  runnerTables: same,
  rebuildTables: same,
  retryTables: same,
  recovery: same,
  passLock: same,
  loaderPassLock: same,
  readerTables: same,
  reader: same,
  publishedLog: same,
  relayedLog: same,
  leases: same,
  projections: same,
  folds: {},
  tables: {}
}

/** What a projector does about swaps of tables that were cut off. */
export type Recovery = Pick<RebuildOperations['recovery'], 'recover' | 'requireNoInterruptedSwap'>

type Mistake = { readonly says: string; make(): Partial<Bug> }

/** The mistakes that the simulator is shown to find, by name. */
export const mistakes: Readonly<Record<string, Mistake>> = {
  'commit-before-store': {
    says: 'The loader stores the checkpoint first and the rows behind it.',
    make: () => ({ loaderTables: (tables) => laterThan(tables, 'checkpoint', (table) => table.startsWith('event_')) })
  },
  'offset-resolved-early': {
    says: 'Reading continues after the delivered messages, stored or not.',
    make: () => {
      const delivered = new Map<string, number>()
      return { reader: (reader) => resolvedEarly(reader, delivered) }
    }
  },
  'dedup-window': {
    says: 'An insert with a known token passes as stored, though the first one may have failed.',
    make: () => {
      const tokens = new Set<string>()
      return {
        loaderTables: (tables) => ({
          ...tables,
          insert: async (table, columns, body) => {
            const token = table + Buffer.from(body).toString()
            if (tokens.has(token)) return
            tokens.add(token)
            await tables.insert(table, columns, body)
          }
        })
      }
    }
  },
  'swallowed-failure': {
    says: 'A dead letter that could not be stored is logged and forgotten.',
    make: () => ({ loaderTables: (tables) => swallowing(tables, 'parked_message') })
  },
  'sum-over-increments': {
    says: 'A rollup adds the events of a range to its buckets instead of recomputing them.',
    make: () => ({ folds: { 'title-count-hour': sumOfIncrements } })
  },
  'last-write-wins': {
    says: 'Rows have no version: the one that was stored last counts.',
    make: () => {
      const { version: _, ...latest } = TABLES.title_latest ?? { key: [] }
      return { tables: { title_latest: latest } }
    }
  },
  'checkpoint-before-rows': {
    says: 'A projection stores its checkpoint first and its rows behind it.',
    make: () => ({ runnerTables: (tables) => laterThan(tables, 'checkpoint', isLast) })
  },
  'change-before-rows': {
    says: 'Readers are notified of a change before its rows are stored.',
    make: () => ({ runnerTables: (tables) => laterThan(tables, 'data_change', isLast) })
  },
  'untold-change': {
    says: 'A change that could not be published is logged and dropped.',
    make: () => ({ runnerTables: (tables) => swallowing(tables, 'data_change') })
  },
  'version-from-clock': {
    says: 'The version of a change is the clock, whatever came before.',
    make: () => ({ runnerTables: versionFromClock })
  },
  'narrow-touch': {
    says: 'Only the instant of an event is published as changed, not its hour.',
    make: () => ({
      projections: (projections) =>
        projections.map((each) =>
          each.name === 'title-count-hour' ? { ...each, touches: { ...each.touches, bucketMs: 1 } } : each
        )
    })
  },
  'feed-past-checkpoint': {
    says: 'The feed of changes is read as far as there are rows, not as far as the fold has come.',
    make: () => ({ readerTables: pastCheckpoint })
  },
  'relay-deletes-early': {
    says: 'The relay takes events out of the outbox before the log has them.',
    make: () => ({
      relayedLog: (log) => ({
        append: async (topic, messages) => {
          log.append(topic, messages).catch(() => undefined)
        }
      })
    })
  },
  'stale-board': {
    says: 'A page is compared with the board of the tables, whether these have what was published of it or not.',
    make: () => ({
      leases: (leases) => ({
        ...leases,
        acquire: async (count, options) =>
          (await leases.acquire(count, options)).map((lease) => ({ ...lease, wasUnclean: false, appended: [] }))
      })
    })
  },
  'lost-rank': {
    says: 'Entries that only changed their places are not published.',
    make: () => ({
      publishedLog: (log) => ({
        append: async (topic, messages) => {
          const published = messages.filter(({ value }) => !value.includes('"changeType":"moved"'))
          if (published.length > 0) await log.append(topic, published)
        }
      })
    })
  },
  'swap-before-catch-up': {
    says: 'Events since the fill are not consumed before the swap.',
    make: () => ({ rebuildTables: notCaughtUp })
  },
  'rebuild-ahead-of-live': {
    says: 'A rebuild consumes all loaded events, also those that the serving tables have not consumed.',
    make: () => ({ rebuildTables: (tables) => aheadOfLive(tables, TOPICS) })
  },
  'old-tables-not-caught-up': {
    says: 'After a swap the old tables get the checkpoints of the serving tables.',
    make: () => ({ rebuildTables: unchangedCheckpoint })
  },
  'passes-not-shared': {
    says: 'Projectors that write to the same tables know nothing of one another when they swap them.',
    make: () => ({ passLock: () => LOCAL_PASS_LOCK })
  },
  'late-untold': {
    says: 'A retried dead letter is stored in its event table, and no projection is notified.',
    make: () => ({ retryTables: (tables) => without(tables, 'late_batch') })
  },
  'retry-decided-first': {
    says: 'A dead letter counts as retried before its event is stored.',
    make: () => ({ retryTables: decidedFirst })
  },
  'retracted-reloaded': {
    says: 'A rebuild from the log also loads the events of undone imports.',
    make: () => ({ rebuildTables: keepingUndone })
  },
  'swap-not-ended': {
    says: 'A swap of tables that a crash cut off is left as it is.',
    make: () => ({
      recovery: () => ({ recover: async () => undefined, requireNoInterruptedSwap: async () => undefined })
    })
  },
  'loading-during-swap': {
    says: 'A projector loads events while another swaps the table that they go into.',
    make: () => ({ loaderPassLock: () => LOCAL_PASS_LOCK })
  }
}

const TOPICS = new Map(simulatedProjections.map(({ name, from }) => [projectionCheckpoint(name), from.name]))

export function bugOf(name: string | undefined): Bug {
  if (name === undefined) return NO_BUG
  const mistake = mistakes[name]
  if (mistake !== undefined) return { ...NO_BUG, ...mistake.make() }
  throw new Error(`There is no bug ${JSON.stringify(name)}; there are ${Object.keys(mistakes).join(', ')}.`)
}

/** Tables that no other projection reads. */
const isLast = (table: string) => ['title_latest', 'rating', 'title_count_hour'].includes(table)

/** Puts off writes of some tables until a write of another has been done. */
function laterThan(tables: Tables, first: string, isPutOff: (table: string) => boolean): Tables {
  let putOff: (() => Promise<void>)[] = []
  return {
    ...tables,
    execute: async (sql, parameters) => {
      if (!isPutOff(/INTO (\w+)/.exec(sql)?.[1] ?? '')) return await tables.execute(sql, parameters)
      putOff.push(() => tables.execute(sql, parameters))
    },
    insert: async (table, columns, body) => {
      if (isPutOff(table)) {
        putOff.push(() => tables.insert(table, columns, body))
        return
      }
      await tables.insert(table, columns, body)
      if (table !== first) return
      const now = putOff
      putOff = []
      for (const write of now) await write()
    }
  }
}

function swallowing(tables: Tables, swallowed: string): Tables {
  return {
    ...tables,
    insert: async (table, columns, body) => {
      const inserted = tables.insert(table, columns, body)
      await (table === swallowed ? inserted.catch(() => undefined) : inserted)
    }
  }
}

function resolvedEarly(reader: LogReader, delivered: Map<string, number>): LogReader {
  return {
    ...reader,
    consume: (options) =>
      reader.consume({
        ...options,
        startAt: async (topic, epoch, partition) => {
          const stored = await options.startAt(topic, epoch, partition)
          return delivered.get(`${topic}/${partition}`) ?? stored
        },
        deliver: async (batch) => {
          const key = `${batch.topic}/${batch.partition}`
          const next = (batch.records.at(-1)?.offset ?? -1) + 1
          delivered.set(key, Math.max(next, delivered.get(key) ?? 0))
          await options.deliver(batch)
        }
      })
  }
}

function versionFromClock(tables: Tables): Tables {
  return {
    ...tables,
    insert: async (table, columns, body) => {
      if (table !== 'data_change') return await tables.insert(table, columns, body)
      const lines = Buffer.from(body).toString().split('\n').slice(0, -1)
      const versioned = lines.map((line) => `${JSON.stringify([Date.now() * 1000, ...JSON.parse(line).slice(1)])}\n`)
      await tables.insert(table, columns, new TextEncoder().encode(versioned.join('')))
    }
  }
}

function pastCheckpoint(tables: ReadTables & Pick<Tables, 'json'>): ReadTables & Pick<Tables, 'json'> {
  return {
    ...tables,
    rows: async (sql, parameters, options) => {
      const rows = await tables.rows(sql, parameters, options)
      return rows.map((row) => ('readable' in row ? { ...row, readable: row.loaded } : row))
    }
  }
}

function without(tables: Tables, left: string): Tables {
  return {
    ...tables,
    insert: async (table, columns, body) => {
      if (table !== left) await tables.insert(table, columns, body)
    }
  }
}

/** What is inserted waits for the decision, which is the last insert. */
function decidedFirst(tables: Tables): Tables {
  let putOff: (() => Promise<void>)[] = []
  return {
    ...tables,
    insert: async (table, columns, body) => {
      if (table !== 'parked_decision') {
        putOff.push(() => tables.insert(table, columns, body))
        return
      }
      const writes = putOff
      putOff = []
      await tables.insert(table, columns, body)
      for (const write of writes) await write()
    }
  }
}

const sumOfIncrements: PlainFold = ({ events, final }) => {
  const hours = new Map<string, Row>()
  const keyOf = (row: Row) => `${row.title_id}|${row.hour}`
  const before = new Map(final('title_count_hour').map((row) => [keyOf(row), row]))
  for (const { title_id, observed_at, online: value, position } of events) {
    const online = Number(value)
    const hour = Number(observed_at) - (Number(observed_at) % HOUR_MS)
    const key = keyOf({ title_id, hour })
    const last = hours.get(key) ?? before.get(key) ?? { min: online, max: -1, sum: 0, samples: 0, position: 0 }
    hours.set(key, {
      title_id,
      hour,
      min: Math.min(online, Number(last.min)),
      max: Math.max(online, Number(last.max)),
      max_at: online > Number(last.max) ? observed_at : last.max_at,
      sum: Number(last.sum) + online,
      samples: Number(last.samples) + 1,
      position: Math.max(Number(position), Number(last.position))
    })
  }
  return [...hours.values()]
}
