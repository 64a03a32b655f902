import { STATE_ORDER } from '../queries/leaderboard-entry.js'

/*
 * dataset   a published table: its columns, their meaning, and the SELECT that makes its rows from the read tables
 * period    what a file contains: a month (UTC), `2025-03`, or `newest`
 */

export type DatasetColumn = {
  readonly name: string
  /** The engine's type: in Parquet, `DateTime64(3, 'UTC')` is a timestamp in milliseconds, UTC. */
  readonly type: string
  /** The unit of a measure. */
  readonly unit?: string
  readonly meaning: string
}

/** Names a table in a statement, such as `{title_count: Identifier}`. */
export type TableName = (table: string) => string

/** One file per month. */
export type DatasetMonths = {
  /** Whether a month has the rows whose instant lies in it, or the state at its end. */
  readonly of: 'rows' | 'state'
  /** The column with the instant of a row. */
  readonly instant: string
  /**
   * The instants of a row of the table `t`, the first of `tables`, as the engine stores it: NULL for rows outside the
   * dataset.
   */
  readonly stored: string
}

export type Dataset = {
  readonly name: string
  readonly meaning: string
  readonly columns: readonly DatasetColumn[]
  /** The projection whose changes can change its rows. */
  readonly projection: string
  readonly tables: readonly string[]
  /** Selects the columns. `until`: an instant as SQL, at which a dataset of states shows them. */
  select(table: TableName, until?: string): string
  readonly files: DatasetMonths | 'newest'
  /** Sort order of files, completed by all other columns. */
  readonly order: readonly [string, ...string[]]
}

const INSTANT = `DateTime64(3, 'UTC')`
const observedAt = { name: 'observed_at', type: INSTANT, meaning: 'when the source reported it' }
const titleId = { name: 'title_id', type: 'String', meaning: 'the title: 8 hexadecimal digits' }
const leaderboardId = { name: 'leaderboard_id', type: 'UInt32', meaning: 'the board, unique within its title' }
const player = { name: 'player', type: 'String', meaning: 'the name as the board shows it' }
const rating = { name: 'rating', type: 'String', meaning: 'the value as the board shows it' }
const timeMs = {
  name: 'time_ms',
  type: 'Nullable(UInt32)',
  unit: 'ms',
  meaning: 'the value of a board of times; null on other boards'
}

const networkCount: Dataset = {
  name: 'network-count',
  meaning: 'Counts of the whole network at one instant.',
  columns: [
    { name: 'metric', type: 'String', meaning: 'what was counted: online, registered or lobbies' },
    observedAt,
    { name: 'value', type: 'UInt32', unit: 'users or lobbies', meaning: 'the count' }
  ],
  projection: 'network-count',
  tables: ['network_count'],
  select: (table) => `
    SELECT toString(c.metric) AS metric, c.ts AS observed_at, c.value AS value
      FROM ${table('network_count')} AS c FINAL`,
  files: { of: 'rows', instant: 'observed_at', stored: 't.ts' },
  order: ['metric', 'observed_at']
}

const titleCount: Dataset = {
  name: 'title-count',
  meaning: 'Counts of one title at one instant.',
  columns: [
    titleId,
    observedAt,
    { name: 'online', type: 'UInt32', unit: 'players', meaning: 'players online' },
    { name: 'sessions', type: 'Nullable(UInt32)', unit: 'sessions', meaning: 'open sessions; null if not reported' },
    {
      name: 'lobby_players',
      type: 'Nullable(UInt32)',
      unit: 'players',
      meaning: 'players in sessions; null if not reported'
    }
  ],
  projection: 'title-count',
  tables: ['title_count'],
  select: (table) => `
    SELECT toString(c.title_id) AS title_id, c.ts AS observed_at, c.online AS online, c.sessions AS sessions,
      c.lobby_players AS lobby_players
    FROM ${table('title_count')} AS c FINAL`,
  files: { of: 'rows', instant: 'observed_at', stored: 't.ts' },
  order: ['title_id', 'observed_at']
}

