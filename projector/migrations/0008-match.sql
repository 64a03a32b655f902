-- Event table of match lists; see 0002. The three arrays run side by side, a lobby each.
CREATE TABLE IF NOT EXISTS event_match_list (
  epoch UInt16 CODEC(Delta, ZSTD(1)),
  partition UInt16 CODEC(Delta, ZSTD(1)),
  offset UInt64 CODEC(DoubleDelta, ZSTD(1)),
  source LowCardinality(String),
  import_id LowCardinality(String),
  observed_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  title_id LowCardinality(String),
  hosts Array(String),
  players Array(UInt32),
  max_players Array(UInt32),
  position UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
  version UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

-- The lobbies of one title at one instant; sessions are made of them. Asked for one title and a stretch of time.
CREATE TABLE IF NOT EXISTS match_list (
  title_id LowCardinality(String),
  ts DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  hosts Array(String),
  players Array(UInt32),
  max_players Array(UInt32),
  position UInt64 CODEC(Delta, ZSTD(1))
) ENGINE = ReplacingMergeTree(position) PARTITION BY toYear(ts) ORDER BY (title_id, ts);

-- The newest list of every title: one row a title, read whole.
CREATE TABLE IF NOT EXISTS match_latest (
  title_id LowCardinality(String),
  ts DateTime64(3, 'UTC'),
  hosts Array(String),
  players Array(UInt32),
  max_players Array(UInt32),
  version UInt128
) ENGINE = ReplacingMergeTree(version) ORDER BY title_id;

-- One row a title and hour that holds a list: statistics over weeks. Recomputed whole from match_list.
CREATE TABLE IF NOT EXISTS match_list_hour (
  title_id LowCardinality(String),
  hour DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
  lists UInt32,
  lobbies UInt64,
  players UInt64,
  lobbies_max UInt32,
  lobbies_max_at DateTime64(3, 'UTC'),
  position UInt64
) ENGINE = ReplacingMergeTree(position) PARTITION BY toYear(hour) ORDER BY (title_id, hour);

-- A match: the n-th lobby of a host in successive lists of a title. Asked for one title and a stretch of time, and by the
-- projection for the matches that were seen last: matches are short, so that the index of `last_seen` leaves out nearly all
-- granules of years; small ones, for a title's newest matches are few. A late list can split or join matches; the row of one that is no more says so (`is_void`). Version:
-- the newest position of the title's lists that were folded, never less than a row that it replaces.
CREATE TABLE IF NOT EXISTS match_session (
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
