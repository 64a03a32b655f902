import { randomUUID } from 'node:crypto'
import type { LogBatch, LogRecord, PartitionExtent, StalledPartition } from '@gamenet/schemas'
import { FailureError } from '../config.js'
import type { LogChoice, OpenLog } from './log.js'

/** Longest wait for the next records; a log that lost records would never reach its end. */
const SILENCE_MS_MAX = 60_000

export type ReadStored = {
  readonly topics: readonly string[]
  /** The first offset to read in a partition; absent: the first that is stored. */
  readonly startOf?: (topic: string, extent: PartitionExtent) => number
  /** Nothing is read if there are more; absent: no limit. */
  readonly eventsMax?: number
  readonly signal?: AbortSignal
  /** Called with each batch in turn and with the number of events that the topic has to read. */
  readonly take: (batch: LogBatch, eventsTotal: number) => Promise<void> | void
  /**
   * Called for a partition of Kafka with a damaged batch; the others are read to their ends. Absent: the call rejects.
   */
  readonly onDamage?: (stall: StalledPartition, damage: string) => void
}

/**
 * Reads the records that the log has at the call. Rejects with a `FailureError` if it ends earlier, and when `signal`
 * aborts. Of Kafka it reads in a consumer group of its own (in the group of the projectors, each partition is read by
 * one of them), which takes some seconds, and only if there is anything to read.
 */
export async function readStored(
  { log, logChoice }: { readonly log: Pick<OpenLog, 'consume' | 'extents'>; readonly logChoice: LogChoice },
  { topics, startOf, eventsMax = Number.POSITIVE_INFINITY, signal, take, onDamage }: ReadStored
): Promise<void> {
  const keyOf = (topic: string, { epoch, partition }: { readonly epoch: number; readonly partition: number }) =>
    `${topic}/${epoch}/${partition}`
  const starts = new Map<string, number>()
  const ends = new Map<string, number>()
  const totals = new Map<string, number>()
  for (const topic of topics)
    for (const extent of await log.extents(topic)) {
      const { first, next } = extent
      const start = Math.min(Math.max(startOf?.(topic, extent) ?? first, first), next)
      starts.set(keyOf(topic, extent), start)
      if (start === next) continue
      ends.set(keyOf(topic, extent), next)
      totals.set(topic, (totals.get(topic) ?? 0) + next - start)
    }
  if (ends.size === 0) return
  const events = [...totals.values()].reduce((sum, each) => sum + each, 0)
  if (events > eventsMax)
    throw new FailureError(`${events} events are not in the tables, more than ${eventsMax} to read.`)
  const { openLog } = await import('./log.js')
  const own =
    logChoice.engine === 'kafka'
      ? await openLog(logChoice, 'reader', { group: `reader-${randomUUID()}`, isReading: true })
      : undefined
  const done = new AbortController()
  const silence = setTimeout(
    () =>
      done.abort(
        new FailureError(
          `${[...totals.keys()].join(', ')} had no event for a minute before the end that the log states.`
        )
      ),
    SILENCE_MS_MAX
  )
  const finish = (key: string) => {
    ends.delete(key)
    if (ends.size === 0) done.abort()
  }
  const onStall = (stall: StalledPartition) => {
    const key = keyOf(stall.topic, stall)
    // Retention passed the place of the reader, which continues with the oldest event.
    if (stall.damage === undefined) starts.set(key, 0)
    else if (ends.has(key)) {
      // The reader asks for this place repeatedly.
      starts.set(key, stall.wanted)
      onDamage?.(stall, stall.damage)
      finish(key)
    }
  }
  try {
    await (own ?? log).consume({
      topics: [...totals.keys()],
      startAt: async (topic, epoch, partition) => starts.get(keyOf(topic, { epoch, partition })) ?? 0,
      deliver: async (batch) => {
        const key = keyOf(batch.topic, batch)
        const end = ends.get(key)
        if (end === undefined) return
        silence.refresh()
        const records = batch.records.filter(({ offset }) => offset < end)
        await take({ ...batch, records }, totals.get(batch.topic) ?? 0)
        if ((batch.next ?? (batch.records.at(-1)?.offset ?? 0) + 1) >= end) finish(key)
      },
      onStall: onDamage && onStall,
      signal: signal === undefined ? done.signal : AbortSignal.any([signal, done.signal])
    })
    signal?.throwIfAborted()
    if (done.signal.reason instanceof FailureError) throw done.signal.reason
  } finally {
    clearTimeout(silence)
    await own?.close()
  }
}

/** Splits records where offsets are missing: compaction deletes some, and transactions have control records. */
export function runsOf(records: readonly LogRecord[]): [LogRecord, ...LogRecord[]][] {
  const runs: [LogRecord, ...LogRecord[]][] = []
  for (const record of records) {
    const run = runs.at(-1)
    if (run !== undefined && run[0].offset + run.length === record.offset) run.push(record)
    else runs.push([record])
  }
  return runs
}
