import type { DataVersions } from '@gamenet/api'
import type { Log } from '@gamenet/ingest'
import type { BoardLeases } from '@gamenet/ingest/internals'
import type { LogReader, Projection, ReadSide } from '@gamenet/projector'
import {
  makeRows,
  type Store,
  storeChanges,
  storeCheckpoints,
  storeDeadLetters,
  storeDecisions,
  storeEvents,
  storeLateBatch,
  storeRows
} from '@gamenet/projector/internals'
import type { ServingTables } from '@gamenet/schemas'
import { identityOfAnswer, type SimulatedQuery } from './answer-queries.js'
import { type Call, intercepted } from './intercepted-store.js'
import type { AnyOperation } from './operations/implementation.js'
import {
  alwaysCurrent,
  droppedEarly,
  erasedWhereRead,
  halfAdopted,
  headsUnread,
  readsFirst,
  reusingNumbers,
  stalePointers,
  withoutGenerations
} from './pointer-bugs.js'
import { keepingUndone, notCaughtUp, unchangedCheckpoint } from './rebuild-bugs.js'
import { TABLES } from './table-definitions.js'
import { HOUR_MS, type PlainFold } from './tables/plain-folds.js'
import type { Definition, Row } from './tables/replacing-table.js'

/** A classic mistake, planted between the real parts: the calls of a process pass through these functions. */
export type Bug = {
  loaderStore(store: Store): Store
  runnerStore(store: Store): Store
  /** Called once per process. */
  rebuildStore(store: Store): Store
  retryStore(store: Store): Store
  erasureStore(store: Store): Store
  readSide(side: ReadSide): ReadSide
  streamSide(side: ReadSide): ReadSide
  identity(
    query: SimulatedQuery,
    serving: Pick<ServingTables, 'counterOf'>,
    versions: Pick<DataVersions, 'versionOf'>
  ): string
  reader(reader: LogReader): LogReader
  publishedLog(log: Log): Log
  relayedLog(log: Log): Log
  leases(leases: BoardLeases): BoardLeases
  projections(projections: readonly Projection[]): readonly Projection[]
  readonly folds: Readonly<Record<string, PlainFold>>
  readonly tables: Readonly<Record<string, Definition>>
  /** Whether a replica waits for the rows that it reads. */
  readonly hasBarrier: boolean
}

const same = <Value>(value: Value): Value => value

/** No mistake. */
export const NO_BUG: Bug = {
  loaderStore: same,
  runnerStore: same,
  rebuildStore: same,
  retryStore: same,
  erasureStore: same,
  readSide: same,
  streamSide: same,
  identity: identityOfAnswer,
  reader: same,
  publishedLog: same,
  relayedLog: same,
  leases: same,
  projections: same,
  folds: {},
  tables: {},
  hasBarrier: true
}

type Mistake = () => Partial<Bug>

