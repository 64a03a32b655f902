import {
  boardKey,
  type ImportAdvanced,
  importRunTopic,
  instantOf,
  type LogMessage,
  leaderboardEntryTopic,
  leaderboardTopic,
  millisecondsOf,
  type NetworkCounted,
  networkCountTopic,
  type ScrapeRan,
  scrapeTopic,
  type TitleCounted,
  type TitleDescribed,
  type TitleStatusChanged,
  titleCountTopic,
  titleStatusTopic,
  titleTopic
} from '@gamenet/schemas'
import fc from 'fast-check'
import type { Tables } from '../src/index.js'
import { BoardEvent } from './board-events.js'
import { ANY_KEY, projectionOf, type RowsByTable } from './fold.js'
import type { MemoryLog } from './memory-log.js'
import { imported, message } from './pipeline.js'

const T0 = Date.UTC(2026, 2, 14, 22)
const HOUR = 3_600_000

/** Few instants in few hours of two days, so that everything collides; one of them is ten years earlier. */
const Instant = fc
  .constantFrom(0, 1, 60_000, HOUR, HOUR + 999, 3 * HOUR, 3 * HOUR + 1000, -87_600 * HOUR)
  .map((ms) => instantOf(T0 + ms))
const Count = fc.integer({ min: 0, max: 4 })
const TitleId = fc.constantFrom('4d530064', '4d530065', '00000001')
const BoardId = fc.constantFrom(7, 8)
const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined })

/** Any event of a board, with the number of its key, and as it is published in a new epoch. */
export const AnyBoardEvent = fc.tuple(TitleId, BoardId, BoardEvent).map(([titleId, leaderboardId, event]) => {
  const board = { titleId, leaderboardId }
  // A new epoch has other events: of one that was published in both, either position could count.
  const later = { changedAt: instantOf(millisecondsOf(event.changedAt) + 7) }
  return {
    topic: leaderboardEntryTopic.name,
    key: numberOf(boardKey(board)),
    message: message(leaderboardEntryTopic, { ...event, ...board }),
    inNewEpoch: message(leaderboardEntryTopic, { ...event, ...board, ...later })
  }
})

/** Any event of any topic except those about people. */
export const AnyEvent = fc.oneof(
  fc
    .record({ observedAt: Instant, registered: maybe(Count), online: maybe(Count), lobbies: maybe(Count) })
    .filter(({ registered, online, lobbies }) => [registered, online, lobbies].some((each) => each !== undefined))
    .map((event) => ({
      topic: networkCountTopic.name,
      key: 0,
      message: message(networkCountTopic, event as NetworkCounted)
    })),
  {
    arbitrary: fc
      .record({
        titleId: TitleId,
        observedAt: Instant,
        online: Count,
        sessions: maybe(Count),
        lobbyPlayers: maybe(Count),
        from: fc.constantFrom(message, imported)
      })
      .map(({ from, ...event }) => ({
        topic: titleCountTopic.name,
        key: Number.parseInt(event.titleId, 16),
        message: from(titleCountTopic, event as TitleCounted)
      })),
    weight: 3
  },
  fc
    .record({
      titleId: TitleId,
      observedAt: Instant,
      name: fc.constantFrom('A', 'ä', 'ﬁ'),
      title: maybe(fc.constantFrom('x', 'y')),
      releaseDate: maybe(fc.constantFrom('2001-01-01', '2002-02-02')),
      features: maybe(fc.constantFrom([], ['leaderboards' as const]))
    })
    .map((event) => ({
      topic: titleTopic.name,
      key: Number.parseInt(event.titleId, 16),
      message: message(titleTopic, event as TitleDescribed)
    })),
  fc
    .record({
      source: fc.constantFrom('network' as const, 'games' as const),
      observedAt: Instant,
      durationMs: Count,
      outcome: fc.constantFrom('succeeded' as const, 'failed' as const),
      published: Count,
      reason: maybe(fc.constant('why'))
    })
    .map((event) => ({
      topic: scrapeTopic.name,
      key: event.source.length,
      message: message(scrapeTopic, event as ScrapeRan)
    })),
  fc.record({ titleId: TitleId, observedAt: Instant, onNetwork: fc.boolean() }).map((event: TitleStatusChanged) => ({
    topic: titleStatusTopic.name,
    key: Number.parseInt(event.titleId, 16),
    message: message(titleStatusTopic, event)
  })),
  fc
    .record({
      importId: fc.constantFrom('a'.repeat(32), 'b'.repeat(32)),
      observedAt: Instant,
      topic: fc.constant('title-count'),
      file: fc.constant('f.csv'),
      rowsRead: Count,
      published: Count,
      rejected: Count,
      finished: fc.boolean()
    })
    .map((event) => ({
      topic: importRunTopic.name,
      key: event.importId.charCodeAt(0),
      message: message(importRunTopic, event as ImportAdvanced)
    })),
  fc
    .record({
      titleId: TitleId,
      leaderboardId: BoardId,
      observedAt: Instant,
      name: fc.constantFrom('Sprint', 'Marathon'),
      listed: fc.boolean()
    })
    .map((event) => ({
      topic: leaderboardTopic.name,
      key: numberOf(boardKey(event)),
      message: message(leaderboardTopic, event)
    })),
  { arbitrary: AnyBoardEvent, weight: 2 }
)

