import { createHash } from 'node:crypto'
import { Refusal } from '@gamenet/schemas'
import { z } from 'zod'
import type { FeedPlace } from '../../queries/leaderboard-change.js'

/*
 * cursor   how far a caller has come: per partition of the feed the place that follows what was given. As text: base64url
 *          of JSON. Positions never move, so a cursor outlives rebuilds, restores and restarts, in every process
 * lane     one partition of the feed in one epoch
 */

/** How far a caller has come in one lane. */
export type LanePlace = {
  readonly lane: { readonly epoch: number; readonly partition: number }
  readonly place: FeedPlace
}

const FINGERPRINT_CHARACTERS = 8
/** A lane takes about 30 characters; a log of 64 partitions in a few epochs fits. */
export const CURSOR_CHARACTERS_MAX = 12_000

const Whole = z.int().nonnegative()
const Places = z.array(z.tuple([Whole, Whole, Whole, Whole, Whole, Whole]))

/** The text of a cursor, bound to the filter that it was made for. */
export function cursorText(filter: object, lanes: readonly LanePlace[]): string {
  const places = lanes.map(({ lane, place }) => [
    lane.epoch,
    lane.partition,
    place.recordedOffset,
    place.epoch,
    place.partition,
    place.offset
  ])
  return boundText(filter, places)
}

/** What a cursor says. Refuses one that is broken, and one of another filter. */
export function readCursor(filter: object, text: string): LanePlace[] {
  return readBoundText(filter, text, Places).map(
    ([laneEpoch, lanePartition, recordedOffset, epoch, partition, offset]) => ({
      lane: { epoch: laneEpoch, partition: lanePartition },
      place: { recordedOffset, epoch, partition, offset }
    })
  )
}

/** A place as the text of a cursor that is bound to a filter. */
export function boundText(filter: object, place: readonly unknown[]): string {
  return textOf(digestOf(filter), place)
}

/** The place that the text of a cursor gives. Refuses one that is broken, and one of another filter. */
export function readBoundText<Place extends readonly unknown[]>(
  filter: object,
  text: string,
  place: z.ZodType<Place>
): Place {
  const decoded = z.tuple([z.string(), z.string(), place]).safeParse(jsonOf(text))
  // Written again it must be the same: a cursor has one spelling, and the digest in it tells every changed digit.
  if (!decoded.success || textOf(decoded.data[0], decoded.data[2]) !== text) {
    throw new Refusal('cursor_invalid', ['it is broken'])
  }
  if (decoded.data[0] !== digestOf(filter)) throw new Refusal('cursor_invalid', ['it was given for another filter'])
  return decoded.data[2]
}

function textOf(fingerprint: string, place: readonly unknown[]): string {
  const json = JSON.stringify([fingerprint, digestOf([fingerprint, place]), place])
  return Buffer.from(json).toString('base64url')
}

function digestOf(value: object): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url').slice(0, FINGERPRINT_CHARACTERS)
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
  } catch {
    return undefined
  }
}
