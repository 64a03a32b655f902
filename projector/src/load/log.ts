import type { ConsumeRequest, PartitionExtent } from '@gamenet/schemas'

/** The part of a log that the loader needs. */
export type LogReader = {
  /** Returns all partitions of the topic; none for a topic that does not exist yet. */
  extents(topic: string): Promise<readonly PartitionExtent[]>
  /**
   * Delivers the records of this process's partitions, in offset order per partition, and continues with later appends
   * until `signal` aborts; then it resolves. `startAt` is called once per partition that is assigned to the process and
   * returns the first offset. The next batch of a partition is not delivered before `deliver` has resolved for the
   * previous one: that is the back pressure.
   *
   * A partition stalls when the log lacks the requested offsets: `onStall` is called, `startAt` is polled every few
   * seconds until it returns a stored offset, and all other partitions continue. Without `onStall` it rejects.
   */
  consume(request: ConsumeRequest): Promise<void>
  /**
   * Reports to the log that everything below `next` is stored. Only for the log's own lag figures; our checkpoints
   * determine where reading starts.
   */
  commit(topic: string, position: { epoch: number; partition: number; next: number }): Promise<void>
}