/** The mistakes that the simulator is proven to find, by name. */
export const mistakes: Readonly<Record<string, Mistake>> = {
  /** The loader stores the checkpoint before the rows. */
  'commit-before-store': () => ({
    loaderStore: (store) => laterThan(store, storeCheckpoints, ({ operation }) => operation === storeEvents)
  }),
  /** Reading continues after the delivered messages, stored or not. */
  'offset-resolved-early': () => {
    const delivered = new Map<string, number>()
    return { reader: (reader) => resolvedEarly(reader, delivered) }
  },
  /** An insert with a known token is skipped, although the first one may have failed. */
  'dedup-window': () => {
    const tokens = new Set<string>()
    return {
      loaderStore: (store) =>
        intercepted(store, async ({ operation, input, next }) => {
          if (!INSERTS.has(operation)) return await next()
          const token = operation.name + JSON.stringify(input, textOfBytes)
          if (tokens.has(token)) return undefined
          tokens.add(token)
          return await next()
        })
    }
  },
  /** A dead letter that could not be stored is logged and dropped. */
  'swallowed-failure': () => ({ loaderStore: (store) => swallowing(store, storeDeadLetters) }),
  /** A rollup adds the events of a range to its buckets instead of recomputing them. */
  'sum-over-increments': () => ({ folds: { 'title-count-hour': sumOfIncrements } }),
  /** Rows have no version: the row that was stored last wins. */
  'last-write-wins': () => {
    const { version: _, ...latest } = TABLES.title_latest ?? { key: [] }
    return { tables: { title_latest: latest } }
  },
  /** A projection stores its checkpoint before its rows. */
  'checkpoint-before-rows': () => ({ runnerStore: (store) => laterThan(store, storeCheckpoints, isLast) }),
  /** Readers are notified of a change before its rows are stored. */
  'change-before-rows': () => ({ runnerStore: (store) => laterThan(store, storeChanges, isLast) }),
  /** A change that could not be published is logged and dropped. */
  'unpublished-change': () => ({ runnerStore: (store) => swallowing(store, storeChanges) }),
  /** The version of a change is the clock, even if earlier versions are higher. */
  'version-from-clock': () => ({ runnerStore: versionFromClock }),
  /** Only the instant of an event is published as changed, not its hour. */
  'narrow-touch': () => ({
    projections: (projections) =>
      projections.map((each) =>
        each.name === 'title-count-hour' ? { ...each, touches: { ...each.touches, bucketMs: 1 } } : each
      )
  }),
  /** The feed of changes is read up to the last loaded event, not up to the checkpoint of the fold. */
  'feed-past-checkpoint': () => ({ readSide: pastCheckpoint }),
  /** The cursor of the stream passes changes that are loaded but not folded yet. */
  'stream-past-fold': () => ({ streamSide: loadedAsReadable }),
  /** The relay deletes events from the outbox before the log has them. */
  'relay-deletes-early': () => ({
    relayedLog: (log) => ({
      append: async (topic, messages) => {
        log.append(topic, messages).catch(() => undefined)
      }
    })
  }),
  /** A page is compared with the board of the tables before these have all events that were published for it. */
  'stale-board': () => ({
    leases: (leases) => ({
      ...leases,
      acquire: async (count, options) =>
        (await leases.acquire(count, options)).map((lease) => ({ ...lease, wasUnclean: false, appended: [] }))
    })
  }),
  /** Entries that only changed their places are not published. */
  'lost-rank': () => ({
    publishedLog: (log) => ({
      append: async (topic, messages) => {
        const published = messages.filter(({ value }) => !value.includes('"changeType":"moved"'))
        if (published.length > 0) await log.append(topic, published)
      }
    })
  }),
  /** A swap does not wait until the events since the fill are consumed. */
  'swap-before-catch-up': () => ({ rebuildStore: notCaughtUp }),
  /** After a swap the old tables get the checkpoints of the serving tables. */
  'old-tables-not-caught-up': () => ({ rebuildStore: unchangedCheckpoint }),
  /** A retried dead letter is stored in its event table without a late batch. */
  'unannounced-late-batch': () => ({ retryStore: (store) => without(store, storeLateBatch) }),
  /** A dead letter counts as retried before its event is stored. */
  'retry-decided-first': () => ({ retryStore: decidedFirst }),
  /** A rebuild from the log also loads the events of undone imports. */
  'undone-import-reloaded': () => ({ rebuildStore: keepingUndone }),
  /** Answers read the other generation before it has consumed all that answers have shown. */
  'reads-before-caught-up': () => ({ rebuildStore: headsUnread }),
  /** A pass reads the pointer before it reads how far the log is loaded. */
  'pointer-before-heads': () => ({ runnerStore: stalePointers }),
  /** Answers read the other generation before steps write it. */
  'reads-before-writes': () => ({ rebuildStore: readsFirst }),
  /** A generation gets the number of a dropped one. */
  'reused-number': () => ({ rebuildStore: reusingNumbers }),
  /** The former generation is dropped when steps no longer write it, although answers still read it. */
  'dropped-before-swap': () => ({ rebuildStore: droppedEarly }),
  /** The identity of an answer has the versions of its data, but not the count of changes of `reads`. */
  'identity-without-counter': () => ({
    identity: (query, _, versions) => identityOfAnswer(query, { counterOf: () => 0 }, versions)
  }),
  /** The loader stores into the generation that steps write now, from the position of another one. */
  'loader-unbound': () => ({ loaderStore: alwaysCurrent }),
  /** A late batch that is consumed in one generation counts as consumed in all. */
  'late-without-generation': () => ({ runnerStore: withoutGenerations, rebuildStore: withoutGenerations }),
  /** A process adopts a changed pointer table by table. */
  'half-adopted-pointers': () => ({ readSide: halfAdopted() }),
  /** A user is erased only from the generations that answers read. */
  'erases-one-generation': () => ({ erasureStore: erasedWhereRead }),
  /** A statement reads what its replica has by now. */
  'no-barrier': () => ({ hasBarrier: false })
}

