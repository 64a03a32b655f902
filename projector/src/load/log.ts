import type { ConsumeRequest, PartitionExtent } from '@gamenet/schemas'

/** What the loader asks of a log. */
export type LogReader = {
  /** All partitions of the topic. A topic that does not exist yet has none. */
  extents(topic: string): Promise<readonly PartitionExtent[]>
  /**
   * Delivers the records of the partitions that this process is responsible for, in offset order per partition, and
   * continues with later appends, until `signal` aborts (then it resolves). `startAt` is asked once for every
   * partition that the process becomes responsible for and gives the first offset wanted. The next batch of a
   * partition is not delivered before `deliver` has resolved for the one before; that is the back pressure.
   *
   * A partition stalls when the log lacks the wanted offsets: `onStall` is told, `startAt` is asked again every few
   * seconds until it names something that the log has, and everything else goes on. Without `onStall` it rejects.
   */
  consume(request: ConsumeRequest): Promise<void>
  /** Tells the log that everything below `next` is stored. Only for the log's own lag figures; our checkpoints decide. */
  commit(topic: string, position: { epoch: number; partition: number; next: number }): Promise<void>
}
