-- Counts of one title at one instant. Always asked for one title and a stretch of time, so title, then time.
CREATE TABLE IF NOT EXISTS title_count (
  title_id LowCardinality(String),
  ts DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  online UInt32 CODEC(T64, ZSTD(1)),
  sessions Nullable(UInt32) CODEC(T64, ZSTD(1)),
  lobby_players Nullable(UInt32) CODEC(T64, ZSTD(1)),
  position UInt64 CODEC(Delta, T64, ZSTD(1))
) ENGINE = ReplacingMergeTree(position) PARTITION BY toYear(ts) ORDER BY (title_id, ts);

-- One row a title and hour that holds a sample; wide windows of one title. Recomputed whole from title_count.
CREATE TABLE IF NOT EXISTS title_count_hour (
  title_id LowCardinality(String),
  hour DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
  min UInt32 CODEC(T64, ZSTD(1)),
  max UInt32 CODEC(T64, ZSTD(1)),
  max_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  sum UInt64 CODEC(T64, ZSTD(1)),
  samples UInt32 CODEC(T64, ZSTD(1)),
  position UInt64 CODEC(DoubleDelta, ZSTD(1))
) ENGINE = ReplacingMergeTree(position) PARTITION BY toYear(hour) ORDER BY (title_id, hour);

-- One row a title and UTC day that holds a sample: all titles over weeks and months. Time leads, for every question is
-- about all titles. Recomputed whole from title_count_hour.
CREATE TABLE IF NOT EXISTS title_count_day (
  day Date CODEC(DoubleDelta, ZSTD(1)),
  title_id LowCardinality(String),
  min UInt32 CODEC(T64, ZSTD(1)),
  max UInt32 CODEC(T64, ZSTD(1)),
  max_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  sum UInt64 CODEC(T64, ZSTD(1)),
  samples UInt32 CODEC(T64, ZSTD(1)),
  active_hours UInt8,
  position UInt64 CODEC(Delta, ZSTD(1))
) ENGINE = ReplacingMergeTree(position) ORDER BY (day, title_id);

-- The newest counts of every title: one row a title, read whole. What was imported has a row of its own: a file that says
-- something newer of one title than the last scrape did must not pass for a scrape in which all other titles are missing.
CREATE TABLE IF NOT EXISTS title_latest (
  imported Bool,
  title_id LowCardinality(String),
  ts DateTime64(3, 'UTC'),
  online UInt32,
  sessions Nullable(UInt32),
  lobby_players Nullable(UInt32),
  version UInt128
) ENGINE = ReplacingMergeTree(version) ORDER BY (imported, title_id);
