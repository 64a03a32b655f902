import {
  AGAIN_SECONDS,
  type Checkpoint,
  copyConsumed,
  discardBatchConsumers,
  discardCheckpoints,
  type FilledGeneration,
  Pointers,
  readBatchConsumers,
  readChangesSince,
  readCheckpoints,
  readCheckpointsOf,
  readConsumed,
  readFilled,
  readKnownBatches,
  readLatePositions,
  readNewestBegin,
  readNewestVersion,
  readPending,
  readPointers,
  readRebuildOwner,
  readRebuildRecords,
  replaceReadViews,
  storeChanges,
  storeCheckpoints,
  storeConsumed,
  storeFilled,
  storeLateBatch,
  storePointers,
  storeRebuildOwner,
  storeRebuildRecord
} from '@gamenet/projector/internals'
import { INSTANTS_END_MS, type LogPosition, type VersionedChange } from '@gamenet/schemas'
import type { Row } from '../tables/replacing-table.js'
import { always, changingWhole, type Implementation, inserting, part, reading, type Seen } from './implementation.js'

/*
 * Checkpoints, data changes, pointers, generations, rebuilds and late batches.
 */

const SWAP_RISK = 12

export const bookkeeping: readonly Implementation[] = [
  reading(readCheckpoints, checkpointsIn),
  reading(readCheckpointsOf, (seen, names) => checkpointsIn(seen).filter(({ name }) => names.includes(name))),
  inserting(
    storeCheckpoints,
    (seen, checkpoints) =>
      seen.insert(
        'checkpoint',
        checkpoints.map((each) => ({ ...each, name: seen.target(each.name) }))
      ),
    ([checkpoints], share) => [part(checkpoints, share)]
  ),
  changingWhole(
    discardCheckpoints,
    (seen, names) => seen.written('checkpoint').delete(({ name }) => names.includes(String(name))),
    { freesSpace: true }
  ),

  reading(readNewestVersion, (seen) =>
    Math.max(0, ...seen.table('data_change').rows.map(({ version }) => Number(version)))
  ),
  reading(readNewestBegin, (seen) => {
    const begins = seen.table('data_change').rows.map(({ from_ms }) => Math.min(Number(from_ms), INSTANTS_END_MS - 1))
    return Math.max(0, ...begins)
  }),
  reading(readChangesSince, changesSince),
  inserting(
    storeChanges,
    (seen, version, changes) => {
      const rows = changes.map(({ projection, key, fromMs: from_ms, toMs: to_ms }) => {
        return { version, projection, key, from_ms, to_ms }
      })
      seen.insert('data_change', rows)
    },
    ([version, changes], share) => [version, part(changes, share)]
  ),

  reading(readPointers, pointersIn),
  {
    ...inserting(storePointers, (seen, version, pointers) =>
      seen.insert(
        'generation_pointer',
        pointers.map((each) => ({ ...each, version }))
      )
    ),
    risk: SWAP_RISK
  },
  reading(readFilled, filledIn),
  inserting(storeFilled, (seen, generations) => seen.insert('generation_statement', generations)),
  changingWhole(replaceReadViews, () => undefined),

  reading(readRebuildRecords, (seen) =>
    newestOf(seen.table('rebuild').rows, 'id')
      .sort((a, b) => Number(b.id) - Number(a.id))
      .map(({ record }) => String(record))
  ),
  inserting(storeRebuildRecord, (seen, id, version, record) => seen.insert('rebuild', [{ id, record, version }])),
  reading(
    readRebuildOwner,
    (seen, id) => {
      const owners = seen.table('rebuild_owner').rows.filter((row) => row.id === id)
      const [newest] = owners.toSorted((a, b) => Number(b.seen_at) - Number(a.seen_at))
      if (newest === undefined) return undefined
      return { process: String(newest.process), ageMs: seen.machine.nowMs() - Number(newest.seen_at) }
    },
    always
  ),
  inserting(storeRebuildOwner, (seen, id, process) => seen.insert('rebuild_owner', [{ id, process }])),

  inserting(storeLateBatch, (seen, id, topic, positions) => {
    const places = positions.map(({ epoch, partition, offset }) => ({ epoch, partition, offset }))
    seen.insert('late_batch', [{ id, topic, positions: places }])
  }),
  inserting(
    storeConsumed,
    (seen, taken) =>
      seen.insert(
        'late_batch_taken',
        taken.map(({ id, consumer }) => ({ id, taker: seen.target(consumer) }))
      ),
    ([taken], share) => [part(taken, share)]
  ),
  changingWhole(copyConsumed, (seen, from, consumers) => {
    const targets = new Map(consumers.map((consumer) => [from.get(consumer) ?? consumer, seen.target(consumer)]))
    const taken = seen.final('late_batch_taken').flatMap(({ id, taker }) => {
      const target = targets.get(String(taker))
      return target === undefined ? [] : [{ id, taker: target }]
    })
    seen.insert('late_batch_taken', taken)
  }),
  reading(readBatchConsumers, (seen) =>
    [...new Set(seen.final('late_batch_taken').map(({ taker }) => String(taker)))].sort()
  ),
  changingWhole(
    discardBatchConsumers,
    (seen, consumers) => seen.written('late_batch_taken').delete(({ taker }) => consumers.includes(String(taker))),
    { freesSpace: true }
  ),
  reading(readLatePositions, (seen, id) => {
    const [batch] = seen.final('late_batch').filter((row) => row.id === id)
    return (batch?.positions ?? []) as LogPosition[]
  }),
  reading(readConsumed, consumedBy),
  reading(readPending, (seen, consumer, topics) => {
    const taken = new Set(consumedBy(seen, consumer))
    return seen
      .final('late_batch')
      .sort(byAge)
      .map(({ id, topic }) => ({ id: String(id), topic: String(topic) }))
      .filter(({ id, topic }) => topics.includes(topic) && !taken.has(id))
  }),
  reading(readKnownBatches, (seen, consumersByTopic) => {
    const taken = new Map<string, string[]>()
    for (const { id, taker } of seen.final('late_batch_taken'))
      taken.set(String(id), [...(taken.get(String(id)) ?? []), String(taker)])
    return seen
      .final('late_batch')
      .sort(byAge)
      .flatMap(({ id, topic, stored_at }) => {
        const wanted = consumersByTopic.get(String(topic))?.map(seen.source)
        const consumers = taken.get(String(id)) ?? []
        const isRecent = Number(stored_at) > seen.machine.nowMs() - AGAIN_SECONDS * 1000
        const isLeft = wanted?.some((consumer) => !consumers.includes(consumer)) === true
        if (wanted === undefined || !(isRecent || isLeft)) return []
        return [
          {
            id: String(id),
            topic: String(topic),
            isRecent,
            consumers: consumers.flatMap((consumer) => seen.nameOf(consumer) ?? [])
          }
        ]
      })
  })
]

