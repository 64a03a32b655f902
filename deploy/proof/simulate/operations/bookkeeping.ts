import {
  AGAIN_SECONDS,
  clearCheckpoints,
  copyConsumed,
  readCheckpoints,
  readConsumed,
  readDefinitions,
  readKnownBatches,
  readLatePositions,
  readNewestAnnouncement,
  readNewestDefinition,
  readNewestVersion,
  readPending,
  readRebuildOwner,
  readRebuildRecords,
  storeAnnouncement,
  storeChanges,
  storeCheckpoints,
  storeConsumed,
  storeDefinitions,
  storeLateBatch,
  storeRebuildOwner,
  storeRebuildRecord
} from '@gamenet/projector/internals'
import type { LogPosition } from '@gamenet/schemas'
import type { Row } from '../replacing-table.js'
import { always, changingWhole, type Implementation, inserting, part, reading, type Seen } from './carry-out.js'

/*
 * Checkpoints, data changes, definitions, rebuilds, announcements of swaps and late batches.
 */

const STATES = ['announced', 'begun', 'ended'] as const

export const bookkeeping: readonly Implementation[] = [
  reading(readCheckpoints, (seen) =>
    seen.final('checkpoint').map(({ name, epoch, partition, next }) => ({
      name: String(name),
      epoch: Number(epoch),
      partition: Number(partition),
      next: Number(next)
    }))
  ),
  inserting(
    storeCheckpoints,
    (seen, checkpoints) => seen.insert('checkpoint', checkpoints),
    ([checkpoints], share) => [part(checkpoints, share)]
  ),
  changingWhole(clearCheckpoints, (seen) => seen.target('checkpoint').truncate()),

  reading(readNewestVersion, (seen) =>
    Math.max(0, ...seen.table('data_change').rows.map(({ version }) => Number(version)))
  ),
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

  reading(readDefinitions, (seen) => {
    const newest = newestOf(seen.table('projection_definition').rows, 'name')
    return new Map(newest.map(({ name, definition }) => [String(name), String(definition)]))
  }),
  reading(readNewestDefinition, (seen) =>
    Math.max(0, ...seen.table('projection_definition').rows.map(({ version }) => Number(version)))
  ),
  inserting(
    storeDefinitions,
    (seen, version, definitions) =>
      seen.insert(
        'projection_definition',
        definitions.map((each) => ({ ...each, version }))
      ),
    ([version, definitions], share) => [version, part(definitions, share)]
  ),

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

  reading(readNewestAnnouncement, (seen) => {
    const places = seen
      .final('exchange')
      .map(({ id, state }) => ({ id: Number(id), at: STATES.indexOf(state as never) }))
    const [newest] = places.sort((a, b) => b.id - a.id || b.at - a.at)
    return newest === undefined ? undefined : { id: newest.id, state: STATES[newest.at] ?? 'ended' }
  }),
  inserting(storeAnnouncement, (seen, { id, state }) => seen.insert('exchange', [{ id, state }])),

  inserting(storeLateBatch, (seen, id, topic, positions) => {
    const places = positions.map(({ epoch, partition, offset }) => ({ epoch, partition, offset }))
    seen.insert('late_batch', [{ id, topic, positions: places }])
  }),
  inserting(
    storeConsumed,
    (seen, taken) => seen.insert('late_batch_taken', taken),
    ([taken], share) => [part(taken, share)]
  ),
  changingWhole(copyConsumed, (seen) =>
    seen.target('late_batch_taken').insert(seen.tables.table('late_batch_taken').rows)
  ),
  reading(readLatePositions, (seen, id) => {
    const [batch] = seen.final('late_batch').filter((row) => row.id === id)
    return (batch?.positions ?? []) as LogPosition[]
  }),
  reading(readConsumed, takenBy),
  reading(readPending, (seen, taker, topics) => {
    const taken = new Set(takenBy(seen, taker))
    return seen
      .final('late_batch')
      .sort(byAge)
      .map(({ id, topic }) => ({ id: String(id), topic: String(topic) }))
      .filter(({ id, topic }) => topics.includes(topic) && !taken.has(id))
  }),
  reading(readKnownBatches, (seen, takersByTopic) => {
    const taken = new Map<string, string[]>()
    for (const { id, taker } of seen.final('late_batch_taken'))
      taken.set(String(id), [...(taken.get(String(id)) ?? []), String(taker)])
    return seen
      .final('late_batch')
      .sort(byAge)
      .flatMap(({ id, topic, stored_at }) => {
        const wanted = takersByTopic.get(String(topic))
        const takers = taken.get(String(id)) ?? []
        const isRecent = Number(stored_at) > seen.machine.nowMs() - AGAIN_SECONDS * 1000
        const isLeft = wanted?.some((taker) => !takers.includes(taker)) === true
        if (wanted === undefined || !(isRecent || isLeft)) return []
        return [{ id: String(id), topic: String(topic), isRecent, takers }]
      })
  })
]

/** Of rows that are not merged yet the first of the highest version. */
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

function takenBy(seen: Seen, taker: string): string[] {
  const rows = seen.final('late_batch_taken').filter((row) => row.taker === taker)
  const ids = new Set(rows.map(({ id }) => id))
  return seen
    .final('late_batch')
    .filter(({ id }) => ids.has(id))
    .sort(byAge)
    .map(({ id }) => String(id))
}
