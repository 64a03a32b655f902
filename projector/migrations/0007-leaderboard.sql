-- Event tables of boards and their entries; see 0002.
CREATE TABLE IF NOT EXISTS event_leaderboard (
  epoch UInt16 CODEC(Delta, ZSTD(1)),
  partition UInt16 CODEC(Delta, ZSTD(1)),
  offset UInt64 CODEC(DoubleDelta, ZSTD(1)),
  source LowCardinality(String),
  import_id LowCardinality(String),
  observed_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  title_id LowCardinality(String),
  leaderboard_id UInt32,
  name String,
  listed Bool,
  position UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
  version UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

-- `player_key` is the name as it is compared without case, made by the loader. `details` is JSON text, '' when there are none.
CREATE TABLE IF NOT EXISTS event_leaderboard_entry (
  epoch UInt16 CODEC(Delta, ZSTD(1)),
  partition UInt16 CODEC(Delta, ZSTD(1)),
  offset UInt64 CODEC(DoubleDelta, ZSTD(1)),
  source LowCardinality(String),
  import_id LowCardinality(String),
  observed_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  title_id LowCardinality(String),
  leaderboard_id UInt32,
  player String,
  player_key String,
  occurrence UInt16,
  change LowCardinality(String),
  rating String,
  time_ms Nullable(UInt32),
  stated_rank Nullable(Int32),
  ord Nullable(Int64),
  step Nullable(Int64),
  details String,
  position UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
  version UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

-- What lists said of a board, one row an instant; few, for only changes are published. Asked for whole titles.
CREATE TABLE IF NOT EXISTS leaderboard (
  title_id LowCardinality(String),
  leaderboard_id UInt32,
  ts DateTime64(3, 'UTC'),
  name String,
  listed Bool,
  position UInt64
) ENGINE = ReplacingMergeTree(position) ORDER BY (title_id, leaderboard_id, ts);

-- Every state of every entry. Asked for one board (as of an instant: the newest state of each entry up to it) and for
-- single entries of a board, so board, entry, time. `content` tells states of one instant apart, so that an event that is
-- published again is the same row; the position is that of its first publication, which is why the lowest one wins (`age`
-- is its complement).
CREATE TABLE IF NOT EXISTS leaderboard_history (
  title_id LowCardinality(String),
  leaderboard_id UInt32,
  player String,
  occurrence UInt16,
  ts DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  content UInt64,
  player_key String,
  is_gone Bool,
  rating String,
  time_ms Nullable(UInt32),
  stated_rank Nullable(Int32),
  ord Nullable(Int64),
  step Nullable(Int64),
  details String,
  epoch UInt16,
  partition UInt16,
  offset UInt64,
  position UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
  age UInt64 MATERIALIZED bitNot(bitOr(bitShiftLeft(toUInt64(epoch), 48), offset))
) ENGINE = ReplacingMergeTree(age) ORDER BY (title_id, leaderboard_id, player, occurrence, ts, content);

-- The boards as they are: each entry with the rank and place (from 0) that the board shows. All entries of a touched board
-- are written anew, for whoever comes at the top moves all others. Asked for whole boards, and by searches for single
-- entries of a hundred boards at once, hence the small granules. An entry that left stays as a row that says so.
CREATE TABLE IF NOT EXISTS leaderboard_entry (
  title_id LowCardinality(String),
  leaderboard_id UInt32,
  player String,
  occurrence UInt16,
  player_key String,
  is_gone Bool,
  rank Int64,
  place UInt32,
  rating String,
  time_ms Nullable(UInt32),
  stated_rank Nullable(Int32),
  ord Nullable(Int64),
  step Nullable(Int64),
  details String,
  ts DateTime64(3, 'UTC'),
  version UInt64
) ENGINE = ReplacingMergeTree(version) ORDER BY (title_id, leaderboard_id, player, occurrence)
SETTINGS index_granularity = 1024;

-- Who held a board's record from when to when, oldest first; one row a board, because a late event can begin, end or undo
-- any reign. `set_at` is when the record was set, `from_at` when it (again) became the best; the last `to_at` is NULL.
CREATE TABLE IF NOT EXISTS record_history (
  title_id LowCardinality(String),
  leaderboard_id UInt32,
  players Array(String),
  occurrences Array(UInt16),
  ratings Array(String),
  times_ms Array(Nullable(UInt32)),
  set_at Array(DateTime64(3, 'UTC')),
  from_at Array(DateTime64(3, 'UTC')),
  to_at Array(Nullable(DateTime64(3, 'UTC'))),
  version UInt64
) ENGINE = ReplacingMergeTree(version) ORDER BY (title_id, leaderboard_id);

-- Changes as they happened: asked newest first, over all boards, for pages of a few hundred; so time leads. One row an
-- event that is, or once was, a change (`is_change`): a late event can make of a change none.
-- The player's changes are found by the index on `player_key`.
CREATE TABLE IF NOT EXISTS leaderboard_change (
  ts DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  title_id LowCardinality(String),
  leaderboard_id UInt32,
  epoch UInt16,
  partition UInt16,
  offset UInt64,
  recorded_epoch UInt16,
  recorded_partition UInt16,
  recorded_offset UInt64,
  is_change Bool,
  change LowCardinality(String),
  player String,
  player_key String,
  occurrence UInt16,
  previous_rank Nullable(Int64),
  new_rank Nullable(Int64),
  previous_rating Nullable(String),
  new_rating Nullable(String),
  previous_time_ms Nullable(UInt32),
  new_time_ms Nullable(UInt32),
  is_time Bool,
  version UInt64,
  INDEX by_player player_key TYPE bloom_filter(0.001) GRANULARITY 1
) ENGINE = ReplacingMergeTree(version) ORDER BY (ts, title_id, leaderboard_id, epoch, partition, offset);

-- The same changes in the order of recording, for those who follow them by cursor: where a change was recorded (the
-- position that made it one) never moves, whatever arrives later.
CREATE TABLE IF NOT EXISTS leaderboard_feed (
  recorded_epoch UInt16,
  recorded_partition UInt16,
  recorded_offset UInt64 CODEC(Delta, ZSTD(1)),
  epoch UInt16,
  partition UInt16,
  offset UInt64,
  ts DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  title_id LowCardinality(String),
  leaderboard_id UInt32,
  is_change Bool,
  change LowCardinality(String),
  player String,
  player_key String,
  occurrence UInt16,
  previous_rank Nullable(Int64),
  new_rank Nullable(Int64),
  previous_rating Nullable(String),
  new_rating Nullable(String),
  previous_time_ms Nullable(UInt32),
  new_time_ms Nullable(UInt32),
  is_time Bool,
  version UInt64,
  INDEX by_player player_key TYPE bloom_filter(0.001) GRANULARITY 1
) ENGINE = ReplacingMergeTree(version)
ORDER BY (recorded_epoch, recorded_partition, recorded_offset, epoch, partition, offset);

-- All boards of a player, with ranks: the rows of leaderboard_entry, player first (11 ms where the board first took 1,400).
CREATE TABLE IF NOT EXISTS player_entry (
  player_key String,
  title_id LowCardinality(String),
  leaderboard_id UInt32,
  player String,
  occurrence UInt16,
  is_gone Bool,
  rank Int64,
  place UInt32,
  rating String,
  time_ms Nullable(UInt32),
  details String,
  ts DateTime64(3, 'UTC'),
  version UInt64
) ENGINE = ReplacingMergeTree(version) ORDER BY (player_key, title_id, leaderboard_id, player, occurrence)
SETTINGS index_granularity = 1024;

-- Times for search by time: milliseconds lead. An entry has a row for each time that it ever had; the one that it has now
-- is live. Ranks are looked up in leaderboard_entry for the few that are found.
CREATE TABLE IF NOT EXISTS entry_time (
  time_ms UInt32,
  title_id LowCardinality(String),
  leaderboard_id UInt32,
  player String,
  occurrence UInt16,
  is_live Bool,
  version UInt128
) ENGINE = ReplacingMergeTree(version) ORDER BY (time_ms, title_id, leaderboard_id, player, occurrence)
SETTINGS index_granularity = 1024;

-- Every spelling of every player's name that a board ever showed; asked by prefix of the key.
CREATE TABLE IF NOT EXISTS player (
  player_key String,
  player String
) ENGINE = ReplacingMergeTree ORDER BY (player_key, player)
SETTINGS index_granularity = 1024;
