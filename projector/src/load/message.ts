import type { PartitionExtent, StalledPartition } from '@gamenet/schemas'
import type { Progress } from '../store/checkpoint.js'

/*
 * What the loader's two sides tell each other. The reading side (a worker thread) reads the log, judges and builds rows; the
 * storing side (the main thread) only hands bytes to the engine, and knows the checkpoints and the seal keys. A batch costs a credit, of which there are two:
 * one batch is being stored while the next is built, and no more than that waits.
 */

/** Either end of a channel: a `Worker`, a `MessagePort` or `parentPort`. */
export type LoaderPort = {
  postMessage(message: unknown, transfer?: ArrayBuffer[]): void
  on(event: 'message', listener: (message: unknown) => void): unknown
}

/** Lines of JSONCompactEachRow for one table. */
export type RowLines = { readonly rows: number; readonly body: Uint8Array<ArrayBuffer> }

/** Rows of one topic and how far they reach. Not stored yet, dead letters included. */
export type RowBatch = {
  readonly topic: string
  readonly events: RowLines
  readonly deadLetters: RowLines
  /** Events about people who were forgotten: nobody can open them. */
  readonly passedOver: number
  /** Imports that some of the events are of. */
  readonly imports: readonly string[]
  /** By whose keys the events were opened. */
  readonly people: readonly number[]
  readonly progress: readonly Progress[]
}

export type FromReader =
  | { readonly kind: 'batch'; readonly batch: RowBatch }
  | { readonly kind: 'start-at'; readonly id: number; readonly topic: string; epoch: number; partition: number }
  /** Requests the seal keys of the subjects of the topic's events. */
  | { readonly kind: 'seal-keys'; readonly id: number; readonly topic: string; readonly people: readonly number[] }
  | { readonly kind: 'extents'; readonly id: number; readonly extents: readonly PartitionExtent[] }
  | { readonly kind: 'extents-failed'; readonly id: number; readonly reason: string }
  /** Reading failed and will be tried again; null: it goes on. */
  | { readonly kind: 'trouble'; readonly reason: string | null }
  /** A partition stands still until an operator decides. */
  | { readonly kind: 'stalled'; readonly stalled: StalledPartition }
  /** What read the log failed or stood still, and was replaced. */
  | { readonly kind: 'replaced'; readonly reason: string }
  /** The log did not take a commit. Harmless: our own checkpoints decide. */
  | { readonly kind: 'commit-failed'; readonly topic: string; readonly reason: string }
  | { readonly kind: 'stopped' }

export type ToReader =
  | { readonly kind: 'stored'; readonly topic: string; readonly progress: readonly Progress[] }
  | { readonly kind: 'start-at'; readonly id: number; readonly next: number }
  /** The keys that there are; those that were thrown away are missing. */
  | { readonly kind: 'seal-keys'; readonly id: number; readonly keys: ReadonlyMap<number, Uint8Array> }
  | { readonly kind: 'extents'; readonly id: number; readonly topic: string }
  | { readonly kind: 'stop' }