/** Appended to the log at once: some events, some of them twice, some unreadable ones, to one of the epochs. */
export const appendedOf = (event: fc.Arbitrary<TestEvent>, epochs: readonly number[]) =>
  fc.record({
    epoch: fc.constantFrom(...epochs),
    events: fc.array(event, { maxLength: 12 }),
    again: fc.array(fc.nat(11), { maxLength: 3 }),
    isSpoilt: fc.boolean()
  })

export type Appended = ReturnType<typeof appendedOf> extends fc.Arbitrary<infer Value> ? Value : never

export type TestEvent = {
  readonly topic: string
  readonly key: number
  readonly message: LogMessage
  readonly inNewEpoch?: LogMessage
}

/** The death of a process: its n-th call fails, before or after it took effect, and every later call. */
export const deathWithin = (calls: number) =>
  fc.record({ afterCalls: fc.integer({ min: 0, max: calls }), isDone: fc.boolean() })

/** Appends events, each to the partition of its key, after `sent` has transformed it. */
export function append(
  log: MemoryLog,
  { epoch, events, again, isSpoilt }: Appended,
  sent: (message: LogMessage) => LogMessage = (message) => message
) {
  const all = [...events, ...again.flatMap((n) => events[n] ?? [])]
  for (const { topic, key, message, inNewEpoch = message } of all) {
    const partition = key % (2 + epoch)
    if (isSpoilt) log.append(topic, [{ ...message, value: '{"no":"event"}' }], { epoch, partition })
    log.append(topic, [sent(epoch === 0 ? message : inNewEpoch)], { epoch, partition })
  }
}

/** Returns a number that depends only on the key. */
function numberOf(key: string): number {
  return [...key].reduce((sum, character) => sum + character.charCodeAt(0), 0)
}

/**
 * Throws if tables differ. If events arrived after later ones (of an older epoch, or retried), the feed of changes may have additional
 * void rows: such events move the positions at which changes were recorded.
 */
export function compare(found: RowsByTable, expected: RowsByTable, isReordered: boolean) {
  for (const [projection, rows] of expected) {
    const isPublished = ['leaderboard-change', 'leaderboard-feed'].includes(projection)
    const isTakenBack = ({ id, values }: { id: string; values: string }) =>
      isReordered && isPublished && values.startsWith('false|') && !rows.has(id)
    const lines = (model: ReadonlyMap<string, { id: string; values: string }> | undefined) =>
      [...(model?.values() ?? [])]
        .filter((each) => !isTakenBack(each))
        .map(({ id, values }) => `${id} → ${values}`)
        .sort()
    const [is, should] = [lines(found.get(projection)), lines(rows)]
    if (is.join('\n') !== should.join('\n')) {
      throw new Error(`${projection}\nfound\n  ${is.join('\n  ')}\nexpected\n  ${should.join('\n  ')}`)
    }
  }
}

/** Checks that the changes after `version` cover every row that differs from `before`. */
export async function everyChangeIsPublished(tables: Tables, found: RowsByTable, before: RowsByTable, version: number) {
  const published = await tables.rows('SELECT d.* FROM data_change AS d WHERE d.version > {version: UInt64}', {
    version
  })
  for (const [projection, rows] of found) {
    for (const { id, key, ms, values } of rows.values()) {
      if (before.get(projection)?.get(id)?.values === values) continue
      const isPublished = published.some(
        (each) =>
          each.projection === projectionOf(projection) &&
          (each.key === '*' || key === ANY_KEY || each.key === key) &&
          Number(each.from_ms) <= ms &&
          ms < Number(each.to_ms)
      )
      if (!isPublished) throw new Error(`no change was published for ${projection} ${id} (since ${version})`)
    }
  }
}