export function bugOf(name: string | undefined): Bug {
  if (name === undefined) return NO_BUG
  const mistake = mistakes[name]
  if (mistake !== undefined) return { ...NO_BUG, ...mistake() }
  throw new Error(`Unknown bug ${JSON.stringify(name)}; expected one of ${Object.keys(mistakes).join(', ')}.`)
}

/** The operations by which a loader stores. */
const INSERTS: ReadonlySet<AnyOperation> = new Set([storeEvents, storeDeadLetters, storeCheckpoints])

function textOfBytes(_: string, value: unknown): unknown {
  return value instanceof Uint8Array ? Buffer.from(value).toString() : value
}

/** Whether a call stores rows that no other projection reads. */
function isLast({ operation, input }: Call): boolean {
  if (operation === storeRows) return input[1] === 'rating'
  if (operation !== makeRows) return false
  const { name } = input[0] as Projection
  return ['title-latest', 'rating', 'title-count-hour'].includes(name)
}

/** Delays some writes until the operation `first` has been executed. */
function laterThan(store: Store, first: AnyOperation, isDelayed: (call: Call) => boolean): Store {
  let delayed: (() => Promise<unknown>)[] = []
  return intercepted(store, async (call) => {
    if (isDelayed(call)) {
      delayed.push(call.next)
      return undefined
    }
    const result = await call.next()
    if (call.operation !== first) return result
    const now = delayed
    delayed = []
    for (const write of now) await write()
    return result
  })
}

function swallowing(store: Store, swallowed: AnyOperation): Store {
  return intercepted(store, async ({ operation, next }) => {
    return await (operation === swallowed ? next().catch(() => undefined) : next())
  })
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

function versionFromClock(store: Store): Store {
  return intercepted(store, async ({ operation, input, next, base }) => {
    if (operation !== storeChanges) return await next()
    return await base.do(operation, Date.now() * 1000, input[1])
  })
}

function pastCheckpoint(side: ReadSide): ReadSide {
  return {
    ...side,
    positions: async (serving, names) => {
      const positions = await side.positions(serving, names)
      return names.flatMap((name) =>
        positions.filter((each) => each.name === names[1]).map((each) => ({ ...each, name }))
      )
    }
  }
}

/** The stream reads positions in pairs, of a projection and of the loader of its topic. Returns the second one for both. */
function loadedAsReadable(side: ReadSide): ReadSide {
  return {
    ...side,
    positions: async (serving, names) => {
      const positions = await side.positions(serving, names)
      return names.flatMap((name, n) =>
        positions.filter((each) => each.name === names[n | 1]).map((each) => ({ ...each, name }))
      )
    }
  }
}

function without(store: Store, left: AnyOperation): Store {
  return intercepted(store, async ({ operation, next }) => (operation === left ? undefined : await next()))
}

/** Delays the events and the late batch until the decision is stored. */
function decidedFirst(store: Store): Store {
  return laterThan(store, storeDecisions, ({ operation }) => operation === storeEvents || operation === storeLateBatch)
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
