-- Event tables of the write side; see 0002. `revision` is that of the write side: the higher one is the newer state.
CREATE TABLE IF NOT EXISTS event_profile (
  epoch UInt16 CODEC(Delta, ZSTD(1)),
  partition UInt16 CODEC(Delta, ZSTD(1)),
  offset UInt64 CODEC(DoubleDelta, ZSTD(1)),
  source LowCardinality(String),
  import_id LowCardinality(String),
  observed_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
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
  position UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
  version UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

CREATE TABLE IF NOT EXISTS event_rating (
  epoch UInt16 CODEC(Delta, ZSTD(1)),
  partition UInt16 CODEC(Delta, ZSTD(1)),
  offset UInt64 CODEC(DoubleDelta, ZSTD(1)),
  source LowCardinality(String),
  import_id LowCardinality(String),
  observed_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  user_key String,
  username String,
  rater_key String,
  rater String,
  stars UInt8,
  comment Nullable(String),
  revision UInt64,
  position UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
  version UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

-- The newest state of every profile. Asked for one user, and by gamertag; `gamertag_key` is '' where none is linked.
CREATE TABLE IF NOT EXISTS profile (
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

-- The rating that counts of every rater and profile. Asked for one profile: what it was given.
CREATE TABLE IF NOT EXISTS rating (
  user_key String,
  rater_key String,
  username String,
  rater String,
  stars UInt8,
  comment Nullable(String),
  ts DateTime64(3, 'UTC'),
  revision UInt64
) ENGINE = ReplacingMergeTree(revision) ORDER BY (user_key, rater_key);

-- The same, rater first: what a user gave.
CREATE TABLE IF NOT EXISTS rating_given (
  rater_key String,
  user_key String,
  stars UInt8,
  ts DateTime64(3, 'UTC'),
  revision UInt64
) ENGINE = ReplacingMergeTree(revision) ORDER BY (rater_key, user_key);
