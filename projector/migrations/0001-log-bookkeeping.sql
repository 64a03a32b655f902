-- How far the loader (name `load:<topic>`) and each projection (name `project:<projection>`) have come, per partition:
-- `next` is the first offset not yet taken. Asked by name at every step; a handful of rows. The highest `next` wins, so
-- that a process that lost a partition cannot turn its successor's checkpoint back.
CREATE TABLE IF NOT EXISTS checkpoint (
  name String,
  epoch UInt16,
  partition UInt16,
  next UInt64,
  updated_at DateTime64(3, 'UTC') DEFAULT now64(3)
) ENGINE = ReplacingMergeTree(next) ORDER BY (name, epoch, partition);

-- Messages that could not be read, as they stood in the log. Asked for by topic and position, rarely; a few rows.
-- `value` is base64, because a message need not be UTF-8.
CREATE TABLE IF NOT EXISTS parked_message (
  topic LowCardinality(String),
  epoch UInt16,
  partition UInt16,
  offset UInt64,
  reason String,
  message_key String,
  headers Map(String, String),
  value String,
  parked_at DateTime64(3, 'UTC') DEFAULT now64(3)
) ENGINE = ReplacingMergeTree(parked_at) ORDER BY (topic, epoch, partition, offset);

-- What each projection step changed: which projection's table, which key (`*`: many), which instants, and the data
-- version that answers about them have from then on. Readers ask only for rows behind the newest version that they
-- know, so version leads.
CREATE TABLE IF NOT EXISTS data_change (
  version UInt64,
  `projection` LowCardinality(String), -- quoted: bare, it would begin a PROJECTION
  key String,
  from_ms Int64,
  to_ms Int64
) ENGINE = ReplacingMergeTree ORDER BY (version, projection, key, from_ms, to_ms);
