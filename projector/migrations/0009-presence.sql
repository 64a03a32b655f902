-- Event table of presence; see 0002. A user_key is a username as it is compared without case, made by the loader. In the
-- log these events are sealed; here they are plain, until the person is forgotten and the rows are deleted.
CREATE TABLE IF NOT EXISTS event_presence (
  epoch UInt16 CODEC(Delta, ZSTD(1)),
  partition UInt16 CODEC(Delta, ZSTD(1)),
  offset UInt64 CODEC(DoubleDelta, ZSTD(1)),
  source LowCardinality(String),
  import_id LowCardinality(String),
  observed_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  user_key String,
  username String,
  gamertag String,
  gamertag_key String,
  is_online Bool,
  game String,
  period_s UInt32,
  position UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
  version UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

-- Every sighting, one row a user and instant. Asked for some hundred users and a stretch of days, every minute: play time is
-- made of it. Small granules, or most of what is read is other users' and other days'.
CREATE TABLE IF NOT EXISTS presence (
  user_key String,
  ts DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  is_online Bool,
  game LowCardinality(String),
  period_s UInt32,
  position UInt64
) ENGINE = ReplacingMergeTree(position) PARTITION BY toYear(ts) ORDER BY (user_key, ts)
SETTINGS index_granularity = 1024;

-- What is known of a user from presence, one row a field, each the newest by itself: `username` (its spelling), `seen` (the
-- newest sighting: online or offline), `online` (the newest sighting online), `game` (the newest sighting in a game: its
-- name), `gamertag` (the newest). `ts` is the instant of that sighting. Asked for one user, and by gamertag for who plays
-- under a name.
CREATE TABLE IF NOT EXISTS presence_latest (
  user_key String,
  field LowCardinality(String),
  value String,
  value_key String,
  ts DateTime64(3, 'UTC'),
  version UInt128,
  INDEX by_value value_key TYPE bloom_filter(0.01) GRANULARITY 1
) ENGINE = ReplacingMergeTree(version) ORDER BY (user_key, field)
SETTINGS index_granularity = 1024;

-- Every gamertag that presence ever saw a user with. Asked by gamertag: whose entries on boards these are.
CREATE TABLE IF NOT EXISTS user_gamertag (
  gamertag_key String,
  user_key String
) ENGINE = ReplacingMergeTree ORDER BY (gamertag_key, user_key)
SETTINGS index_granularity = 1024;

-- One row a user and UTC day that holds a sighting: how often seen, when last, and the whole seconds played by game.
-- Recomputed whole from `presence`, so that a late sighting leaves no orphan; a day that has nothing left gets an empty row.
-- `last_at` of a day that was only played through is its end. Asked for a thousand users at once: small granules, or most
-- of what is read is others'.
CREATE TABLE IF NOT EXISTS presence_day (
  user_key String,
  day Date,
  sightings UInt32,
  online_sightings UInt32,
  last_at DateTime64(3, 'UTC'),
  seconds Map(String, UInt32),
  position UInt64
) ENGINE = ReplacingMergeTree(position) ORDER BY (user_key, day)
SETTINGS index_granularity = 256;
