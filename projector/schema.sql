CREATE TABLE checkpoint
(
    `name` String,
    `epoch` UInt16,
    `partition` UInt16,
    `next` UInt64,
    `updated_at` DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(next)
ORDER BY (name, epoch, partition);

CREATE TABLE data_change
(
    `version` UInt64,
    `projection` LowCardinality(String),
    `key` String,
    `from_ms` Int64,
    `to_ms` Int64
)
ENGINE = ReplacingMergeTree
ORDER BY (version, projection, key, from_ms, to_ms);

CREATE TABLE event_import_run
(
    `epoch` UInt16 CODEC(Delta(2), ZSTD(1)),
    `partition` UInt16 CODEC(Delta(2), ZSTD(1)),
    `offset` UInt64 CODEC(DoubleDelta, ZSTD(1)),
    `source` LowCardinality(String),
    `import_id` LowCardinality(String),
    `observed_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `run_import_id` String,
    `topic` LowCardinality(String),
    `file` String,
    `rows_read` UInt64,
    `published` UInt64,
    `rejected` UInt64,
    `finished` Bool,
    `position` UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
    `version` UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
)
ENGINE = ReplacingMergeTree
ORDER BY (epoch, partition, offset);

CREATE TABLE event_network_count
(
    `epoch` UInt16 CODEC(Delta(2), ZSTD(1)),
    `partition` UInt16 CODEC(Delta(2), ZSTD(1)),
    `offset` UInt64 CODEC(DoubleDelta, ZSTD(1)),
    `source` LowCardinality(String),
    `import_id` LowCardinality(String),
    `observed_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `registered` Nullable(UInt32) CODEC(T64, ZSTD(1)),
    `online` Nullable(UInt32) CODEC(T64, ZSTD(1)),
    `lobbies` Nullable(UInt32) CODEC(T64, ZSTD(1)),
    `position` UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
    `version` UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
)
ENGINE = ReplacingMergeTree
ORDER BY (epoch, partition, offset);

CREATE TABLE event_scrape
(
    `epoch` UInt16 CODEC(Delta(2), ZSTD(1)),
    `partition` UInt16 CODEC(Delta(2), ZSTD(1)),
    `offset` UInt64 CODEC(DoubleDelta, ZSTD(1)),
    `source` LowCardinality(String),
    `import_id` LowCardinality(String),
    `observed_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `scrape_source` LowCardinality(String),
    `duration_ms` UInt32,
    `outcome` LowCardinality(String),
    `published` UInt32,
    `reason` String,
    `position` UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
    `version` UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
)
ENGINE = ReplacingMergeTree
ORDER BY (epoch, partition, offset);

CREATE TABLE event_title
(
    `epoch` UInt16 CODEC(Delta(2), ZSTD(1)),
    `partition` UInt16 CODEC(Delta(2), ZSTD(1)),
    `offset` UInt64 CODEC(DoubleDelta, ZSTD(1)),
    `source` LowCardinality(String),
    `import_id` LowCardinality(String),
    `observed_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `title_id` LowCardinality(String),
    `name` String,
    `name_key` String,
    `title` Nullable(String),
    `publisher` Nullable(String),
    `release_date` Nullable(String),
    `image` Nullable(String),
    `product_code` Nullable(String),
    `features` Nullable(String),
    `position` UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
    `version` UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
)
ENGINE = ReplacingMergeTree
ORDER BY (epoch, partition, offset);

CREATE TABLE event_title_count
(
    `epoch` UInt16 CODEC(Delta(2), ZSTD(1)),
    `partition` UInt16 CODEC(Delta(2), ZSTD(1)),
    `offset` UInt64 CODEC(DoubleDelta, ZSTD(1)),
    `source` LowCardinality(String),
    `import_id` LowCardinality(String),
    `observed_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `title_id` LowCardinality(String),
    `online` UInt32 CODEC(T64, ZSTD(1)),
    `sessions` Nullable(UInt32) CODEC(T64, ZSTD(1)),
    `lobby_players` Nullable(UInt32) CODEC(T64, ZSTD(1)),
    `position` UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
    `version` UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
)
ENGINE = ReplacingMergeTree
ORDER BY (epoch, partition, offset);

CREATE TABLE import_run
(
    `import_id` String,
    `ts` DateTime64(3, 'UTC'),
    `topic` LowCardinality(String),
    `file` String,
    `rows_read` UInt64,
    `published` UInt64,
    `rejected` UInt64,
    `finished` Bool,
    `position` UInt64
)
ENGINE = ReplacingMergeTree(position)
ORDER BY import_id;

CREATE TABLE network_count
(
    `metric` LowCardinality(String),
    `ts` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `value` UInt32 CODEC(T64, ZSTD(1)),
    `position` UInt64 CODEC(DoubleDelta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(position)
PARTITION BY toYear(ts)
ORDER BY (metric, ts);

CREATE TABLE network_count_hour
(
    `metric` LowCardinality(String),
    `hour` DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
    `min` UInt32 CODEC(T64, ZSTD(1)),
    `max` UInt32 CODEC(T64, ZSTD(1)),
    `max_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `sum` UInt64 CODEC(T64, ZSTD(1)),
    `samples` UInt32 CODEC(T64, ZSTD(1)),
    `last` UInt32 CODEC(T64, ZSTD(1)),
    `last_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `position` UInt64 CODEC(DoubleDelta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(position)
ORDER BY (metric, hour);

CREATE TABLE parked_message
(
    `topic` LowCardinality(String),
    `epoch` UInt16,
    `partition` UInt16,
    `offset` UInt64,
    `reason` String,
    `message_key` String,
    `headers` Map(String, String),
    `value` String,
    `parked_at` DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(parked_at)
ORDER BY (topic, epoch, partition, offset);

CREATE TABLE schema_migration
(
    `name` String,
    `checksum` String,
    `applied_at` DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(applied_at)
ORDER BY name;

CREATE TABLE scrape
(
    `source` LowCardinality(String),
    `ts` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `duration_ms` UInt32 CODEC(T64, ZSTD(1)),
    `outcome` LowCardinality(String),
    `published` UInt32 CODEC(T64, ZSTD(1)),
    `reason` String,
    `position` UInt64 CODEC(DoubleDelta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(position)
ORDER BY (source, ts);

CREATE TABLE title
(
    `title_id` LowCardinality(String),
    `field` LowCardinality(String),
    `value` String,
    `name_key` String,
    `version` UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (title_id, field);

CREATE TABLE title_count
(
    `title_id` LowCardinality(String),
    `ts` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `online` UInt32 CODEC(T64, ZSTD(1)),
    `sessions` Nullable(UInt32) CODEC(T64, ZSTD(1)),
    `lobby_players` Nullable(UInt32) CODEC(T64, ZSTD(1)),
    `position` UInt64 CODEC(Delta(8), T64, ZSTD(1))
)
ENGINE = ReplacingMergeTree(position)
PARTITION BY toYear(ts)
ORDER BY (title_id, ts);

CREATE TABLE title_count_day
(
    `day` Date CODEC(DoubleDelta, ZSTD(1)),
    `title_id` LowCardinality(String),
    `min` UInt32 CODEC(T64, ZSTD(1)),
    `max` UInt32 CODEC(T64, ZSTD(1)),
    `max_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `sum` UInt64 CODEC(T64, ZSTD(1)),
    `samples` UInt32 CODEC(T64, ZSTD(1)),
    `active_hours` UInt8,
    `position` UInt64 CODEC(Delta(8), ZSTD(1))
)
ENGINE = ReplacingMergeTree(position)
ORDER BY (day, title_id);

CREATE TABLE title_count_hour
(
    `title_id` LowCardinality(String),
    `hour` DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
    `min` UInt32 CODEC(T64, ZSTD(1)),
    `max` UInt32 CODEC(T64, ZSTD(1)),
    `max_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `sum` UInt64 CODEC(T64, ZSTD(1)),
    `samples` UInt32 CODEC(T64, ZSTD(1)),
    `position` UInt64 CODEC(DoubleDelta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(position)
PARTITION BY toYear(hour)
ORDER BY (title_id, hour);

CREATE TABLE title_latest
(
    `imported` Bool,
    `title_id` LowCardinality(String),
    `ts` DateTime64(3, 'UTC'),
    `online` UInt32,
    `sessions` Nullable(UInt32),
    `lobby_players` Nullable(UInt32),
    `version` UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (imported, title_id);
