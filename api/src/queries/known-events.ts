import {
  leaderboardEntryTopic,
  leaderboardTopic,
  networkCountTopic,
  type Topic,
  titleCountTopic
} from '@gamenet/schemas'

/*
 * Events as they were known at `{knownAt}`: those that the log had taken by then, a late one if its late batch was
 * stored by then, without the imports whose undo was recorded by then. Recorded instants are compared as values:
 * those of several processes do not rise along the positions.
 */

const TOPICS = {
  network_count: networkCountTopic,
  title_count: titleCountTopic,
  leaderboard: leaderboardTopic,
  leaderboard_entry: leaderboardEntryTopic
} as const satisfies Readonly<Record<string, Topic>>

const AT = `fromUnixTimestamp64Milli({knownAt: Int64}, 'UTC')`

type Noun = keyof typeof TOPICS

/**
 * Selects columns of the known events `e` that meet a condition; an event may be selected twice. With `from`, an
 * expression of {@link firstUnknown}, of the events in the event table only those from this position on.
 */
export function knownEvents(noun: Noun, columns: string, where: string, from = '0'): string {
  const [epoch, offset] = [`bitShiftRight(${from}, 48)`, `bitAnd(${from}, 281474976710655)`]
  const all = `(
          SELECT *, l.position FROM {event_${noun}: Identifier} AS l
          WHERE l.epoch > ${epoch} OR (l.epoch = ${epoch} AND l.offset >= ${offset})
          UNION ALL SELECT *, u.position FROM undone_${noun} AS u
        )`
  return knownIn(noun, all, columns, where)
}

/** Selects columns of the known events whose import was undone later: no read table has them. */
export function knownUndone(noun: Noun, columns: string, where: string): string {
  return knownIn(noun, `undone_${noun}`, columns, where)
}

function knownIn(noun: Noun, from: string, columns: string, where: string): string {
  return `
        SELECT ${columns}
        FROM ${from} AS e
        WHERE ${where}
          AND e.recorded_at <= ${AT}
          AND (e.epoch, e.partition, e.offset) NOT IN (
            SELECT arrayJoin(b.positions) AS late FROM late_batch AS b
            WHERE b.topic = '${TOPICS[noun].name}' GROUP BY late HAVING min(b.stored_at) > ${AT}
          )
          AND (e.import_id = '' OR e.import_id NOT IN (
            SELECT r.retracted_import_id FROM {event_import_retraction: Identifier} AS r WHERE r.recorded_at <= ${AT}
          ))`
}

/**
 * Selects a position below which all events of a key, in the event table, are known; `ofKey` is the condition on the
 * key. Rows of a read table with lower positions are as they were, so they need not be computed from events.
 */
export function firstUnknown(noun: Noun, ofKey: string): string {
  return `(
        SELECT min(u.position) FROM (
          SELECT 18446744073709551615 AS position
          UNION ALL
          (
            SELECT e.position FROM {event_${noun}: Identifier} AS e WHERE ${ofKey} AND e.recorded_at > ${AT}
            ORDER BY e.epoch, e.partition, e.offset LIMIT 1
          )
          UNION ALL
          SELECT bitOr(bitShiftLeft(toUInt64(late.1), 48), late.3)
          FROM (
            SELECT arrayJoin(b.positions) AS late FROM late_batch AS b
            WHERE b.topic = '${TOPICS[noun].name}' AND b.stored_at > ${AT}
          )
        ) AS u
      )`
}
