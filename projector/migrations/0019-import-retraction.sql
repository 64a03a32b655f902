-- Imports that were taken back, in log order. Read in stretches of it.
CREATE TABLE IF NOT EXISTS event_import_retraction (
  epoch UInt16 CODEC(Delta, ZSTD(1)),
  partition UInt16 CODEC(Delta, ZSTD(1)),
  offset UInt64 CODEC(DoubleDelta, ZSTD(1)),
  source LowCardinality(String),
  import_id LowCardinality(String),
  observed_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  retracted_import_id String,
  topic LowCardinality(String),
  position UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
  version UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

-- One row an import that was taken back; asked for whole by topic, and by id. A handful of rows.
CREATE TABLE IF NOT EXISTS import_retraction (
  import_id String,
  topic LowCardinality(String),
  ts DateTime64(3, 'UTC'),
  position UInt64
) ENGINE = ReplacingMergeTree(position) ORDER BY import_id;
