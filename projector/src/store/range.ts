import { type LogPosition, type OffsetRange, rangeBetween } from '@gamenet/schemas'

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

/** Divides a range without single offsets into two of about equal length; one of a single event into itself. */
export function halvesOf(range: Range): Range[] {
  const inRange = (ranges: Range, { epoch, partition }: OffsetRange) =>
    ranges.find((each) => each.epoch === epoch && each.partition === partition)
  const half = rangeBetween((at) => inRange(range, at)?.first ?? 0, range, Math.ceil(lengthOf(range) / 2))
  const rest = rangeBetween((at) => inRange(half, at)?.next ?? inRange(range, at)?.first ?? 0, range, Infinity)
  return [half, rest].filter(({ length }) => length > 0)
}
