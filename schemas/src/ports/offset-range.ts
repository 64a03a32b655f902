import type { PartitionExtent } from '../wire/log-record.js'
import type { Parameters } from './read-tables.js'

/** A range of one partition's events, half-open. */
export type OffsetRange = PartitionExtent & {
  /** If given, only these offsets of the range. */
  readonly offsets?: readonly number[]
}

/**
 * Returns the range between a checkpoint and a head, at most `eventsMax` events of it; later partitions wait for the
 * next step.
 */
export function rangeBetween(
  reached: (at: OffsetRange) => number,
  head: readonly { readonly epoch: number; readonly partition: number; readonly next: number }[],
  eventsMax: number
): OffsetRange[] {
  const range: OffsetRange[] = []
  let left = eventsMax
  for (const { epoch, partition, next } of head) {
    const first = reached({ epoch, partition, first: 0, next })
    const until = Math.min(next, first + left)
    if (first >= until) continue
    range.push({ epoch, partition, first, next: until })
    left -= until - first
  }
  return range
}

/** Returns the condition that an event `e` lies in one of the ranges, with bound values. */
export function conditionOf(range: readonly OffsetRange[]): { readonly sql: string; readonly parameters: Parameters } {
  const parameters: Record<string, unknown> = {}
  const conditions = range.map(({ epoch, partition, first, next, offsets }, n) => {
    parameters[`epoch_${n}`] = epoch
    parameters[`partition_${n}`] = partition
    parameters[`first_${n}`] = first
    parameters[`next_${n}`] = next
    if (offsets !== undefined) parameters[`offsets_${n}`] = offsets
    return (
      `(e.epoch = {epoch_${n}: UInt16} AND e.partition = {partition_${n}: UInt16}` +
      ` AND e.offset >= {first_${n}: UInt64} AND e.offset < {next_${n}: UInt64}` +
      `${offsets === undefined ? '' : ` AND e.offset IN {offsets_${n}: Array(UInt64)}`})`
    )
  })
  return { sql: `(${conditions.join(' OR ')})`, parameters }
}
