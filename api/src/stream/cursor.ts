import { Refusal } from '@gamenet/schemas'
import { digestOf } from '../request/etag.js'

/*
 * partition id  one partition of a source in one epoch, as `epoch.partition`
 * place         the offset of the log at which a partition continues, then numbers that order the rows of one offset
 * position      a listener's place in each partition of one kind; a partition without a place, and a kind without a
 *               position, is at its start
 * cursor        the positions of a listener in all its kinds, bound to its filter. Places never move, so a cursor is
 *               valid after restarts, rebuilds and restores, in every process
 */

export type PartitionId = string
export type Place = readonly number[]
export type Position = ReadonlyMap<PartitionId, Place>

/**
 * Number of characters of the longest cursor, so that it fits into a URL: seven positions of 64 partitions in four
 * epochs, each with 60 million events.
 */
export const CURSOR_CHARACTERS_MAX = 12_000

/** The first character of a cursor. */
const MARK = '0'
const FINGERPRINT_CHARACTERS = 8

/** Epochs and partitions are UInt16 in the tables. */
const PARTITION_MAX = 65_535
const PLACE_NUMBERS_MAX = 4

/** Compares two places; a missing number counts as 0. */
export function comparePlaces(a: Place | undefined, b: Place | undefined): number {
  for (let n = 0; n < Math.max(a?.length ?? 0, b?.length ?? 0); n += 1) {
    const difference = (a?.[n] ?? 0) - (b?.[n] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

/** Returns the id of a partition of an epoch. */
export function partitionIdOf({
  epoch,
  partition
}: {
  readonly epoch: number
  readonly partition: number
}): PartitionId {
  return `${epoch}.${partition}`
}

/** Returns the epoch and the number of a partition. */
export function partsOf(partitionId: PartitionId): { readonly epoch: number; readonly partition: number } {
  const [epoch = 0, partition = 0] = partitionId.split('.').map(Number)
  return { epoch, partition }
}

/** Compares two partitions by epoch, then by partition. */
export function comparePartitionIds(a: PartitionId, b: PartitionId): number {
  const [first, second] = [partsOf(a), partsOf(b)]
  return first.epoch - second.epoch || first.partition - second.partition
}

/** Returns the text of a position inside a cursor. A partition that follows the one before it is not named. */
export function positionText(position: Position): string {
  let text = ''
  let following = ''
  for (const [partitionId, place] of position) {
    if (text !== '') text += '-'
    if (partitionId !== following) text += `${partitionId.replace('.', 'E')}P`
    text += placeText(place)
    following = nextPartition(partitionId)
  }
  return text
}

/** Returns the next partition of the same epoch. */
function nextPartition(partitionId: PartitionId): PartitionId {
  const digits = partitionId.indexOf('.') + 1
  return partitionId.slice(0, digits) + (Number(partitionId.slice(digits)) + 1)
}

function placeText(place: Place): string {
  let text = ''
  for (let n = 0; n < place.length; n += 1) text += (n === 0 ? '' : 'E') + (place[n] ?? 0).toString(36)
  return text
}

/**
 * Returns the hash that binds a cursor to a filter. Null is left out, so that parts of later versions do not change it.
 */
export function fingerprintOf(filter: object): string {
  const given = JSON.stringify(filter, (_name, value) => value ?? undefined)
  return digestOf(given, FINGERPRINT_CHARACTERS)
}

/** Returns a cursor from the texts of its positions, in the order of the filter's kinds. */
export function cursorOf(fingerprint: string, positions: readonly string[]): string {
  const text = `${MARK}${fingerprint}_${positions.join('_')}`
  return `${text}_${checksumOf(text)}`
}

/**
 * Returns the positions of a cursor, one per kind; kinds that are newer than the cursor begin at their start. Refuses a
 * broken cursor and one of another filter.
 */
export function readCursor(fingerprint: string, kinds: number, cursor: string, name?: string): Position[] {
  const text = cursor.startsWith(MARK) ? withoutChecksum(cursor) : undefined
  if (text === undefined) throw invalid('it is broken', name)
  const [given, parts] = [text.slice(1, 1 + FINGERPRINT_CHARACTERS), text.slice(2 + FINGERPRINT_CHARACTERS).split('_')]
  if (given !== fingerprint || parts.length > kinds) throw invalid('it belongs to another filter', name)
  // The position of undone imports is the last one in every version.
  const retracted = parts.pop() ?? ''
  const newer = Array.from({ length: kinds - parts.length - 1 }, () => '')
  return [...parts, ...newer, retracted].map((text) => readPosition(text, name))
}

/** Returns the text of a cursor before its checksum; undefined if a character was changed. */
function withoutChecksum(text: string): string | undefined {
  const end = text.lastIndexOf('_')
  return text.slice(end + 1) === checksumOf(text.slice(0, end)) ? text.slice(0, end) : undefined
}

function readPosition(text: string, name: string | undefined): Position {
  const position = new Map<PartitionId, Place>()
  if (text === '') return position
  let following = ''
  for (const part of text.split('-')) {
    const match = /^(?:(\d+)E(\d+)P)?([0-9a-z]+(?:E[0-9a-z]+)*)$/.exec(part)
    if (match === null) throw invalid('it is broken', name)
    const [, epochText, partitionText, numbers = ''] = match
    const partitionId = epochText === undefined ? following : `${epochText}.${partitionText}`
    const place = numbers.split('E').map((number) => Number.parseInt(number, 36))
    const { epoch, partition } = partsOf(partitionId)
    const isPossible =
      partitionId !== '' &&
      Math.max(epoch, partition) <= PARTITION_MAX &&
      place.length <= PLACE_NUMBERS_MAX &&
      place.every(Number.isSafeInteger)
    if (!isPossible) throw invalid('it is broken', name)
    position.set(partitionId, place)
    following = nextPartition(partitionId)
  }
  return position
}

/** Returns the refusal of a cursor, by the name of its parameter or header. */
export const invalid = (reason: string, name = 'after'): Refusal => new Refusal('cursor_invalid', [name, reason])

/** FNV-1a, 32 bits, against accidents. A cursor needs no signature: it only says where to begin. */
function checksumOf(text: string): string {
  let hash = 0x811c9dc5
  for (let n = 0; n < text.length; n += 1) hash = Math.imul(hash ^ text.charCodeAt(n), 0x01000193)
  return (hash >>> 0).toString(36)
}
