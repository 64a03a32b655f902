import type { LogPosition, OffsetRange } from '@gamenet/schemas'

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

/** Returns the number of offsets in the range, an upper bound of its events. */
export function lengthOf(range: Range): number {
  return range.reduce((sum, { first, next, offsets }) => sum + (offsets?.length ?? next - first), 0)
}
