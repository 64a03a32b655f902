-- Titles that left the network or came back, in log order. Read in ranges of it.
CREATE TABLE IF NOT EXISTS event_title_status (
  epoch UInt16 CODEC(Delta, ZSTD(1)),
  partition UInt16 CODEC(Delta, ZSTD(1)),
  offset UInt64 CODEC(DoubleDelta, ZSTD(1)),
  source LowCardinality(String),
  import_id LowCardinality(String),
  observed_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  title_id LowCardinality(String),
  on_network Bool,
  position UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
  version UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

-- One row per title that ever left: a few hundred, read whole. Titles without a row are on the network.
CREATE TABLE IF NOT EXISTS title_status (
  title_id LowCardinality(String),
  on_network Bool,
  ts DateTime64(3, 'UTC'),
  version UInt128
) ENGINE = ReplacingMergeTree(version) ORDER BY title_id;
