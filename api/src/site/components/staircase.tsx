import type { LeaderboardRecords } from '@gamenet/schemas'
import { measureText } from './records.js'
import { linePath, type Point } from './series.js'
import { dayText, msOf } from './text.js'

/** The record of a board over time as steps, from the oldest to the newest. */
export function Staircase({ records }: { records: LeaderboardRecords['records'] }) {
  const [first, last] = [records[0], records.at(-1)]
  if (first === undefined || last === undefined || records.length < 2) return null
  const valueAt = ({ isTime, timeMs, rating }: (typeof records)[number]) => (isTime ? (timeMs ?? 0) : Number(rating))
  const values = records.map(valueAt)
  if (values.some((value) => Number.isNaN(value))) return null
  const [low, high] = [Math.min(...values), Math.max(...values)]
  const points = records.map((record): Point => [msOf(record.fromAt), valueAt(record) - low])
  // The last record reaches a twentieth of the span further, to be seen.
  const [fromMs, lastMs] = [msOf(first.fromAt), msOf(last.fromAt)]
  const box = {
    fromMs,
    toMs: lastMs + Math.max(1, (lastMs - fromMs) / 20),
    max: Math.max(1, high - low),
    width: 600,
    height: 100
  }
  const textOf = (record: typeof first) => measureText(record.rating, record.timeMs, record.isTime)
  return (
    <figure>
      <svg
        class="steps"
        viewBox="-4 -8 608 116"
        role="img"
        aria-label={`Record from ${textOf(first)} to ${textOf(last)}`}
      >
        <path class="line line-1" d={linePath(points, box, true)} />
      </svg>
      <figcaption class="ticks">
        <span>
          {dayText(first.fromAt)}: {textOf(first)}
        </span>
        <span>
          {dayText(last.fromAt)}: {textOf(last)}
        </span>
      </figcaption>
    </figure>
  )
}
