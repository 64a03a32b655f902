import type { Row } from './replacing-table.js'
import type { Answer } from './statements-of-rebuilds.js'
import type { Seen, TableSet } from './table-set.js'

/*
 * Queries about dead letters, late events and imports.
 */

const AGAIN_MS = 1_800_000

export const operatorAnswers: readonly (readonly [string, Answer])[] = [
  [
    'SELECT p.topic AS topic, p.epoch AS epoch, p.partition AS partition, p.offset AS offset, p.state',
    deadLettersAfter
  ],
  ['SELECT p.epoch AS epoch, p.partition AS partition, p.offset AS offset, p.message_key', contents],
  ['SELECT b.id AS id, b.topic AS topic, b.stored_at', lateBatches],
  ['SELECT b.positions AS positions FROM late_batch', (seen, { id }) => positionsOf(seen, String(id))],
  ['SELECT b.id AS id FROM late_batch AS b FINAL WHERE b.id IN', takenBy],
  ['SELECT b.id AS id, b.topic AS topic FROM late_batch AS b FINAL WHERE b.topic IN', lateBatchesPendingFor],
  ['SELECT r.import_id AS importId FROM import_retraction', retracted],
  ['SELECT r.import_id AS importId, r.topic AS topic FROM import_retraction', allUndone],
  ['SELECT i.import_id AS importId, i.topic AS topic, i.file', importRuns]
]

const placeOf = (row: Row) => [row.epoch, row.partition, row.offset].map(Number)
const keyOf = (row: Row) => [row.topic, row.epoch, row.partition, row.offset].join('|')

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [n, value] of a.entries()) if (value !== b[n]) return value - (b[n] ?? 0)
  return 0
}

function deadLettersAfter(seen: Seen, { topic, epoch, partition, offset, limit }: Row): Row[] {
  const decisions = new Map(seen.final('parked_decision').map((row) => [keyOf(row), row]))
  const stateOf = (row: Row) => {
    const { decision, decided_at } = decisions.get(keyOf(row)) ?? {}
    if (decision === 'retried') return Number(decided_at) >= Number(row.parked_at) ? 'retried' : 'parked'
    return decision ?? 'parked'
  }
  const behind = epoch === undefined ? [-1] : [epoch, partition, offset].map(Number)
  return seen
    .final('parked_message')
    .filter((row) => row.topic === topic && stateOf(row) === 'parked' && compare(placeOf(row), behind) > 0)
    .sort((a, b) => compare(placeOf(a), placeOf(b)))
    .slice(0, Number(limit))
    .map(({ value, ...row }) => ({
      ...{ topic, epoch: row.epoch, partition: row.partition, offset: row.offset, state: 'parked' },
      ...{ parked_at_ms: row.parked_at, reason: row.reason },
      bytes: String(Buffer.from(String(value), 'base64').byteLength)
    }))
}

function contents(seen: Seen, { topic, epochs, partitions, offsets }: Row): Row[] {
  const [first, second, third] = [epochs, partitions, offsets] as number[][]
  const wanted = new Set((first ?? []).map((epoch, n) => [topic, epoch, second?.[n], third?.[n]].join('|')))
  return seen
    .final('parked_message')
    .filter((row) => wanted.has(keyOf(row)))
    .sort((a, b) => compare(placeOf(a), placeOf(b)))
    .map(({ epoch, partition, offset, message_key, headers, value }) => {
      return { epoch, partition, offset, message_key, headers, value }
    })
}

const byAge = (a: Row, b: Row) => Number(a.stored_at) - Number(b.stored_at) || (String(a.id) < String(b.id) ? -1 : 1)

function lateBatches(seen: Seen, { topics, takers }: Row, { machine }: TableSet): Row[] {
  const taken = new Map<string, string[]>()
  for (const { id, taker } of seen.final('late_batch_taken'))
    taken.set(String(id), [...(taken.get(String(id)) ?? []), String(taker)])
  return seen
    .final('late_batch')
    .sort(byAge)
    .flatMap(({ id, topic, stored_at }) => {
      const n = (topics as string[]).indexOf(String(topic))
      const isRecent = Number(stored_at) > machine.nowMs() - AGAIN_MS
      const by = taken.get(String(id)) ?? []
      const isLeft = (takers as string[][])[n]?.some((taker) => !by.includes(taker)) === true
      return n >= 0 && (isRecent || isLeft) ? [{ id, topic, is_recent: Number(isRecent), takers: by }] : []
    })
}

function positionsOf(seen: Seen, id: string): Row[] {
  return seen
    .final('late_batch')
    .filter((row) => row.id === id)
    .map(({ positions }) => ({ positions }))
}

function takenBy(seen: Seen, { taker }: Row): Row[] {
  const ids = new Set(
    seen
      .final('late_batch_taken')
      .filter((row) => row.taker === taker)
      .map(({ id }) => id)
  )
  return seen
    .final('late_batch')
    .filter(({ id }) => ids.has(id))
    .sort(byAge)
    .map(({ id }) => ({ id }))
}

function lateBatchesPendingFor(seen: Seen, { topics, taker }: Row): Row[] {
  const taken = new Set(takenBy(seen, { taker }).map(({ id }) => id))
  return seen
    .final('late_batch')
    .filter(({ id, topic }) => (topics as unknown[]).includes(topic) && !taken.has(id))
    .sort(byAge)
    .map(({ id, topic }) => ({ id, topic }))
}

function retracted(seen: Seen, { topic }: Row): Row[] {
  return seen
    .final('import_retraction')
    .filter((row) => row.topic === topic)
    .map(({ import_id: importId }) => ({ importId }))
}

function allUndone(seen: Seen): Row[] {
  return seen.final('import_retraction').map(({ import_id: importId, topic }) => ({ importId, topic }))
}

function importRuns(seen: Seen): Row[] {
  const retractedAt = new Map(seen.final('import_retraction').map((row) => [row.import_id, row.ts]))
  return seen.final('import_run').map(({ import_id: importId, topic, file, ts, rejected, finished, ...run }) => {
    const counts = { rowsRead: run.rows_read, published: run.published, rejected }
    return { importId, topic, file, newestMs: ts, ...counts, finished, retractedMs: retractedAt.get(importId) ?? 0 }
  })
}
