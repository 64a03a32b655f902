-- Parts of the log that its retention took before they were loaded, and that an operator accepted as missing: offsets
-- `first` to below `next`. Asked for as a whole by those who wonder what the tables lack; a handful of rows.
CREATE TABLE IF NOT EXISTS log_gap (
  topic LowCardinality(String),
  epoch UInt16,
  partition UInt16,
  first UInt64,
  next UInt64,
  loaded_at Nullable(DateTime64(3, 'UTC')), -- when the last event before the gap was loaded
  accepted_at DateTime64(3, 'UTC') DEFAULT now64(3)
) ENGINE = ReplacingMergeTree(accepted_at) ORDER BY (topic, epoch, partition, first);