const title: Dataset = {
  name: 'title',
  meaning: 'The newest description of every title.',
  columns: [
    titleId,
    { name: 'name', type: 'String', meaning: 'the short name; empty fields are unknown' },
    { name: 'title', type: 'String', meaning: 'the longer, official title' },
    { name: 'publisher', type: 'String', meaning: 'the publisher' },
    { name: 'release_date', type: 'String', meaning: 'YYYY-MM-DD' },
    { name: 'product_code', type: 'String', meaning: 'the code on the packaging' },
    { name: 'features', type: 'String', meaning: 'features on the network, comma-separated' }
  ],
  projection: 'title',
  tables: ['title'],
  select: (table) => `
    SELECT toString(t.title_id) AS title_id, anyIf(t.value, t.field = 'name') AS name,
      anyIf(t.value, t.field = 'title') AS title, anyIf(t.value, t.field = 'publisher') AS publisher,
      anyIf(t.value, t.field = 'release_date') AS release_date,
      anyIf(t.value, t.field = 'product_code') AS product_code,
      anyIf(t.value, t.field = 'features') AS features
    FROM ${table('title')} AS t FINAL GROUP BY title_id`,
  files: 'newest',
  order: ['title_id']
}

const leaderboardChange: Dataset = {
  name: 'leaderboard-change',
  meaning: 'Entries that came, left, or whose value differs.',
  columns: [
    { name: 'changed_at', type: INSTANT, meaning: 'when the board was visited' },
    titleId,
    leaderboardId,
    player,
    { name: 'change', type: 'String', meaning: 'new, updated or removed' },
    ...['previous', 'new'].flatMap((when) => [
      { name: `${when}_rank`, type: 'Nullable(Int64)', meaning: `the ${when} rank; null where there is none` },
      { name: `${when}_rating`, type: 'Nullable(String)', meaning: `the ${when} value, as shown` },
      { name: `${when}_time_ms`, type: 'Nullable(UInt32)', unit: 'ms', meaning: `the ${when} time` }
    ])
  ],
  projection: 'leaderboard-entry',
  tables: ['leaderboard_change'],
  select: (table) => `
    SELECT c.ts AS changed_at, toString(c.title_id) AS title_id, c.leaderboard_id AS leaderboard_id, c.player AS player,
      toString(c.change) AS change, c.previous_rank AS previous_rank, c.previous_rating AS previous_rating,
      c.previous_time_ms AS previous_time_ms, c.new_rank AS new_rank, c.new_rating AS new_rating,
      c.new_time_ms AS new_time_ms
    FROM ${table('leaderboard_change')} AS c FINAL WHERE c.is_change`,
  files: { of: 'rows', instant: 'changed_at', stored: 'if(t.is_change, t.ts, NULL)' },
  order: ['changed_at', 'title_id', 'leaderboard_id']
}

const leaderboardEntry: Dataset = {
  name: 'leaderboard-entry',
  meaning: 'The entries of every board at the end of a month.',
  columns: [
    titleId,
    leaderboardId,
    { name: 'rank', type: 'Nullable(Int64)', meaning: 'the rank; null where no source stated one' },
    player,
    rating,
    timeMs,
    { name: 'changed_at', type: INSTANT, meaning: 'since when the entry has this state' }
  ],
  projection: 'leaderboard-history',
  tables: ['leaderboard_history'],
  // A rank is the running sum of steps in key order; entries of files have stated ranks only.
  select: (table, until = `now64(3, 'UTC')`) => `
    SELECT s.title_id AS title_id, s.leaderboard_id AS leaderboard_id,
      if(isNull(s.state.4), s.state.6, sum(s.state.5) OVER (
        PARTITION BY s.title_id, s.leaderboard_id, isNull(s.state.4) ORDER BY s.state.4
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)) AS rank,
      s.player AS player, s.state.2 AS rating, s.state.3 AS time_ms, s.changed_at AS changed_at
    FROM (
      SELECT toString(h.title_id) AS title_id, h.leaderboard_id AS leaderboard_id, h.player AS player,
        argMax((h.is_gone, h.rating, h.time_ms, h.ord, h.step, h.stated_rank), ${STATE_ORDER}) AS state,
        max(h.ts) AS changed_at
      FROM ${table('leaderboard_history')} AS h FINAL
      WHERE h.ts < ${until}
      GROUP BY title_id, leaderboard_id, player, h.occurrence
      HAVING NOT state.1) AS s`,
  files: { of: 'state', instant: 'changed_at', stored: 't.ts' },
  order: ['title_id', 'leaderboard_id', 'rank', 'player']
}

