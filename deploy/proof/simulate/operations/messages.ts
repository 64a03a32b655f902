import {
  copyDeadLetters,
  copyEvents,
  deleteImports,
  readDeadLettersAfter,
  readImports,
  readMessages,
  readRetractedImports,
  readRetractions,
  storeDeadLetters,
  storeDecisions,
  storeEvents
} from '@gamenet/projector/internals'
import { liesIn } from '../tables/plain-folds.js'
import type { Row } from '../tables/replacing-table.js'
import {
  changing,
  changingWhole,
  type Implementation,
  inserting,
  part,
  partOfBlock,
  reading,
  type Seen
} from './implementation.js'

/*
 * Events, dead letters and imports.
 */

export const messages: readonly Implementation[] = [
  inserting(
    storeEvents,
    (seen, { table }, block) => seen.insertBlock(table, block),
    ([table, block], share) => [table, partOfBlock(block, share)]
  ),
  changingWhole(deleteImports, (seen, table, importIds) =>
    seen.written(table).delete((row) => importIds.includes(String(row.import_id)))
  ),
  changing(copyEvents, (seen, [{ table }, from, range], share) => {
    const events = seen.tables.final(from).filter((event) => liesIn(range, event))
    seen.written(table).insert(events.slice(0, Math.ceil(events.length * share)))
  }),

  inserting(
    storeDeadLetters,
    (seen, block) => seen.insertBlock('dead_letter', block),
    ([block], share) => [partOfBlock(block, share)]
  ),
  changing(copyDeadLetters, (seen, [from], share) => {
    const known = new Set(seen.tables.final('dead_letter').map(placeText))
    const lacking = seen.tables.final(from).filter((row) => !known.has(placeText(row)))
    seen.written('dead_letter').insert(lacking.slice(0, Math.ceil(lacking.length * share)))
  }),
  inserting(
    storeDecisions,
    (seen, decision, positions) =>
      seen.insert(
        'dead_letter_decision',
        positions.map(({ topic, epoch, partition, offset }) => ({ topic, epoch, partition, offset, decision }))
      ),
    ([decision, positions], share) => [decision, part(positions, share)]
  ),
  reading(readDeadLettersAfter, (seen, topic, last, limit) => {
    const behind = last === undefined ? [-1] : [last.epoch, last.partition, last.offset]
    return waitingOf(seen, topic)
      .filter((row) => compare(placeOf(row), behind) > 0)
      .slice(0, limit)
      .map((row) => ({
        ...{ topic, epoch: Number(row.epoch), partition: Number(row.partition), offset: Number(row.offset) },
        ...{ state: 'stored' as const, storedAtMs: Number(row.stored_at), reason: String(row.reason) },
        bytes: Buffer.from(String(row.value), 'base64').byteLength
      }))
  }),
  reading(readMessages, (seen, topic, positions) => {
    const wanted = new Set(positions.map((position) => keyOf({ ...position, topic })))
    return seen
      .final('dead_letter')
      .filter((row) => wanted.has(keyOf(row)))
      .sort((a, b) => compare(placeOf(a), placeOf(b)))
      .map((row) => ({
        ...{ topic, epoch: Number(row.epoch), partition: Number(row.partition), offset: Number(row.offset) },
        ...{ key: String(row.message_key), headers: row.headers as Record<string, string> },
        value: Buffer.from(String(row.value), 'base64'),
        recordedAtMs: Number(row.recorded_at)
      }))
  }),

  reading(readRetractedImports, (seen, topic) =>
    seen
      .final('import_retraction')
      .filter((row) => row.topic === topic)
      .map(({ import_id }) => String(import_id))
  ),
  reading(readRetractions, (seen) =>
    seen.final('import_retraction').map(({ import_id, topic }) => {
      return { importId: String(import_id), topic: String(topic) }
    })
  ),
  reading(readImports, (seen, importId = '') => {
    const retractedAt = new Map(seen.final('import_retraction').map((row) => [row.import_id, Number(row.ts)]))
    const runs = seen.final('import_run').filter(({ import_id }) => importId === '' || import_id === importId)
    return runs.map(({ import_id, topic, file, ts, rows_read, published, rejected, finished }) => ({
      ...{ importId: String(import_id), topic: String(topic), file: String(file), newestMs: Number(ts) },
      ...{ rowsRead: Number(rows_read), published: Number(published), rejected: Number(rejected) },
      ...{ finished: finished === true, retractedMs: retractedAt.get(import_id) ?? 0 }
    }))
  })
]

const placeOf = (row: Row) => [row.epoch, row.partition, row.offset].map(Number)
const keyOf = (row: Row) => [row.topic, row.epoch, row.partition, row.offset].join('|')

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [n, value] of a.entries()) if (value !== b[n]) return value - (b[n] ?? 0)
  return 0
}

/** Returns the dead letters of a topic, by position. */
function waitingOf(seen: Seen, topic: string): Row[] {
  const decisions = new Map(seen.final('dead_letter_decision').map((row) => [keyOf(row), row]))
  const isWaiting = (row: Row) => {
    const { decision, decided_at } = decisions.get(keyOf(row)) ?? {}
    return decision === undefined || (decision === 'retried' && Number(decided_at) < Number(row.stored_at))
  }
  return seen
    .final('dead_letter')
    .filter((row) => row.topic === topic && isWaiting(row))
    .sort((a, b) => compare(placeOf(a), placeOf(b)))
}

function placeText({ topic, epoch, partition, offset }: Row): string {
  return `${topic}/${epoch}/${partition}/${offset}`
}
