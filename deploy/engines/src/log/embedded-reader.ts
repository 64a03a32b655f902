import { type ConsumeRequest, errorMessage, type LogRecord, pause, stallOf, stallReason } from '@gamenet/schemas'
import { unpackBatch } from './batch-codec.js'
import { batchAtOrBefore, damagedAt, extentOf, readableFrame, type Store } from './embedded-store.js'
import type { StoredRecords } from './stored-records.js'

/** Batches are read together up to about this many records. */
const READ_RECORDS = 4096
/** Maximum number of records per delivery: 512 records are 0.3 MB, which the young generation frees. */
const DELIVERY_RECORDS = 512
/** Interval of checks whether a stalled partition may continue. */
const STALL_CHECK_MS = 2000

/** Reads the topics concurrently; the first failure ends all of them. */
export async function consume(store: Store, request: ConsumeRequest): Promise<void> {
  const failing = new AbortController()
  const signal = AbortSignal.any([request.signal, failing.signal])
  const readings = [...new Set(request.topics)].map((topic) =>
    readTopic(store, topic, { ...request, signal }).catch((error: unknown) => {
      failing.abort()
      throw error
    })
  )
  const failed = (await Promise.allSettled(readings)).find((outcome) => outcome.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}

/** Reads epoch after epoch, so that a key keeps its order when it moves to another partition. */
async function readTopic(store: Store, topic: string, request: ConsumeRequest): Promise<void> {
  for (const [i, { epoch, partitions }] of store.epochs.entries()) {
    const isClosed = i < store.epochs.length - 1
    const failing = new AbortController()
    const signal = AbortSignal.any([request.signal, failing.signal])
    const readings = Array.from({ length: partitions }, (_, partition) =>
      readPartition(store, { topic, epoch, partition, isClosed }, { ...request, signal }).catch((error: unknown) => {
        failing.abort()
        throw error
      })
    )
    const failed = (await Promise.allSettled(readings)).find((outcome) => outcome.status === 'rejected')
    if (failed !== undefined) throw failed.reason
  }
}

type PartitionPlace = { topic: string; epoch: number; partition: number; isClosed: boolean }

/** Reads and unpacks the next records during the delivery of the previous ones. */
async function readPartition(store: Store, place: PartitionPlace, request: ConsumeRequest): Promise<void> {
  const { topic, epoch, partition, isClosed } = place
  const { signal } = request
  if (signal.aborted) return
  let next = await firstOffset(store, place, request)
  let ahead: Promise<Reading | 'trimmed'> | undefined
  while (!signal.aborted) {
    const received = store.channel.received()
    const reading = await (ahead ?? readFrom(store, place, next))
    ahead = undefined
    if (signal.aborted) return
    if (reading === 'trimmed') {
      next = await firstOffset(store, place, request)
      continue
    }
    if (reading.batches.length === 0) {
      if (isClosed) return
      await store.channel.wait(received, signal)
      continue
    }
    next = reading.next
    ahead = readFrom(store, place, next)
    ahead.catch(() => {
      // Handled when the loop reaches it; the running delivery has to end first.
    })
    for (const records of deliveriesOf(reading)) {
      if (signal.aborted) return
      await request.deliver({ topic, epoch, partition, records })
    }
  }
}

/** Batches in memory. The first one begins `skipped` records before the requested one. */
type Reading = { readonly batches: readonly StoredRecords[]; readonly skipped: number; readonly next: number }

/** Splits large batches and combines small ones. */
function* deliveriesOf({ batches, skipped }: Reading): Generator<LogRecord[]> {
  let records: LogRecord[] = []
  for (const [n, batch] of batches.entries()) {
    for (let from = n === 0 ? skipped : 0; from < batch.count; ) {
      const part = batch.slice(from, from + DELIVERY_RECORDS - records.length)
      from += part.length
      records.push(...part)
      if (records.length < DELIVERY_RECORDS) continue
      yield records
      records = []
    }
  }
  if (records.length > 0) yield records
}

/** Returns the offset to start from. If the log does not have it, waits until another one is requested. */
async function firstOffset(store: Store, place: PartitionPlace, request: ConsumeRequest): Promise<number> {
  const { topic, epoch, partition } = place
  const { startAt, onStall, signal } = request
  for (let stalledAt: number | undefined; ; ) {
    const wanted = await startAt(topic, epoch, partition)
    if (signal.aborted) return wanted
    store.batches.resetReadTxn()
    const extent = extentOf(store, topic, epoch, partition)
    const stall = stallOf(topic, extent, wanted)
    if (stall === undefined) return Math.max(wanted, extent.first)
    if (onStall === undefined) throw new Error(stallReason(stall, `the log at ${store.path}`))
    if (stalledAt !== wanted) onStall(stall)
    stalledAt = wanted
    await pause(STALL_CHECK_MS, signal, { ref: false })
    if (signal.aborted) return wanted
  }
}

/** Reads some thousand records from an offset; none at the head. */
async function readFrom(store: Store, place: PartitionPlace, offset: number): Promise<Reading | 'trimmed'> {
  const { topic, epoch, partition } = place
  store.batches.resetReadTxn()
  const found = batchAtOrBefore(store, topic, epoch, partition, offset)
  const from = found !== undefined && found.next > offset ? found.first : offset
  const batches: { first: number; bytes: Buffer }[] = []
  let end = from
  const range = { start: [topic, epoch, partition, from], end: [topic, epoch, partition, Number.MAX_SAFE_INTEGER] }
  for (const { key, value } of store.batches.getRange(range)) {
    if (key[3] !== end) break
    batches.push({ first: end, bytes: value })
    end += readableFrame(store.path, key, value).records
    if (end - from >= READ_RECORDS) break
  }
  if (batches.length === 0) {
    const { first, next } = extentOf(store, topic, epoch, partition)
    if (offset >= next) return { batches: [], skipped: 0, next: offset }
    if (offset < first) return 'trimmed'
    throw damagedAt(store.path, [topic, epoch, partition, offset], 'events are missing before later ones')
  }
  const unpacked = await Promise.all(
    batches.map(({ first, bytes }) =>
      unpackBatch(bytes, first).catch((error: unknown) => {
        throw damagedAt(
          store.path,
          [topic, epoch, partition, first],
          `the events cannot be read (${errorMessage(error)})`
        )
      })
    )
  )
  return { batches: unpacked, skipped: offset - from, next: end }
}
