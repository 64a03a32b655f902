import type { Range } from '@gamenet/projector/internals'
import type { Row } from './replacing-table.js'

/** The input of a projection's statement: the events of its topic, and the current tables. */
export type Facts = {
  /** The events of the range, including duplicates. */
  readonly events: readonly Row[]
  /** Returns the rows of a table as with FINAL. */
  final(table: string): readonly Row[]
}

/** A projection of form `sql` as a plain function: the rows that its statement inserts. */
export type PlainFold = (facts: Facts) => Row[]

export const HOUR_MS = 3_600_000

/** The SQL projections that the simulator runs, by name. A test compares them with the SQL on ClickHouse. */
export const plainFolds: Readonly<Record<string, PlainFold>> = {
  'title-count': ({ events }) =>
    events.map(({ title_id, observed_at: ts, online, sessions, lobby_players, position }) => {
      return { title_id, ts, online, sessions, lobby_players, position }
    }),
  'title-count-hour': ({ events, final }) => {
    const touched = new Set(events.map((event) => bucketOf(event.title_id, Number(event.observed_at))))
    const buckets = new Map<string, Row[]>()
    for (const row of final('title_count')) {
      const bucket = bucketOf(row.title_id, Number(row.ts))
      if (touched.has(bucket)) buckets.set(bucket, [...(buckets.get(bucket) ?? []), row])
    }
    return [...buckets.values()].map(hourOf)
  },
  'title-latest': ({ events }) =>
    newestOf(events, (event) => `${event.import_id !== ''}|${event.title_id}`).map(latestOf),
  leaderboard: ({ events }) =>
    events.map(({ title_id, leaderboard_id, observed_at: ts, name, listed, position }) => {
      return { title_id, leaderboard_id, ts, name, listed, position }
    }),
  'leaderboard-history': ({ events }) => events.map(stateOf),
  'import-run': ({ events }) =>
    events.map(({ run_import_id: import_id, observed_at: ts, topic, file, rows_read, published, ...event }) => {
      const { rejected, finished, position } = event
      return { import_id, ts, topic, file, rows_read, published, rejected, finished, position }
    }),
  'import-retraction': ({ events }) =>
    events.map(({ retracted_import_id: import_id, topic, observed_at: ts, position }) => {
      return { import_id, topic, ts, position }
    }),
  rating: ({ events }) =>
    events.map(({ user_key, rater_key, username, rater, stars, comment, observed_at: ts, revision }) => {
      return { user_key, rater_key, username, rater, stars, comment, ts, revision }
    })
}

/** Whether an event lies in a range. */
export function liesIn(range: Range, { epoch, partition, offset }: Row): boolean {
  return range.some(
    (stretch) =>
      stretch.epoch === epoch &&
      stretch.partition === partition &&
      stretch.first <= Number(offset) &&
      Number(offset) < stretch.next &&
      stretch.offsets?.includes(Number(offset)) !== false
  )
}

/** Orders events by instant, then by position. */
export function versionOf({ observed_at, position }: Row): bigint {
  return (BigInt(Number(observed_at)) << 64n) | BigInt(Number(position))
}

function bucketOf(titleId: unknown, ms: number): string {
  return `${titleId}|${ms - (ms % HOUR_MS)}`
}

function hourOf(rows: readonly Row[]): Row {
  const online = rows.map((row) => Number(row.online))
  const max = Math.max(...online)
  const instants = rows.filter((row) => row.online === max).map(({ ts }) => Number(ts))
  const [first] = rows
  return {
    title_id: first?.title_id,
    hour: Number(first?.ts) - (Number(first?.ts) % HOUR_MS),
    min: Math.min(...online),
    max,
    max_at: Math.min(...instants),
    sum: online.reduce((sum, each) => sum + each, 0),
    samples: rows.length,
    position: Math.max(...rows.map(({ position }) => Number(position)))
  }
}

function newestOf(events: readonly Row[], keyOf: (event: Row) => string): Row[] {
  const newest = new Map<string, Row>()
  for (const event of events) {
    const before = newest.get(keyOf(event))
    if (before === undefined || versionOf(event) >= versionOf(before)) newest.set(keyOf(event), event)
  }
  return [...newest.values()]
}

function latestOf(event: Row): Row {
  const { import_id, title_id, observed_at: ts, online, sessions, lobby_players } = event
  return { imported: import_id !== '', title_id, ts, online, sessions, lobby_players, version: versionOf(event) }
}

/** A state of an entry; `content` distinguishes states of one instant. */
function stateOf(event: Row): Row {
  const { title_id, leaderboard_id, player, occurrence, observed_at: ts, player_key, change } = event
  const { rating, time_ms, is_ascending, stated_rank, ord, step, details, epoch, partition, offset, position } = event
  const is_gone = change === 'removed'
  const content = JSON.stringify([is_gone, rating, time_ms, is_ascending, stated_rank, ord, step, details])
  return {
    ...{ title_id, leaderboard_id, player, occurrence, ts, content, player_key, is_gone, rating, time_ms, stated_rank },
    ...{ is_ascending, ord, step, details, epoch, partition, offset, position }
  }
}