const record: Dataset = {
  name: 'record',
  meaning: 'When which entry became the best of its board.',
  columns: [
    { name: 'from_at', type: INSTANT, meaning: 'when it became the best; the next record of the board ends it' },
    { name: 'set_at', type: INSTANT, meaning: 'when it was set; earlier than from_at if a removal restored it' },
    titleId,
    leaderboardId,
    player,
    rating,
    timeMs
  ],
  projection: 'leaderboard-entry',
  tables: ['record_history'],
  select: (table) => `
    SELECT reign.1 AS from_at, reign.2 AS set_at, toString(r.title_id) AS title_id, r.leaderboard_id AS leaderboard_id,
      reign.3 AS player, reign.4 AS rating, reign.5 AS time_ms
    FROM ${table('record_history')} AS r FINAL
    ARRAY JOIN arrayZip(r.from_at, r.set_at, r.players, r.ratings, r.times_ms) AS reign`,
  files: { of: 'rows', instant: 'from_at', stored: 'arrayJoin(t.from_at)' },
  order: ['from_at', 'title_id', 'leaderboard_id']
}

const match: Dataset = {
  name: 'match',
  meaning: 'Lobbies, each from the first list that had it to the last one.',
  columns: [
    { name: 'last_seen', type: INSTANT, meaning: 'the instant of the last list with it' },
    { name: 'first_seen', type: INSTANT, meaning: 'the instant of the first list with it' },
    titleId,
    { name: 'host', type: 'String', meaning: 'the name of the host, as shown' },
    { name: 'peak_players', type: 'UInt32', unit: 'players', meaning: 'the most players in one list' },
    { name: 'max_players', type: 'UInt32', unit: 'players', meaning: 'the capacity; 0 if unknown' },
    { name: 'average_players', type: 'Float64', unit: 'players', meaning: 'the mean over its lists' },
    { name: 'sightings', type: 'UInt32', unit: 'lists', meaning: 'the number of lists with it' }
  ],
  projection: 'match-session',
  tables: ['match_session'],
  select: (table) => `
    SELECT m.last_seen AS last_seen, m.first_seen AS first_seen, toString(m.title_id) AS title_id, m.host AS host,
      m.peak_players AS peak_players, m.max_players AS max_players, m.players_sum / m.sightings AS average_players,
      m.sightings AS sightings
    FROM ${table('match_session')} AS m FINAL WHERE NOT m.is_void`,
  files: { of: 'rows', instant: 'last_seen', stored: 'if(t.is_void, NULL, t.last_seen)' },
  order: ['title_id', 'last_seen']
}

const coverage: Dataset = {
  name: 'coverage',
  meaning: 'Every run of the collector: where no run succeeded, missing rows of other datasets are not zeros.',
  columns: [
    { name: 'source', type: 'String', meaning: 'network, games, matches, boards or players' },
    observedAt,
    { name: 'outcome', type: 'String', meaning: 'succeeded, partial or failed' },
    { name: 'published', type: 'UInt32', unit: 'events', meaning: 'the number of published events' },
    { name: 'duration_ms', type: 'UInt32', unit: 'ms', meaning: 'how long the run took' }
  ],
  projection: 'scrape',
  tables: ['scrape'],
  select: (table) => `
    SELECT toString(s.source) AS source, s.ts AS observed_at, toString(s.outcome) AS outcome, s.published AS published,
      s.duration_ms AS duration_ms
    FROM ${table('scrape')} AS s FINAL`,
  files: { of: 'rows', instant: 'observed_at', stored: 't.ts' },
  order: ['source', 'observed_at']
}

/** All datasets. None contains data of people who can be erased: presence, profiles, ratings, unlocks. */
export const datasets: readonly Dataset[] = [
  networkCount,
  titleCount,
  title,
  leaderboardChange,
  leaderboardEntry,
  record,
  match,
  coverage
]
