import type { LogPosition, Parameters } from '@gamenet/schemas'
import type { Progress } from '../store/checkpoint.js'

/** A stretch of one partition's events, half-open. */
export type Stretch = {
  readonly epoch: number
  readonly partition: number
  readonly first: number
  readonly next: number
  /** These of the stretch alone; all of them unless given. */
  readonly offsets?: readonly number[]
}

/** Stretches of a topic, at most one a partition. */
export type Range = readonly Stretch[]

/** The range of these very positions. */
export function rangeOf(positions: readonly LogPosition[]): Range {
  const byPartition = new Map<string, { epoch: number; partition: number; offsets: number[] }>()
  for (const { epoch, partition, offset } of positions) {
    const key = `${epoch}/${partition}`
    const stretch = byPartition.get(key) ?? { epoch, partition, offsets: [] }
    byPartition.set(key, stretch)
    stretch.offsets.push(offset)
  }
  return [...byPartition.values()].map(({ epoch, partition, offsets }) => {
    const sorted = offsets.toSorted((a, b) => a - b)
    return { epoch, partition, first: sorted[0] ?? 0, next: (sorted.at(-1) ?? -1) + 1, offsets: sorted }
  })
}

/** What lies between a checkpoint and a head, at most `eventsMax` of it; the later partitions wait for the next step. */
export function rangeBetween(reached: (at: Stretch) => number, head: readonly Progress[], eventsMax: number): Range {
  const range: Stretch[] = []
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

/** Offsets in the range; the most events that it can hold. */
export function lengthOf(range: Range): number {
  return range.reduce((sum, { first, next, offsets }) => sum + (offsets?.length ?? next - first), 0)
}

/** The condition that an event `e` lies in the range, with its values bound. */
export function conditionOf(range: Range): { readonly sql: string; readonly parameters: Parameters } {
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
