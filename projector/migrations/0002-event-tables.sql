-- Event tables hold the events of one topic in log order. They are asked for ranges of the log, one partition at a
-- time (projections, rebuilds), so the position is the whole key; a row loaded twice is one row.
-- `position` orders events within a partition; `version` orders facts: by instant, then by position.
CREATE TABLE IF NOT EXISTS event_network_count (
  epoch UInt16 CODEC(Delta, ZSTD(1)),
  partition UInt16 CODEC(Delta, ZSTD(1)),
  offset UInt64 CODEC(DoubleDelta, ZSTD(1)),
  source LowCardinality(String),
  import_id LowCardinality(String),
  observed_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  registered Nullable(UInt32) CODEC(T64, ZSTD(1)),
  online Nullable(UInt32) CODEC(T64, ZSTD(1)),
  lobbies Nullable(UInt32) CODEC(T64, ZSTD(1)),
  position UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
  version UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

CREATE TABLE IF NOT EXISTS event_title_count (
  epoch UInt16 CODEC(Delta, ZSTD(1)),
  partition UInt16 CODEC(Delta, ZSTD(1)),
  offset UInt64 CODEC(DoubleDelta, ZSTD(1)),
  source LowCardinality(String),
  import_id LowCardinality(String),
  observed_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  title_id LowCardinality(String),
  online UInt32 CODEC(T64, ZSTD(1)),
  sessions Nullable(UInt32) CODEC(T64, ZSTD(1)),
  lobby_players Nullable(UInt32) CODEC(T64, ZSTD(1)),
  position UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
  version UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

-- An absent field is NULL. `name_key` is the name as it is compared without case, made by the loader.
CREATE TABLE IF NOT EXISTS event_title (
  epoch UInt16 CODEC(Delta, ZSTD(1)),
  partition UInt16 CODEC(Delta, ZSTD(1)),
  offset UInt64 CODEC(DoubleDelta, ZSTD(1)),
  source LowCardinality(String),
  import_id LowCardinality(String),
  observed_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  title_id LowCardinality(String),
  name String,
  name_key String,
  title Nullable(String),
  publisher Nullable(String),
  release_date Nullable(String),
  image Nullable(String),
  product_code Nullable(String),
  features Nullable(String),
  position UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
  version UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

CREATE TABLE IF NOT EXISTS event_scrape (
  epoch UInt16 CODEC(Delta, ZSTD(1)),
  partition UInt16 CODEC(Delta, ZSTD(1)),
  offset UInt64 CODEC(DoubleDelta, ZSTD(1)),
  source LowCardinality(String),
  import_id LowCardinality(String),
  observed_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  scrape_source LowCardinality(String),
  duration_ms UInt32,
  outcome LowCardinality(String),
  published UInt32,
  reason String,
  position UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
  version UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

CREATE TABLE IF NOT EXISTS event_import_run (
  epoch UInt16 CODEC(Delta, ZSTD(1)),
  partition UInt16 CODEC(Delta, ZSTD(1)),
  offset UInt64 CODEC(DoubleDelta, ZSTD(1)),
  source LowCardinality(String),
  import_id LowCardinality(String),
  observed_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  run_import_id String,
  topic LowCardinality(String),
  file String,
  rows_read UInt64,
  published UInt64,
  rejected UInt64,
  finished Bool,
  position UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
  version UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);
