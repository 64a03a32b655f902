import type { LogMessage, PartitionExtent } from '@gamenet/schemas'

/** All that publishing asks of a log. */
export type Log = {
  /**
   * Resolves when the log has stored all messages durably, in their order per key. On an error none or some of them
   * may have been written; appending them again is safe, since readers know an event by its id and key.
   */
  append(topic: string, messages: readonly LogMessage[]): Promise<void>
}

/** What those ask of a log who must know whether what it holds was read. */
export type LogExtents = {
  /** Every partition that the topic has, in all its epochs; an append that resolved lies before `next`. */
  extents(topic: string): Promise<readonly PartitionExtent[]>
}