function checkpointsIn(seen: Seen): Checkpoint[] {
  return seen.final('checkpoint').flatMap(({ name: used, epoch, partition, next }) => {
    const name = seen.nameOf(String(used))
    return name === undefined ? [] : [{ name, epoch: Number(epoch), partition: Number(partition), next: Number(next) }]
  })
}

/** The pointers of tables. */
export function pointersIn(seen: Pick<Seen, 'final'>): Pointers {
  const rows = seen.final('generation_pointer')
  const pointers = rows.map(({ owner, tables, writes, reads, readsChanged }) => ({
    owner: String(owner),
    tables: tables as readonly string[],
    writes: Number(writes),
    reads: Number(reads),
    readsChanged: Number(readsChanged)
  }))
  return new Pointers(pointers, Math.max(0, ...rows.map(({ version }) => Number(version))))
}

/** Which statements fill each generation: of several rows, those of the lowest version. */
export function filledIn(seen: Pick<Seen, 'final'>): FilledGeneration[] {
  const filled = new Map<string, FilledGeneration>()
  for (const { projection, generation, version, hash } of seen.final('generation_statement')) {
    const key = `${projection}/${generation}`
    const before = filled.get(key)
    if (before !== undefined && before.version <= Number(version)) continue
    const own = { projection: String(projection), generation: Number(generation) }
    filled.set(key, { ...own, version: Number(version), hash: String(hash) })
  }
  return [...filled.values()].sort((a, b) =>
    a.projection === b.projection ? a.generation - b.generation : a.projection < b.projection ? -1 : 1
  )
}

/** Returns the first row of the highest version among unmerged rows. */
function newestOf(rows: readonly Row[], key: string): Row[] {
  const newest = new Map<unknown, Row>()
  for (const row of rows) {
    const before = newest.get(row[key])
    if (before === undefined || Number(row.version) > Number(before.version)) newest.set(row[key], row)
  }
  return [...newest.values()]
}

function byAge(a: Row, b: Row): number {
  return Number(a.stored_at) - Number(b.stored_at) || (String(a.id) < String(b.id) ? -1 : 1)
}

function consumedBy(seen: Seen, consumer: string): string[] {
  const rows = seen.final('late_batch_taken').filter((row) => row.taker === seen.source(consumer))
  const ids = new Set(rows.map(({ id }) => id))
  return seen
    .final('late_batch')
    .filter(({ id }) => ids.has(id))
    .sort(byAge)
    .map(({ id }) => String(id))
}

function changesSince(seen: Seen, after: number, minutesFromMs: number): VersionedChange[] {
  const found = new Map<string, VersionedChange>()
  for (const { version, projection, key, from_ms, to_ms } of seen.table('data_change').rows) {
    if (Number(version) <= after) continue
    const [from, to] = [Number(from_ms), Number(to_ms)]
    const width = to > minutesFromMs ? 60_000 : 3_600_000
    const fromMs = Math.trunc(Math.max(from, 0) / width) * width
    const toMs = Math.trunc((Math.max(Math.min(to, INSTANTS_END_MS), from + 1) + width - 1) / width) * width
    const id = [projection, key, width, fromMs, toMs].join('|')
    const newest = Math.max(Number(version), found.get(id)?.version ?? 0)
    found.set(id, { projection: String(projection), key: String(key), fromMs, toMs, version: newest })
  }
  return [...found.values()]
}
