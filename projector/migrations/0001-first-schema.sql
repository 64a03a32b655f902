-- The first schema. Read tables and event tables are made as generation 0 (`<table>__0`); rebuilds make further ones.

-- ---------------------------------------------------------------- bookkeeping

-- Positions up to which the loader (name `load:<topic>`) and each projection (name `project:<projection>`) have
-- consumed, per partition: `next` is the first offset not yet consumed. Queried by name at every step; a few rows. The
-- highest `next` wins, so that a process that lost a partition cannot set its successor's checkpoint back.
CREATE TABLE IF NOT EXISTS checkpoint (
  name String,
  epoch UInt16,
  partition UInt16,
  next UInt64,
  updated_at DateTime64(3, 'UTC') DEFAULT now64(3)
) ENGINE = ReplacingMergeTree(next) ORDER BY (name, epoch, partition);

-- Dead letters: unreadable messages, as the log has them. Queried by topic and position, rarely; a few rows.
-- `value` is base64, because a message may be no UTF-8.
CREATE TABLE IF NOT EXISTS dead_letter (
  topic LowCardinality(String),
  epoch UInt16,
  partition UInt16,
  offset UInt64,
  recorded_at DateTime64(3, 'UTC'),
  reason String,
  message_key String,
  headers Map(String, String),
  value String,
  stored_at DateTime64(3, 'UTC') DEFAULT now64(3)
) ENGINE = ReplacingMergeTree(stored_at) ORDER BY (topic, epoch, partition, offset);

-- Findings about damaged files: a damaged generation of a table by the engine's name, or a partition of the log with
-- positions that nothing has any more. Read as a whole at a start; usually empty. Rows stay: no generation's number is
-- used twice.
CREATE TABLE IF NOT EXISTS damage (
  kind LowCardinality(String),
  name String,
  reason String,
  found_at DateTime64(3, 'UTC') DEFAULT now64(3)
) ENGINE = ReplacingMergeTree ORDER BY (kind, name, found_at);

-- Changes by projection steps: the projection's table, the key (`*`: many), the instants, and the data version of
-- answers about them from then on. Readers query only rows after the newest version that they know, so version leads.
CREATE TABLE IF NOT EXISTS data_change (
  version UInt64,
  `projection` LowCardinality(String), -- quoted: bare, it would begin a PROJECTION
  key String,
  from_ms Int64,
  to_ms Int64
) ENGINE = ReplacingMergeTree ORDER BY (version, projection, key, from_ms, to_ms);

-- Decisions on dead letters: `dropped`, or `retried` (read successfully, and stored). Read whole, with dead_letter; a
-- row per decision, the newest of a position counts.
CREATE TABLE IF NOT EXISTS dead_letter_decision (
  topic LowCardinality(String),
  epoch UInt16,
  partition UInt16,
  offset UInt64,
  decision LowCardinality(String),
  decided_at DateTime64(3, 'UTC') DEFAULT now64(3)
) ENGINE = ReplacingMergeTree(decided_at) ORDER BY (topic, epoch, partition, offset);

-- All dead letters with their present state: a dropped one stays dropped when the log is read again; a retried one that
-- became a dead letter again is `stored`.
CREATE VIEW IF NOT EXISTS dead_letter_state AS
SELECT p.topic AS topic, p.epoch AS epoch, p.partition AS partition, p.offset AS offset, p.reason AS reason,
  p.stored_at AS stored_at, intDiv(length(p.value), 4) * 3 - length(extract(p.value, '=*$')) AS bytes,
  if(d.decision = 'dropped' OR d.decided_at >= p.stored_at, d.decision, 'stored') AS state
FROM dead_letter AS p FINAL
LEFT JOIN dead_letter_decision AS d FINAL
ON d.topic = p.topic AND d.epoch = p.epoch AND d.partition = p.partition AND d.offset = p.offset;

-- Late events: events that entered their event table behind the checkpoints of projections, such as retried dead
-- letters. One row per batch, so that a batch is visible as a whole. Read whole by each consumer of events, often; a
-- few rows.
CREATE TABLE IF NOT EXISTS late_batch (
  id String,
  topic LowCardinality(String),
  positions Array(Tuple(UInt16, UInt16, UInt64)),
  stored_at DateTime64(3, 'UTC') DEFAULT now64(3)
) ENGINE = ReplacingMergeTree ORDER BY id;

