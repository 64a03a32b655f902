import { loadCheckpoint, projectionCheckpoint, rangeBetween } from '@gamenet/schemas'
import type { Checkpoints } from '../store/checkpoint.js'
import type { Projection } from '../store/projection.js'
import { lengthOf, type Range } from '../store/range.js'

/*
 * What a pass does, as pure functions of the checkpoints.
 * turn   the projections whose steps are announced together
 */

/**
 * Maximum number of events per step, by form: limits its time (about 10 s) and memory; a longer backlog takes several
 * steps.
 */
const STEP_EVENTS_MAX = { sql: 5_000_000, fold: 500_000 }
/** A topic with a longer backlog has a turn of its own, after those before it were announced. */
const TURN_EVENTS_MAX = 50_000

/** Returns the turns of a pass: small backlogs first. */
export function turnsOf(projections: readonly Projection[], checkpoints: Checkpoints): readonly Projection[][] {
  const lengths = new Map<string, number>()
  for (const each of projections)
    lengths.set(each.from.name, Math.max(lagOf(each, checkpoints), lengths.get(each.from.name) ?? 0))
  const lengthOfTopic = ({ from }: Projection) => lengths.get(from.name) ?? 0
  const turns: Projection[][] = []
  let last: Projection | undefined
  for (const each of projections.toSorted((a, b) => lengthOfTopic(a) - lengthOfTopic(b))) {
    const isNextTopic = each.from.name !== last?.from.name
    const turn = isNextTopic && lengthOfTopic(each) > TURN_EVENTS_MAX ? undefined : turns.at(-1)
    if (turn === undefined) turns.push([each])
    else turn.push(each)
    last = each
  }
  return turns
}

/** Returns the next range of a projection, and whether it is as long as a step may be, so that more may follow. */
export function nextRange(projection: Projection, checkpoints: Checkpoints): { range: Range; isFull: boolean } {
  const eventsMax = STEP_EVENTS_MAX[projection.form ?? 'sql']
  const range = rangeOf(projection, checkpoints, eventsMax)
  return { range, isFull: lengthOf(range) >= eventsMax }
}

/** True if a projection has consumed everything that it may. */
export function hasConsumedAll(projection: Projection, checkpoints: Checkpoints): boolean {
  return rangeOf(projection, checkpoints, 1).length === 0
}

/** Returns the number of loaded offsets that a projection has not consumed. */
export function lagOf({ name, from }: Projection, checkpoints: Checkpoints): number {
  const reached = reachedBy(name, checkpoints)
  return lengthOf(rangeBetween(reached, checkpoints.of(loadCheckpoint(from.name)), Number.MAX_SAFE_INTEGER))
}

/** A projection after another one consumes no more than that one has. */
function rangeOf({ name, after, from }: Projection, checkpoints: Checkpoints, eventsMax: number): Range {
  const before = after === undefined ? loadCheckpoint(from.name) : projectionCheckpoint(after)
  return rangeBetween(reachedBy(name, checkpoints), checkpoints.of(before), eventsMax)
}

const reachedBy = (projection: string, checkpoints: Checkpoints) => (at: { epoch: number; partition: number }) =>
  checkpoints.next(projectionCheckpoint(projection), at.epoch, at.partition)
