/** What is appended to a topic of the log. */
export type LogMessage = {
  readonly key: string
  readonly headers: Readonly<Record<string, string>>
  /** JSON text. */
  readonly value: string
}

/** A place in a topic. `epoch` is 0 to 65535, `offset` below 2^48. */
export type LogPosition = { readonly epoch: number; readonly partition: number; readonly offset: number }

/** What reading a topic gives: bytes as they stand in the log, nothing judged yet. */
export type LogRecord = {
  readonly offset: number
  readonly key: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly value: string | Uint8Array | null
}

/** Consecutive records of one partition, offsets rising (gaps are possible: Kafka has control records). */
export type LogBatch = {
  readonly topic: string
  readonly epoch: number
  readonly partition: number
  readonly records: readonly LogRecord[]
}

/** One partition's extent: `first` is the oldest offset still held, `next` the one that the next append gets. */
export type PartitionExtent = {
  readonly epoch: number
  readonly partition: number
  readonly first: number
  readonly next: number
}
