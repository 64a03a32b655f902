/** A message to append to a topic of the log. */
export type LogMessage = {
  readonly key: string
  readonly headers: Readonly<Record<string, string>>
  /** JSON text. */
  readonly value: string
}

/** A position in a topic. `epoch` is 0 to 65535, `offset` below 2^48. */
export type LogPosition = { readonly epoch: number; readonly partition: number; readonly offset: number }

/** A record of a topic: the bytes in the log, not validated. */
export type LogRecord = {
  readonly offset: number
  readonly key: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly value: string | Uint8Array | null
  /** When the log took the record, in milliseconds since 1970; absent if the log does not know. */
  readonly recordedAtMs?: number | undefined
  /** Why the record is not a valid message, such as a header without a value. */
  readonly fault?: string | undefined
}

/** Consecutive records of one partition, offsets rising (gaps are possible: Kafka has control records). */
export type LogBatch = {
  readonly topic: string
  readonly epoch: number
  readonly partition: number
  readonly records: readonly LogRecord[]
  /** The offset after the batch, if control records follow the last record: no reader gets these. */
  readonly next?: number
}

/** One partition's extent: `first` is the oldest stored offset, `next` the offset of the next append. */
export type PartitionExtent = {
  readonly epoch: number
  readonly partition: number
  readonly first: number
  readonly next: number
}

/** Ends of a topic's partitions: all events before `next`. */
export type Heads = readonly { readonly epoch: number; readonly partition: number; readonly next: number }[]

/** Reports the ends of the log, to compare them with what has been read. */
export type LogExtents = {
  /** Returns every partition of the topic in all epochs. A resolved append lies before `next`. */
  extents(topic: string): Promise<readonly PartitionExtent[]>
}

/** Reads the current ends of a topic's partitions, without empty ones. */
export const headsOf = async (log: LogExtents, topic: string): Promise<Heads> => headsIn(await log.extents(topic))

/** Returns the ends of partitions, without empty ones. */
export function headsIn(extents: readonly PartitionExtent[]): Heads {
  return extents
    .filter(({ first, next }) => first < next)
    .map(({ epoch, partition, next }) => ({ epoch, partition, next }))
}

/**
 * A partition that cannot be read from its checkpoint: `wanted` is before `first`, or after `next`, or in a damaged
 * batch.
 */
export type StalledPartition = PartitionExtent & {
  readonly topic: string
  readonly wanted: number
  /** Why the batch cannot be read; absent if the log does not have the offset. */
  readonly damage?: string
}

/** Where a reader of a log starts, and the consumer of its records. */
export type ConsumeRequest = {
  readonly topics: readonly string[]
  startAt(topic: string, epoch: number, partition: number): Promise<number>
  deliver(batch: LogBatch): Promise<void>
  /** Called when a partition stalls. */
  readonly onStall?: ((stall: StalledPartition) => void) | undefined
  /**
   * Called with the number of partitions of each topic when a group assigns them; a topic without any may be missing.
   */
  readonly onAssigned?: ((partitions: ReadonlyMap<string, number>) => void) | undefined
  readonly signal: AbortSignal
}

/** Returns the stall of a partition, or undefined if reading can start at the offset; 0 means the oldest stored one. */
export function stallOf(topic: string, extent: PartitionExtent, wanted: number): StalledPartition | undefined {
  const isHeld = wanted <= extent.next && (wanted === 0 || wanted >= extent.first)
  return isHeld ? undefined : { topic, ...extent, wanted }
}

/** Returns why a stalled partition cannot be read, and how to resolve it. */
export function stallReason(
  { topic, epoch, partition, first, next, wanted, damage }: StalledPartition,
  log: string
): string {
  const name = `${topic}, epoch ${epoch}, partition ${partition}`
  if (damage !== undefined) return `${name} of ${log} cannot be read from offset ${wanted} on: ${damage}`
  if (wanted < first)
    return `offsets ${wanted} to ${first - 1} of ${name} are no longer in ${log}: its retention passed them`
  return (
    `${name} of ${log} ends before offset ${next}, expected ${wanted}: ` +
    'it was recreated or restored from an older copy; raise the epoch'
  )
}
