-- Every run of a source, asked for the newest of each source and for stretches of one.
CREATE TABLE IF NOT EXISTS scrape (
  source LowCardinality(String),
  ts DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  duration_ms UInt32 CODEC(T64, ZSTD(1)),
  outcome LowCardinality(String),
  published UInt32 CODEC(T64, ZSTD(1)),
  reason String,
  position UInt64 CODEC(DoubleDelta, ZSTD(1))
) ENGINE = ReplacingMergeTree(position) ORDER BY (source, ts);

-- How far each import has come: one row an import, the newest news of it. Asked for by id, listed rarely.
CREATE TABLE IF NOT EXISTS import_run (
  import_id String,
  ts DateTime64(3, 'UTC'),
  topic LowCardinality(String),
  file String,
  rows_read UInt64,
  published UInt64,
  rejected UInt64,
  finished Bool,
  position UInt64
) ENGINE = ReplacingMergeTree(position) ORDER BY import_id;
