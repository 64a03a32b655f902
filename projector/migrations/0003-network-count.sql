-- Counts of the network, one row a metric and instant: sources give registered, online and lobbies together or apart,
-- and a file with one of them must not erase another. Always asked for one metric and a stretch of time, oldest first.
-- The key holds the instant, so the position alone says which of two rows is newer.
CREATE TABLE IF NOT EXISTS network_count (
  metric LowCardinality(String),
  ts DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  value UInt32 CODEC(T64, ZSTD(1)),
  position UInt64 CODEC(DoubleDelta, ZSTD(1))
) ENGINE = ReplacingMergeTree(position) PARTITION BY toYear(ts) ORDER BY (metric, ts);

-- One row a metric and hour that holds a sample: wide windows, days, coverage, the last count of a day. Recomputed whole
-- from network_count; `position` is the newest one among its samples, so a recomputed row replaces the one before.
CREATE TABLE IF NOT EXISTS network_count_hour (
  metric LowCardinality(String),
  hour DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
  min UInt32 CODEC(T64, ZSTD(1)),
  max UInt32 CODEC(T64, ZSTD(1)),
  max_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  sum UInt64 CODEC(T64, ZSTD(1)),
  samples UInt32 CODEC(T64, ZSTD(1)),
  last UInt32 CODEC(T64, ZSTD(1)),
  last_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  position UInt64 CODEC(DoubleDelta, ZSTD(1))
) ENGINE = ReplacingMergeTree(position) ORDER BY (metric, hour);
