import { parseJson, Refusal } from '@gamenet/schemas'
import { z } from 'zod'
import type { FeedPlace } from '../queries/leaderboard-change.js'
import { digestOf } from './etag.js'

/*
 * cursor   the progress of a client: the next place per partition of the feed, as base64url of JSON. Positions never
 *          change, so a cursor stays valid after rebuilds, restores and restarts, in every process
 */

/** The progress of a client in one partition of the feed. */
export type PartitionPlace = {
  readonly at: { readonly epoch: number; readonly partition: number }
  readonly place: FeedPlace
}

const FINGERPRINT_CHARACTERS = 8
/** A place takes about 30 characters; a log of 64 partitions in a few epochs fits. */
export const CURSOR_CHARACTERS_MAX = 12_000

const Whole = z.int().nonnegative()
const Places = z.array(z.tuple([Whole, Whole, Whole, Whole, Whole, Whole]))

/** Returns the text of a cursor, bound to its filter. */
export function cursorText(filter: object, places: readonly PartitionPlace[]): string {
  const numbers = places.map(({ at, place }) => [
    at.epoch,
    at.partition,
    place.recordedOffset,
    place.epoch,
    place.partition,
    place.offset
  ])
  return boundText(filter, numbers)
}

/** Parses a cursor. Refuses a malformed one and one of another filter. */
export function readCursor(filter: object, text: string): PartitionPlace[] {
  return readBoundText(filter, text, Places).map(
    ([atEpoch, atPartition, recordedOffset, epoch, partition, offset]) => ({
      at: { epoch: atEpoch, partition: atPartition },
      place: { recordedOffset, epoch, partition, offset }
    })
  )
}

/** Returns the text of a cursor with one place, bound to a filter. */
export const boundText = (filter: object, place: readonly unknown[]): string => textOf(fingerprintOf(filter), place)

/** Parses the place of a cursor. Refuses a malformed one and one of another filter. */
export function readBoundText<Place extends readonly unknown[]>(
  filter: object,
  text: string,
  place: z.ZodType<Place>
): Place {
  const decoded = z
    .tuple([z.string(), z.string(), place])
    .safeParse(parseJson(Buffer.from(text, 'base64url').toString('utf8')))
  // A cursor has exactly one spelling, and its digest detects every changed character.
  if (!decoded.success || textOf(decoded.data[0], decoded.data[2]) !== text) {
    throw new Refusal('cursor_invalid', ['after', 'it is broken'])
  }
  if (decoded.data[0] !== fingerprintOf(filter))
    throw new Refusal('cursor_invalid', ['after', 'it belongs to another filter'])
  return decoded.data[2]
}

function textOf(fingerprint: string, place: readonly unknown[]): string {
  const json = JSON.stringify([fingerprint, fingerprintOf([fingerprint, place]), place])
  return Buffer.from(json).toString('base64url')
}

const fingerprintOf = (value: object): string => digestOf(JSON.stringify(value), FINGERPRINT_CHARACTERS)
