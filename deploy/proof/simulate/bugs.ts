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

type Mistake = { readonly says: string; make(): Partial<Bug> }

/** The mistakes that the simulator is proven to find, by name. */
export const mistakes: Readonly<Record<string, Mistake>> = {
  'commit-before-store': {
    says: 'The loader stores the checkpoint before the rows.',
    make: () => ({
      loaderStore: (store) => laterThan(store, storeCheckpoints, ({ operation }) => operation === storeEvents)
    })
  },
  'offset-resolved-early': {
    says: 'Reading continues after the delivered messages, stored or not.',
    make: () => {
      const delivered = new Map<string, number>()
      return { reader: (reader) => resolvedEarly(reader, delivered) }
    }
  },
  'dedup-window': {
    says: 'An insert with a known token is skipped, although the first one may have failed.',
    make: () => {
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
    }
  },
  'swallowed-failure': {
    says: 'A dead letter that could not be stored is logged and dropped.',
    make: () => ({ loaderStore: (store) => swallowing(store, storeDeadLetters) })
  },
  'sum-over-increments': {
    says: 'A rollup adds the events of a range to its buckets instead of recomputing them.',
    make: () => ({ folds: { 'title-count-hour': sumOfIncrements } })
  },
  'last-write-wins': {
    says: 'Rows have no version: the row that was stored last wins.',
    make: () => {
      const { version: _, ...latest } = TABLES.title_latest ?? { key: [] }
      return { tables: { title_latest: latest } }
    }
  },
  'checkpoint-before-rows': {
    says: 'A projection stores its checkpoint before its rows.',
    make: () => ({ runnerStore: (store) => laterThan(store, storeCheckpoints, isLast) })
  },
  'change-before-rows': {
    says: 'Readers are notified of a change before its rows are stored.',
    make: () => ({ runnerStore: (store) => laterThan(store, storeChanges, isLast) })
  },
  'unpublished-change': {
    says: 'A change that could not be published is logged and dropped.',
    make: () => ({ runnerStore: (store) => swallowing(store, storeChanges) })
  },
  'version-from-clock': {
    says: 'The version of a change is the clock, even if earlier versions are higher.',
    make: () => ({ runnerStore: versionFromClock })
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
    says: 'The feed of changes is read up to the last loaded event, not up to the checkpoint of the fold.',
    make: () => ({ readSide: pastCheckpoint })
  },
  'stream-past-fold': {
    says: 'The cursor of the stream passes changes that are loaded but not folded yet.',
    make: () => ({ streamSide: loadedAsReadable })
  },
  'relay-deletes-early': {
    says: 'The relay deletes events from the outbox before the log has them.',
    make: () => ({
      relayedLog: (log) => ({
        append: async (topic, messages) => {
          log.append(topic, messages).catch(() => undefined)
        }
      })
    })
  },
  'stale-board': {
    says: 'A page is compared with the board of the tables before these have all events that were published for it.',
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
    says: 'A swap does not wait until the events since the fill are consumed.',
    make: () => ({ rebuildStore: notCaughtUp })
  },
  'old-tables-not-caught-up': {
    says: 'After a swap the old tables get the checkpoints of the serving tables.',
    make: () => ({ rebuildStore: unchangedCheckpoint })
  },
  'unannounced-late-batch': {
    says: 'A retried dead letter is stored in its event table without a late batch.',
    make: () => ({ retryStore: (store) => without(store, storeLateBatch) })
  },
  'retry-decided-first': {
    says: 'A dead letter counts as retried before its event is stored.',
    make: () => ({ retryStore: decidedFirst })
  },
  'undone-import-reloaded': {
    says: 'A rebuild from the log also loads the events of undone imports.',
    make: () => ({ rebuildStore: keepingUndone })
  },
  'reads-before-caught-up': {
    says: 'Answers read the other generation before it has consumed all that answers have shown.',
    make: () => ({ rebuildStore: headsUnread })
  },
  'pointer-before-heads': {
    says: 'A pass reads the pointer before it reads how far the log is loaded.',
    make: () => ({ runnerStore: stalePointers })
  },
  'reads-before-writes': {
    says: 'Answers read the other generation before steps write it.',
    make: () => ({ rebuildStore: readsFirst })
  },
  'reused-number': {
    says: 'A generation gets the number of a dropped one.',
    make: () => ({ rebuildStore: reusingNumbers })
  },
  'dropped-before-swap': {
    says: 'The former generation is dropped when steps no longer write it, although answers still read it.',
    make: () => ({ rebuildStore: droppedEarly })
  },
  'identity-without-counter': {
    says: 'The identity of an answer has the versions of its data, but not the count of changes of `reads`.',
    make: () => ({ identity: (query, _, versions) => identityOfAnswer(query, { counterOf: () => 0 }, versions) })
  },
  'loader-unbound': {
    says: 'The loader stores into the generation that steps write now, from the position of another one.',
    make: () => ({ loaderStore: alwaysCurrent })
  },
  'late-without-generation': {
    says: 'A late batch that is consumed in one generation counts as consumed in all.',
    make: () => ({ runnerStore: withoutGenerations, rebuildStore: withoutGenerations })
  },
  'half-adopted-pointers': {
    says: 'A process adopts a changed pointer table by table.',
    make: () => ({ readSide: halfAdopted() })
  },
  'erases-one-generation': {
    says: 'A user is erased only from the generations that answers read.',
    make: () => ({ erasureStore: erasedWhereRead })
  },
  'no-barrier': {
    says: 'A statement reads what its replica has by now.',
    make: () => ({ hasBarrier: false })
  }
}

export function bugOf(name: string | undefined): Bug {
  if (name === undefined) return NO_BUG
  const mistake = mistakes[name]
  if (mistake !== undefined) return { ...NO_BUG, ...mistake.make() }
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