-- The consumers of each batch of late events, by the names of their checkpoints.
CREATE TABLE IF NOT EXISTS late_batch_taken (
  id String,
  taker LowCardinality(String)
) ENGINE = ReplacingMergeTree ORDER BY (id, taker);

-- Erasures that these tables have carried out, by the salted hash of the user's name (PostgreSQL has the salt).
-- Compared with PostgreSQL's ledger when a service starts: tables that were restored from an older copy lack the newest
-- rows. One row per erased user.
CREATE TABLE IF NOT EXISTS erasure (
  name_hash String,
  erased_at DateTime64(3, 'UTC')
) ENGINE = ReplacingMergeTree(erased_at) ORDER BY name_hash;

-- Ranges of the log that retention deleted before they were loaded, and that an operator accepted as missing: offsets
-- `first` to below `next`. Read whole; a few rows.
CREATE TABLE IF NOT EXISTS log_gap (
  topic LowCardinality(String),
  epoch UInt16,
  partition UInt16,
  first UInt64,
  next UInt64,
  loaded_at Nullable(DateTime64(3, 'UTC')), -- when the last event before the gap was loaded
  accepted_at DateTime64(3, 'UTC') DEFAULT now64(3)
) ENGINE = ReplacingMergeTree(accepted_at) ORDER BY (topic, epoch, partition, first);

-- Rebuilds of projections; each change of state is a new version of the row. Read whole; a few rows. `record` is JSON
-- (`rebuild/rebuild-record.ts`), because no query needs a part of it.
CREATE TABLE IF NOT EXISTS rebuild (
  id UInt32,
  record String,
  version UInt64
) ENGINE = ReplacingMergeTree(version) ORDER BY id;

-- The process that works on a rebuild, and its last sign of life.
CREATE TABLE IF NOT EXISTS rebuild_owner (
  id UInt32,
  process String,
  seen_at DateTime64(3, 'UTC') DEFAULT now64(3)
) ENGINE = ReplacingMergeTree(seen_at) ORDER BY id;

-- Pointers: the generation of each projection's tables, or of a topic's event table, that is written and the one that
-- is read. A row per change, the newest of an owner counts. Owners without a row write and read generation 0.
-- `reads_changed` rises with each change of `reads` over all owners. Read before each pass, and several times a second
-- by processes that answer; some rows per swap.
CREATE TABLE IF NOT EXISTS generation_pointer (
  owner LowCardinality(String),
  tables Array(String),
  writes UInt32,
  reads UInt32,
  reads_changed UInt64,
  version UInt64
) ENGINE = ReplacingMergeTree(version) ORDER BY owner;

-- The version of the statements that fill each generation of a projection's tables, and a hash of their text. A program
-- with a lower version refuses the tables, one with a higher version rebuilds them. Written once per generation; if
-- several programs begin one at once, the lowest version counts. Read whole, when a generation is new to a process.
CREATE TABLE IF NOT EXISTS generation_statement (
  name LowCardinality(String),
  generation UInt32,
  version UInt32,
  hash String
) ENGINE = ReplacingMergeTree ORDER BY (name, generation, version, hash);

-- --------------------------------------------------------------- event tables

-- Event tables have the events of one topic in log order. Projections and rebuilds read ranges of the log, one
-- partition at a time, so the position is the whole key, and a row loaded twice is one row.
-- `COLUMNS name` writes columns once that several tables have: in later statements, `{name}` stands for them.
-- `position` orders events within a partition; `version` orders facts: by instant, then by position. `recorded_at` is
-- when a log first took the event (1970 if unknown); a late event was known from `stored_at` of its late batch on.
COLUMNS event_columns
  epoch UInt16 CODEC(Delta, ZSTD(1)),
  partition UInt16 CODEC(Delta, ZSTD(1)),
  offset UInt64 CODEC(DoubleDelta, ZSTD(1)),
  source LowCardinality(String),
  import_id LowCardinality(String),
  observed_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  recorded_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1));

COLUMNS event_order
  position UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
  version UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position));

