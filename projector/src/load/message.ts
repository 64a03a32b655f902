import type { PartitionExtent, StalledPartition } from '@gamenet/schemas'
import type { RowBlock } from '../rows/row-writer.js'
import type { Progress } from '../store/checkpoint.js'

/*
 * Messages between the loader's two sides. The reading side (a worker thread) reads the log, validates and builds rows.
 * The storing side (the main thread) only passes bytes to the engine, and has the checkpoints and the seal keys. A
 * batch costs one of two credits: one batch is being stored while the next is built, and no more waits.
 */

/** Either end of a channel: a `Worker`, a `MessagePort` or `parentPort`. */
export type LoaderPort = {
  postMessage(message: unknown, transfer?: ArrayBuffer[]): void
  on(event: 'message', listener: (message: unknown) => void): unknown
}

/** Rows of one topic and the positions that they cover, dead letters included. Not stored yet. */
export type RowBatch = {
  readonly topic: string
  readonly events: RowBlock
  readonly deadLetters: RowBlock
  /** Number of events about erased people, which cannot be decrypted. */
  readonly passedOver: number
  /** Imports that published some of the events. */
  readonly imports: readonly string[]
  /** People whose keys decrypted the events. */
  readonly people: readonly number[]
  readonly progress: readonly Progress[]
}

export type FromReader =
  /** `isLast`: the log had delivered nothing for a while when the batch was sent. */
  | { readonly kind: 'batch'; readonly batch: RowBatch; readonly isLast: boolean }
  | { readonly kind: 'start-at'; readonly id: number; readonly topic: string; epoch: number; partition: number }
  /** Requests the seal keys of the subjects of the topic's events. */
  | { readonly kind: 'seal-keys'; readonly id: number; readonly topic: string; readonly people: readonly number[] }
  | { readonly kind: 'extents'; readonly id: number; readonly extents: readonly PartitionExtent[] }
  | { readonly kind: 'extents-failed'; readonly id: number; readonly reason: string }
  /** Reading failed and will be retried; null: it continues. */
  | { readonly kind: 'trouble'; readonly reason: string | null }
  /** A partition is stalled until an operator decides. */
  | { readonly kind: 'stalled'; readonly stalled: StalledPartition }
  /** The number of partitions of each topic that the consumer group assigned to this reader. */
  | { readonly kind: 'assigned'; readonly partitions: ReadonlyMap<string, number> }
  /** The reader of the log failed or was stuck, and was replaced. */
  | { readonly kind: 'replaced'; readonly reason: string }
  /** The log refused a commit. Harmless: our own checkpoints decide. */
  | { readonly kind: 'commit-failed'; readonly topic: string; readonly reason: string }
  | { readonly kind: 'stopped' }

export type ToReader =
  | { readonly kind: 'stored'; readonly topic: string; readonly progress: readonly Progress[] }
  | { readonly kind: 'start-at'; readonly id: number; readonly next: number }
  /** The existing keys; deleted ones are missing. */
  | { readonly kind: 'seal-keys'; readonly id: number; readonly keys: ReadonlyMap<number, Uint8Array> }
  | { readonly kind: 'extents'; readonly id: number; readonly topic: string }
  | { readonly kind: 'stop' }
