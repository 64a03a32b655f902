import type { LogPosition, OffsetRange } from '@gamenet/schemas'
import type { Progress } from '../store/checkpoint.js'

/** Ranges of a topic's partitions, at most one per partition. */
export type Range = readonly OffsetRange[]

/** Returns the range with exactly these positions. */
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

/**
 * Returns the range between a checkpoint and a head, at most `eventsMax` events of it; later partitions wait for the
 * next step.
 */
export function rangeBetween(
  reached: (at: OffsetRange) => number,
  head: readonly Progress[],
  eventsMax: number
): Range {
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

/** Returns the number of offsets in the range, an upper bound of its events. */
export function lengthOf(range: Range): number {
  return range.reduce((sum, { first, next, offsets }) => sum + (offsets?.length ?? next - first), 0)
}