CREATE TABLE IF NOT EXISTS event_network_count__0 (
  {event_columns},
  registered Nullable(UInt32) CODEC(T64, ZSTD(1)),
  online Nullable(UInt32) CODEC(T64, ZSTD(1)),
  lobbies Nullable(UInt32) CODEC(T64, ZSTD(1)),
  {event_order},
  INDEX recorded recorded_at TYPE minmax GRANULARITY 1,
  INDEX observed observed_at TYPE minmax GRANULARITY 1
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

CREATE TABLE IF NOT EXISTS event_title_count__0 (
  {event_columns},
  title_id LowCardinality(String),
  online UInt32 CODEC(T64, ZSTD(1)),
  sessions Nullable(UInt32) CODEC(T64, ZSTD(1)),
  lobby_players Nullable(UInt32) CODEC(T64, ZSTD(1)),
  {event_order},
  INDEX recorded recorded_at TYPE minmax GRANULARITY 1,
  INDEX observed observed_at TYPE minmax GRANULARITY 1
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

-- An absent field is NULL. `name_key` is the key of the name (without case), computed by the loader.
CREATE TABLE IF NOT EXISTS event_title__0 (
  {event_columns},
  title_id LowCardinality(String),
  name String,
  name_key String,
  title Nullable(String),
  publisher Nullable(String),
  release_date Nullable(String),
  image Nullable(String),
  product_code Nullable(String),
  features Nullable(String),
  {event_order}
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

CREATE TABLE IF NOT EXISTS event_scrape__0 (
  {event_columns},
  scrape_source LowCardinality(String),
  duration_ms UInt32,
  outcome LowCardinality(String),
  published UInt32,
  reason String,
  {event_order}
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

-- The progress of an import.
COLUMNS import_progress
  topic LowCardinality(String),
  file String,
  rows_read UInt64,
  published UInt64,
  rejected UInt64,
  finished Bool;

CREATE TABLE IF NOT EXISTS event_import_run__0 (
  {event_columns},
  run_import_id String,
  {import_progress},
  {event_order}
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

CREATE TABLE IF NOT EXISTS event_leaderboard__0 (
  {event_columns},
  title_id LowCardinality(String),
  leaderboard_id UInt32,
  name String,
  listed Bool,
  {event_order}
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

-- What a source says of an entry, and its place as it is ordered.
COLUMNS entry_state
  rating String,
  time_ms Nullable(UInt32),
  is_ascending Bool,
  stated_rank Nullable(Int32),
  ord Nullable(Int64),
  step Nullable(Int64),
  details String;

-- `player_key` is the key of the name (without case), computed by the loader. `details` is JSON text, '' if there are
-- none.
CREATE TABLE IF NOT EXISTS event_leaderboard_entry__0 (
  {event_columns},
  title_id LowCardinality(String),
  leaderboard_id UInt32,
  player String,
  player_key String,
  occurrence UInt16,
  change LowCardinality(String),
  {entry_state},
  {event_order},
  INDEX recorded recorded_at TYPE minmax GRANULARITY 1
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

-- Events of undone imports, which answers with `knownAt` before the undo show: the columns of the event tables, whose
-- changes they follow. Queried as those.
CREATE TABLE IF NOT EXISTS undone_network_count AS event_network_count__0;
CREATE TABLE IF NOT EXISTS undone_title_count AS event_title_count__0;
CREATE TABLE IF NOT EXISTS undone_leaderboard AS event_leaderboard__0;
CREATE TABLE IF NOT EXISTS undone_leaderboard_entry AS event_leaderboard_entry__0;

-- Match lists. The three arrays have one element per lobby.
CREATE TABLE IF NOT EXISTS event_match_list__0 (
  {event_columns},
  title_id LowCardinality(String),
  hosts Array(String),
  players Array(UInt32),
  max_players Array(UInt32),
  {event_order}
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

-- Presence. A `user_key` is the key of the username (without case), computed by the loader. These events are sealed in
-- the log and plain here; an erasure deletes the rows.
CREATE TABLE IF NOT EXISTS event_presence__0 (
  {event_columns},
  user_key String,
  username String,
  gamertag String,
  gamertag_key String,
  is_online Bool,
  game String,
  period_s UInt32,
  {event_order}
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

-- `revision` is that of the write side: a higher one is a newer state.
CREATE TABLE IF NOT EXISTS event_profile__0 (
  {event_columns},
  user_key String,
  username String,
  revision UInt64,
  avatar_url String,
  avatar_hue Nullable(UInt16),
  chat_profile_url String,
  display_name_override Nullable(String),
  linked_gamertag String,
  linked_gamertag_key String,
  console_verified Bool,
  bio String,
  social_links String,
  {event_order}
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

CREATE TABLE IF NOT EXISTS event_rating__0 (
  {event_columns},
  user_key String,
  username String,
  rater_key String,
  rater String,
  stars UInt8,
  comment Nullable(String),
  revision UInt64,
  {event_order}
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

CREATE TABLE IF NOT EXISTS event_achievement_unlock__0 (
  {event_columns},
  user_key String,
  username String,
  achievement_id UInt16,
  points UInt16,
  {event_order}
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

CREATE TABLE IF NOT EXISTS event_import_retraction__0 (
  {event_columns},
  retracted_import_id String,
  topic LowCardinality(String),
  {event_order}
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

-- Titles that left the network or returned.
CREATE TABLE IF NOT EXISTS event_title_status__0 (
  {event_columns},
  title_id LowCardinality(String),
  on_network Bool,
  {event_order}
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

-- ---------------------------------------------------------------- read tables

-- Counts of the network, one row per metric and instant: sources have registered, online and lobbies together or
-- separately, and a file with one of them must not replace another. Queried for one metric and a window, oldest first.
-- The key has the instant, so the position alone tells the newer of two rows.
CREATE TABLE IF NOT EXISTS network_count__0 (
  metric LowCardinality(String),
  ts DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  value UInt32 CODEC(T64, ZSTD(1)),
  position UInt64 CODEC(DoubleDelta, ZSTD(1))
) ENGINE = ReplacingMergeTree(position) PARTITION BY toYear(ts) ORDER BY (metric, ts);

-- The samples of an hour or a day.
COLUMNS sample_columns
  min UInt32 CODEC(T64, ZSTD(1)),
  max UInt32 CODEC(T64, ZSTD(1)),
  max_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  sum UInt64 CODEC(T64, ZSTD(1)),
  samples UInt32 CODEC(T64, ZSTD(1));

-- One row per metric and hour with a sample, for wide windows, days, coverage and the last count of a day. Recomputed
-- whole from network_count; `position` is the newest of its samples, so a recomputed row replaces the former one.
CREATE TABLE IF NOT EXISTS network_count_hour__0 (
  metric LowCardinality(String),
  hour DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
  {sample_columns},
  last UInt32 CODEC(T64, ZSTD(1)),
  last_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  position UInt64 CODEC(DoubleDelta, ZSTD(1))
) ENGINE = ReplacingMergeTree(position) ORDER BY (metric, hour);

-- Counts of one title at one instant. Queried for one title and a window, so title, then time. The counts are stored as
-- differences, which vary less than the counts: 0.345 instead of 0.43 bytes per sample by the minute. Writing and
-- merging a sample takes 0.07 µs more, a query of a title 2 % more.
CREATE TABLE IF NOT EXISTS title_count__0 (
  title_id LowCardinality(String) CODEC(ZSTD(1)),
  ts DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  online UInt32 CODEC(Delta, T64('bit'), ZSTD(9)),
  sessions Nullable(UInt32) CODEC(T64, ZSTD(1)),
  lobby_players Nullable(UInt32) CODEC(Delta, T64('bit'), ZSTD(9)),
  position UInt64 CODEC(Delta, T64, ZSTD(3))
) ENGINE = ReplacingMergeTree(position) PARTITION BY toYear(ts) ORDER BY (title_id, ts);

-- One row per title and hour with a sample, for wide windows of one title. Recomputed whole from title_count.
CREATE TABLE IF NOT EXISTS title_count_hour__0 (
  title_id LowCardinality(String),
  hour DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
  {sample_columns},
  position UInt64 CODEC(DoubleDelta, ZSTD(1))
) ENGINE = ReplacingMergeTree(position) PARTITION BY toYear(hour) ORDER BY (title_id, hour);

-- One row per title and UTC day with a sample, for all titles over weeks and months. Time leads, because every query is
-- about all titles. Recomputed whole from title_count_hour.
CREATE TABLE IF NOT EXISTS title_count_day__0 (
  day Date CODEC(DoubleDelta, ZSTD(1)),
  title_id LowCardinality(String),
  {sample_columns},
  active_hours UInt8,
  position UInt64 CODEC(Delta, ZSTD(1))
) ENGINE = ReplacingMergeTree(position) ORDER BY (day, title_id);

-- The newest counts of every title, read whole. Imported counts have rows of their own: a file with a newer count of
-- one title would look like a scrape without all other titles.
CREATE TABLE IF NOT EXISTS title_latest__0 (
  imported Bool,
  title_id LowCardinality(String),
  ts DateTime64(3, 'UTC'),
  online UInt32,
  sessions Nullable(UInt32),
  lobby_players Nullable(UInt32),
  version UInt128
) ENGINE = ReplacingMergeTree(version) ORDER BY (imported, title_id);

-- Facts about titles, one row per field, because each field folds separately: a source without a field changes nothing
-- of it. Fields: name, title, publisher, release_date, image, product_code, features (comma-separated). `name_key` is
-- set for the field `name`. A few thousand rows, read whole.
CREATE TABLE IF NOT EXISTS title__0 (
  title_id LowCardinality(String),
  field LowCardinality(String),
  value String,
  name_key String,
  version UInt128
) ENGINE = ReplacingMergeTree(version) ORDER BY (title_id, field);

-- One row per title that ever left the network: a few hundred, read whole. Titles without a row are on the network.
CREATE TABLE IF NOT EXISTS title_status__0 (
  title_id LowCardinality(String),
  on_network Bool,
  ts DateTime64(3, 'UTC'),
  version UInt128
) ENGINE = ReplacingMergeTree(version) ORDER BY title_id;

-- Every run of a source. Queried for the newest run of each source, and for windows of one.
CREATE TABLE IF NOT EXISTS scrape__0 (
  source LowCardinality(String),
  ts DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  duration_ms UInt32 CODEC(T64, ZSTD(1)),
  outcome LowCardinality(String),
  published UInt32 CODEC(T64, ZSTD(1)),
  reason String,
  position UInt64 CODEC(DoubleDelta, ZSTD(1))
) ENGINE = ReplacingMergeTree(position) ORDER BY (source, ts);

-- Progress of imports: one row per import. Queried by id, listed rarely.
CREATE TABLE IF NOT EXISTS import_run__0 (
  import_id String,
  ts DateTime64(3, 'UTC'),
  {import_progress},
  position UInt64
) ENGINE = ReplacingMergeTree(position) ORDER BY import_id;

-- Undone imports, one row each. Read whole by topic, and by id; a few rows.
CREATE TABLE IF NOT EXISTS import_retraction__0 (
  import_id String,
  topic LowCardinality(String),
  ts DateTime64(3, 'UTC'),
  position UInt64
) ENGINE = ReplacingMergeTree(position) ORDER BY import_id;

-- Facts about boards from lists, one row per instant; few, because only changes are published. Queried for whole
-- titles.
CREATE TABLE IF NOT EXISTS leaderboard__0 (
  title_id LowCardinality(String),
  leaderboard_id UInt32,
  ts DateTime64(3, 'UTC'),
  name String,
  listed Bool,
  position UInt64
) ENGINE = ReplacingMergeTree(position) ORDER BY (title_id, leaderboard_id, ts);

-- An entry of a board; `occurrence` numbers those of one name.
COLUMNS board_entry
  title_id LowCardinality(String),
  leaderboard_id UInt32,
  player String,
  occurrence UInt16;

-- Every state of every entry. Queried for one board (as of an instant: the newest state of each entry up to it) and for
-- single entries of a board, so board, entry, time. `content` distinguishes states of one instant, so that an event
-- that is published again is the same row. The position is that of its first publication, so the lowest one wins (`age`
-- is its complement).
CREATE TABLE IF NOT EXISTS leaderboard_history__0 (
  {board_entry},
  ts DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  content UInt64,
  player_key String,
  is_gone Bool,
  {entry_state},
  epoch UInt16,
  partition UInt16,
  offset UInt64,
  position UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
  age UInt64 MATERIALIZED bitNot(bitOr(bitShiftLeft(toUInt64(epoch), 48), offset))
) ENGINE = ReplacingMergeTree(age) ORDER BY (title_id, leaderboard_id, player, occurrence, ts, content);

-- The boards now: each entry with the rank and place (from 0) that the board shows. All entries of a touched board are
-- written again, because a new entry at the top moves all others. Queried for whole boards, and by searches for single
-- entries of a hundred boards at once, hence the small granules and blocks: with blocks of 64 KiB, such a query
-- decompresses eight granules of a narrow column for the one that it needs (27.5 → 22 ms of processor time with 1 M
-- entries, 4 % more disk). An entry that left stays as a row with `is_gone`. `first_at` is when the entry first stood
-- on the board; 1970 if it never did.
CREATE TABLE IF NOT EXISTS leaderboard_entry__0 (
  {board_entry},
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
  first_at DateTime64(3, 'UTC'),
  ts DateTime64(3, 'UTC'),
  version UInt64
) ENGINE = ReplacingMergeTree(version) ORDER BY (title_id, leaderboard_id, player, occurrence)
SETTINGS index_granularity = 1024, min_compress_block_size = 16384;

-- The reigns of a board's records, oldest first; one row per board, because a late event can begin, end or undo any
-- reign. `set_at` is when the record was set, `from_at` when it (again) became the best; the last `to_at` is NULL.
CREATE TABLE IF NOT EXISTS record_history__0 (
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

-- When players first reached the goals of achievements (numbered in `schemas/src/nouns/rank-goal.ts`), in arrays with
-- one element per goal reached; one row per board, because a late event can move or undo any of them. Read by the fold
-- that writes it, and for the boards of up to a thousand users.
CREATE TABLE IF NOT EXISTS rank_reached__0 (
  title_id LowCardinality(String),
  leaderboard_id UInt32,
  player_keys Array(String),
  goals Array(UInt8),
  reached_at Array(DateTime64(3, 'UTC')),
  version UInt64
) ENGINE = ReplacingMergeTree(version) ORDER BY (title_id, leaderboard_id)
SETTINGS index_granularity = 64;

-- A change of a board. The index finds the changes of a player.
COLUMNS change_columns
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
  INDEX by_player player_key TYPE bloom_filter(0.001) GRANULARITY 1;

-- Changes of boards by instant. Queried newest first, over all boards, for pages of a few hundred; so time leads. One
-- row per event that is, or once was, a change (`is_change`): after a late event it may be none.
CREATE TABLE IF NOT EXISTS leaderboard_change__0 (
  ts DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  title_id LowCardinality(String),
  leaderboard_id UInt32,
  epoch UInt16,
  partition UInt16,
  offset UInt64,
  recorded_epoch UInt16,
  recorded_partition UInt16,
  recorded_offset UInt64,
  {change_columns}
) ENGINE = ReplacingMergeTree(version) ORDER BY (ts, title_id, leaderboard_id, epoch, partition, offset);

-- The same changes in the order of recording, for clients with a cursor: the place where a change was recorded (the
-- position that made it one) never moves.
CREATE TABLE IF NOT EXISTS leaderboard_feed__0 (
  recorded_epoch UInt16,
  recorded_partition UInt16,
  recorded_offset UInt64 CODEC(Delta, ZSTD(1)),
  epoch UInt16,
  partition UInt16,
  offset UInt64,
  ts DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  title_id LowCardinality(String),
  leaderboard_id UInt32,
  {change_columns}
) ENGINE = ReplacingMergeTree(version)
ORDER BY (recorded_epoch, recorded_partition, recorded_offset, epoch, partition, offset);

-- All boards of a player, with ranks: the rows of leaderboard_entry, player first (11 ms; board first took 1,400). A
-- search reads a hundred players: in a compact part a granule is at one place of one file (17 instead of 28 ms of
-- processor time with 2 M entries, 5 % more disk).
CREATE TABLE IF NOT EXISTS player_entry__0 (
  player_key String,
  {board_entry},
  is_gone Bool,
  rank Int64,
  place UInt32,
  rating String,
  time_ms Nullable(UInt32),
  details String,
  first_at DateTime64(3, 'UTC'),
  ts DateTime64(3, 'UTC'),
  version UInt64
) ENGINE = ReplacingMergeTree(version) ORDER BY (player_key, title_id, leaderboard_id, player, occurrence)
SETTINGS index_granularity = 1024, min_bytes_for_wide_part = 1000000000000;

-- The entries of all boards by time, with the columns that a search shows: a search by time is one read. Rows have the
-- version of their board, as in leaderboard_entry.
CREATE TABLE IF NOT EXISTS timed_entry__0 (
  time_ms UInt32,
  {board_entry},
  is_live Bool,
  rank Int64,
  rating String,
  version UInt64
) ENGINE = ReplacingMergeTree(version) ORDER BY (time_ms, title_id, leaderboard_id, player, occurrence)
SETTINGS index_granularity = 1024;

-- Every spelling of every player's name that a board ever showed. Queried by prefix of the key.
CREATE TABLE IF NOT EXISTS player__0 (
  player_key String,
  player String
) ENGINE = ReplacingMergeTree ORDER BY (player_key, player)
SETTINGS index_granularity = 1024;

-- The lobbies of one title at one instant, from which matches are computed. Queried for one title and a window.
CREATE TABLE IF NOT EXISTS match_list__0 (
  title_id LowCardinality(String),
  ts DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  hosts Array(String),
  players Array(UInt32),
  max_players Array(UInt32),
  position UInt64 CODEC(Delta, ZSTD(1))
) ENGINE = ReplacingMergeTree(position) PARTITION BY toYear(ts) ORDER BY (title_id, ts);

-- The newest list of every title: one row per title, read whole.
CREATE TABLE IF NOT EXISTS match_latest__0 (
  title_id LowCardinality(String),
  ts DateTime64(3, 'UTC'),
  hosts Array(String),
  players Array(UInt32),
  max_players Array(UInt32),
  version UInt128
) ENGINE = ReplacingMergeTree(version) ORDER BY title_id;

-- One row per title and hour with a list, for statistics over weeks. Recomputed whole from match_list.
CREATE TABLE IF NOT EXISTS match_list_hour__0 (
  title_id LowCardinality(String),
  hour DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
  lists UInt32,
  lobbies UInt64,
  players UInt64,
  lobbies_max UInt32,
  lobbies_max_at DateTime64(3, 'UTC'),
  position UInt64
) ENGINE = ReplacingMergeTree(position) PARTITION BY toYear(hour) ORDER BY (title_id, hour);

-- A match: the n-th lobby of a host in successive lists of a title. Queried for one title and a window, and by the
-- projection for the matches that were seen last: matches are short, so the index of `last_seen` skips nearly all
-- granules of past years. Small granules, because a title has few newest matches. A late list can split or join
-- matches; the row of one that no longer exists is `is_void`. Version: the newest position of the title's lists that
-- were folded, never less than that of the row before.
CREATE TABLE IF NOT EXISTS match_session__0 (
  title_id LowCardinality(String),
  first_seen DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  host String,
  nth UInt32,
  is_void Bool,
  last_seen DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  peak_players UInt32,
  max_players UInt32,
  players_sum UInt64,
  sightings UInt32,
  version UInt64,
  INDEX seen_last last_seen TYPE minmax GRANULARITY 1
) ENGINE = ReplacingMergeTree(version) ORDER BY (title_id, first_seen, host, nth) SETTINGS index_granularity = 1024;

-- Every sighting, one row per user and instant. Queried every minute for some hundred users and a window of days, to
-- compute play time. Small granules, because most of a larger one belongs to other users and days.
CREATE TABLE IF NOT EXISTS presence__0 (
  user_key String,
  ts DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  is_online Bool,
  game LowCardinality(String),
  period_s UInt32,
  position UInt64
) ENGINE = ReplacingMergeTree(position) PARTITION BY toYear(ts) ORDER BY (user_key, ts)
SETTINGS index_granularity = 1024;

-- Facts about users from presence, one row per field, each the newest by itself: `username` (its spelling), `seen` (the
-- newest sighting: online or offline), `online` (the newest sighting online), `game` (the newest sighting in a game:
-- its name), `gamertag` (the newest). `ts` is the instant of that sighting. Queried for one user, and by gamertag.
CREATE TABLE IF NOT EXISTS presence_latest__0 (
  user_key String,
  field LowCardinality(String),
  value String,
  value_key String,
  ts DateTime64(3, 'UTC'),
  version UInt128,
  INDEX by_value value_key TYPE bloom_filter(0.01) GRANULARITY 1
) ENGINE = ReplacingMergeTree(version) ORDER BY (user_key, field)
SETTINGS index_granularity = 1024;

-- Every gamertag that presence ever saw a user with. Queried by gamertag, to find the users of board entries.
CREATE TABLE IF NOT EXISTS user_gamertag__0 (
  gamertag_key String,
  user_key String
) ENGINE = ReplacingMergeTree ORDER BY (gamertag_key, user_key)
SETTINGS index_granularity = 1024;

-- One row per user and UTC day with a sighting: the number of sightings, the last one, and the whole seconds played by
-- game. Recomputed whole from `presence`, so that a late sighting leaves no orphan; a day without sightings left gets
-- an empty row. `last_at` of a day without a sighting inside a play is the end of the day. Queried for a thousand users
-- at once: small granules, because most of a larger one belongs to others.
CREATE TABLE IF NOT EXISTS presence_day__0 (
  user_key String,
  day Date,
  sightings UInt32,
  online_sightings UInt32,
  last_at DateTime64(3, 'UTC'),
  seconds Map(String, UInt32),
  position UInt64
) ENGINE = ReplacingMergeTree(position) ORDER BY (user_key, day)
SETTINGS index_granularity = 256;

-- The newest state of every profile. Queried for one user, and by gamertag; `gamertag_key` is '' if none is linked.
CREATE TABLE IF NOT EXISTS profile__0 (
  user_key String,
  username String,
  avatar_url String,
  avatar_hue Nullable(UInt16),
  chat_profile_url String,
  display_name_override Nullable(String),
  linked_gamertag String,
  gamertag_key String,
  console_verified Bool,
  bio String,
  social_links String,
  ts DateTime64(3, 'UTC'),
  revision UInt64,
  INDEX by_gamertag gamertag_key TYPE bloom_filter(0.01) GRANULARITY 1
) ENGINE = ReplacingMergeTree(revision) ORDER BY user_key
SETTINGS index_granularity = 1024;

-- The current rating of every rater and profile. Queried for one profile: the ratings that it received.
CREATE TABLE IF NOT EXISTS rating__0 (
  user_key String,
  rater_key String,
  username String,
  rater String,
  stars UInt8,
  comment Nullable(String),
  ts DateTime64(3, 'UTC'),
  revision UInt64
) ENGINE = ReplacingMergeTree(revision) ORDER BY (user_key, rater_key);

-- The same, rater first: the ratings that a user gave.
CREATE TABLE IF NOT EXISTS rating_given__0 (
  rater_key String,
  user_key String,
  stars UInt8,
  ts DateTime64(3, 'UTC'),
  revision UInt64
) ENGINE = ReplacingMergeTree(revision) ORDER BY (rater_key, user_key);

-- Unlocked achievements, once per user and achievement: of several events, the first in the log counts (`age` is the
-- complement of its position). Queried for one user, and whole by achievement.
CREATE TABLE IF NOT EXISTS achievement_unlock__0 (
  user_key String,
  achievement_id UInt16,
  username String,
  points UInt16,
  ts DateTime64(3, 'UTC'),
  age UInt64
) ENGINE = ReplacingMergeTree(age) ORDER BY (user_key, achievement_id)
SETTINGS index_granularity = 1024;

-- The same, time first, for the newest unlocks of all. One row per event: the one that counts is looked up in
-- achievement_unlock for the few that are shown.
CREATE TABLE IF NOT EXISTS achievement_unlock_feed__0 (
  ts DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  user_key String,
  achievement_id UInt16,
  age UInt64
) ENGINE = ReplacingMergeTree(age) ORDER BY (ts, user_key, achievement_id, age);

-- The score of every user; recomputed whole for touched users. Queried for the highest scores.
CREATE TABLE IF NOT EXISTS achievement_score__0 (
  user_key String,
  username String,
  score UInt32,
  achievements UInt32,
  version UInt64
) ENGINE = ReplacingMergeTree(version) ORDER BY user_key;
