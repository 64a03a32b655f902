CREATE TABLE achievement_score__0
(
    `user_key` String,
    `username` String,
    `score` UInt32,
    `achievements` UInt32,
    `version` UInt64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY user_key;

CREATE TABLE achievement_unlock__0
(
    `user_key` String,
    `achievement_id` UInt16,
    `username` String,
    `points` UInt16,
    `ts` DateTime64(3, 'UTC'),
    `age` UInt64
)
ENGINE = ReplacingMergeTree(age)
ORDER BY (user_key, achievement_id)
SETTINGS index_granularity = 1024;

CREATE TABLE achievement_unlock_feed__0
(
    `ts` DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `user_key` String,
    `achievement_id` UInt16,
    `age` UInt64
)
ENGINE = ReplacingMergeTree(age)
ORDER BY (ts, user_key, achievement_id, age);

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

CREATE TABLE damage
(
    `kind` LowCardinality(String),
    `name` String,
    `reason` String,
    `found_at` DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree
ORDER BY (kind, name, found_at);

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

CREATE TABLE dead_letter
(
    `topic` LowCardinality(String),
    `epoch` UInt16,
    `partition` UInt16,
    `offset` UInt64,
    `recorded_at` DateTime64(3, 'UTC'),
    `reason` String,
    `message_key` String,
    `headers` Map(String, String),
    `value` String,
    `stored_at` DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(stored_at)
ORDER BY (topic, epoch, partition, offset);

CREATE TABLE dead_letter_decision
(
    `topic` LowCardinality(String),
    `epoch` UInt16,
    `partition` UInt16,
    `offset` UInt64,
    `decision` LowCardinality(String),
    `decided_at` DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(decided_at)
ORDER BY (topic, epoch, partition, offset);

CREATE VIEW dead_letter_state
(
    `topic` LowCardinality(String),
    `epoch` UInt16,
    `partition` UInt16,
    `offset` UInt64,
    `reason` String,
    `stored_at` DateTime64(3, 'UTC'),
    `bytes` Int64,
    `state` String
)
AS SELECT
    p.topic AS topic,
    p.epoch AS epoch,
    p.partition AS partition,
    p.offset AS offset,
    p.reason AS reason,
    p.stored_at AS stored_at,
    (intDiv(length(p.value), 4) * 3) - length(extract(p.value, '=*$')) AS bytes,
    if((d.decision = 'dropped') OR (d.decided_at >= p.stored_at), d.decision, 'stored') AS state
FROM dead_letter AS p
FINAL
LEFT JOIN dead_letter_decision AS d
FINAL ON (d.topic = p.topic) AND (d.epoch = p.epoch) AND (d.partition = p.partition) AND (d.offset = p.offset);

CREATE TABLE erasure
(
    `name_hash` String,
    `erased_at` DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(erased_at)
ORDER BY name_hash;

CREATE TABLE event_achievement_unlock__0
(
    `epoch` UInt16 CODEC(Delta(2), ZSTD(1)),
    `partition` UInt16 CODEC(Delta(2), ZSTD(1)),
    `offset` UInt64 CODEC(DoubleDelta, ZSTD(1)),
    `source` LowCardinality(String),
    `import_id` LowCardinality(String),
    `observed_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `recorded_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `user_key` String,
    `username` String,
    `achievement_id` UInt16,
    `points` UInt16,
    `position` UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
    `version` UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
)
ENGINE = ReplacingMergeTree
ORDER BY (epoch, partition, offset);

CREATE TABLE event_import_retraction__0
(
    `epoch` UInt16 CODEC(Delta(2), ZSTD(1)),
    `partition` UInt16 CODEC(Delta(2), ZSTD(1)),
    `offset` UInt64 CODEC(DoubleDelta, ZSTD(1)),
    `source` LowCardinality(String),
    `import_id` LowCardinality(String),
    `observed_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `recorded_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `retracted_import_id` String,
    `topic` LowCardinality(String),
    `position` UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
    `version` UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
)
ENGINE = ReplacingMergeTree
ORDER BY (epoch, partition, offset);

CREATE TABLE event_import_run__0
(
    `epoch` UInt16 CODEC(Delta(2), ZSTD(1)),
    `partition` UInt16 CODEC(Delta(2), ZSTD(1)),
    `offset` UInt64 CODEC(DoubleDelta, ZSTD(1)),
    `source` LowCardinality(String),
    `import_id` LowCardinality(String),
    `observed_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `recorded_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
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

CREATE TABLE event_leaderboard__0
(
    `epoch` UInt16 CODEC(Delta(2), ZSTD(1)),
    `partition` UInt16 CODEC(Delta(2), ZSTD(1)),
    `offset` UInt64 CODEC(DoubleDelta, ZSTD(1)),
    `source` LowCardinality(String),
    `import_id` LowCardinality(String),
    `observed_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `recorded_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `title_id` LowCardinality(String),
    `leaderboard_id` UInt32,
    `name` String,
    `listed` Bool,
    `position` UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
    `version` UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
)
ENGINE = ReplacingMergeTree
ORDER BY (epoch, partition, offset);

CREATE TABLE event_leaderboard_entry__0
(
    `epoch` UInt16 CODEC(Delta(2), ZSTD(1)),
    `partition` UInt16 CODEC(Delta(2), ZSTD(1)),
    `offset` UInt64 CODEC(DoubleDelta, ZSTD(1)),
    `source` LowCardinality(String),
    `import_id` LowCardinality(String),
    `observed_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `recorded_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `title_id` LowCardinality(String),
    `leaderboard_id` UInt32,
    `player` String,
    `player_key` String,
    `occurrence` UInt16,
    `change` LowCardinality(String),
    `rating` String,
    `time_ms` Nullable(UInt32),
    `is_ascending` Bool,
    `stated_rank` Nullable(Int32),
    `ord` Nullable(Int64),
    `step` Nullable(Int64),
    `details` String,
    `position` UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
    `version` UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
)
ENGINE = ReplacingMergeTree
ORDER BY (epoch, partition, offset);

CREATE TABLE event_match_list__0
(
    `epoch` UInt16 CODEC(Delta(2), ZSTD(1)),
    `partition` UInt16 CODEC(Delta(2), ZSTD(1)),
    `offset` UInt64 CODEC(DoubleDelta, ZSTD(1)),
    `source` LowCardinality(String),
    `import_id` LowCardinality(String),
    `observed_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `recorded_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `title_id` LowCardinality(String),
    `hosts` Array(String),
    `players` Array(UInt32),
    `max_players` Array(UInt32),
    `position` UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
    `version` UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
)
ENGINE = ReplacingMergeTree
ORDER BY (epoch, partition, offset);

CREATE TABLE event_network_count__0
(
    `epoch` UInt16 CODEC(Delta(2), ZSTD(1)),
    `partition` UInt16 CODEC(Delta(2), ZSTD(1)),
    `offset` UInt64 CODEC(DoubleDelta, ZSTD(1)),
    `source` LowCardinality(String),
    `import_id` LowCardinality(String),
    `observed_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `recorded_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `registered` Nullable(UInt32) CODEC(T64, ZSTD(1)),
    `online` Nullable(UInt32) CODEC(T64, ZSTD(1)),
    `lobbies` Nullable(UInt32) CODEC(T64, ZSTD(1)),
    `position` UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
    `version` UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
)
ENGINE = ReplacingMergeTree
ORDER BY (epoch, partition, offset);

CREATE TABLE event_presence__0
(
    `epoch` UInt16 CODEC(Delta(2), ZSTD(1)),
    `partition` UInt16 CODEC(Delta(2), ZSTD(1)),
    `offset` UInt64 CODEC(DoubleDelta, ZSTD(1)),
    `source` LowCardinality(String),
    `import_id` LowCardinality(String),
    `observed_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `recorded_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `user_key` String,
    `username` String,
    `gamertag` String,
    `gamertag_key` String,
    `is_online` Bool,
    `game` String,
    `period_s` UInt32,
    `position` UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
    `version` UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
)
ENGINE = ReplacingMergeTree
ORDER BY (epoch, partition, offset);

CREATE TABLE event_profile__0
(
    `epoch` UInt16 CODEC(Delta(2), ZSTD(1)),
    `partition` UInt16 CODEC(Delta(2), ZSTD(1)),
    `offset` UInt64 CODEC(DoubleDelta, ZSTD(1)),
    `source` LowCardinality(String),
    `import_id` LowCardinality(String),
    `observed_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `recorded_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `user_key` String,
    `username` String,
    `revision` UInt64,
    `avatar_url` String,
    `avatar_hue` Nullable(UInt16),
    `chat_profile_url` String,
    `display_name_override` Nullable(String),
    `linked_gamertag` String,
    `linked_gamertag_key` String,
    `console_verified` Bool,
    `bio` String,
    `social_links` String,
    `position` UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
    `version` UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
)
ENGINE = ReplacingMergeTree
ORDER BY (epoch, partition, offset);

CREATE TABLE event_rating__0
(
    `epoch` UInt16 CODEC(Delta(2), ZSTD(1)),
    `partition` UInt16 CODEC(Delta(2), ZSTD(1)),
    `offset` UInt64 CODEC(DoubleDelta, ZSTD(1)),
    `source` LowCardinality(String),
    `import_id` LowCardinality(String),
    `observed_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `recorded_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `user_key` String,
    `username` String,
    `rater_key` String,
    `rater` String,
    `stars` UInt8,
    `comment` Nullable(String),
    `revision` UInt64,
    `position` UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
    `version` UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
)
ENGINE = ReplacingMergeTree
ORDER BY (epoch, partition, offset);

CREATE TABLE event_scrape__0
(
    `epoch` UInt16 CODEC(Delta(2), ZSTD(1)),
    `partition` UInt16 CODEC(Delta(2), ZSTD(1)),
    `offset` UInt64 CODEC(DoubleDelta, ZSTD(1)),
    `source` LowCardinality(String),
    `import_id` LowCardinality(String),
    `observed_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `recorded_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
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

CREATE TABLE event_title__0
(
    `epoch` UInt16 CODEC(Delta(2), ZSTD(1)),
    `partition` UInt16 CODEC(Delta(2), ZSTD(1)),
    `offset` UInt64 CODEC(DoubleDelta, ZSTD(1)),
    `source` LowCardinality(String),
    `import_id` LowCardinality(String),
    `observed_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `recorded_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
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

CREATE TABLE event_title_count__0
(
    `epoch` UInt16 CODEC(Delta(2), ZSTD(1)),
    `partition` UInt16 CODEC(Delta(2), ZSTD(1)),
    `offset` UInt64 CODEC(DoubleDelta, ZSTD(1)),
    `source` LowCardinality(String),
    `import_id` LowCardinality(String),
    `observed_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `recorded_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `title_id` LowCardinality(String),
    `online` UInt32 CODEC(T64, ZSTD(1)),
    `sessions` Nullable(UInt32) CODEC(T64, ZSTD(1)),
    `lobby_players` Nullable(UInt32) CODEC(T64, ZSTD(1)),
    `position` UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
    `version` UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
)
ENGINE = ReplacingMergeTree
ORDER BY (epoch, partition, offset);

CREATE TABLE event_title_status__0
(
    `epoch` UInt16 CODEC(Delta(2), ZSTD(1)),
    `partition` UInt16 CODEC(Delta(2), ZSTD(1)),
    `offset` UInt64 CODEC(DoubleDelta, ZSTD(1)),
    `source` LowCardinality(String),
    `import_id` LowCardinality(String),
    `observed_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `recorded_at` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `title_id` LowCardinality(String),
    `on_network` Bool,
    `position` UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
    `version` UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
)
ENGINE = ReplacingMergeTree
ORDER BY (epoch, partition, offset);

CREATE TABLE generation_pointer
(
    `owner` LowCardinality(String),
    `tables` Array(String),
    `writes` UInt32,
    `reads` UInt32,
    `reads_changed` UInt64,
    `version` UInt64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY owner;

CREATE TABLE generation_statement
(
    `name` LowCardinality(String),
    `generation` UInt32,
    `version` UInt32,
    `hash` String
)
ENGINE = ReplacingMergeTree
ORDER BY (name, generation, version, hash);

CREATE TABLE import_retraction__0
(
    `import_id` String,
    `topic` LowCardinality(String),
    `ts` DateTime64(3, 'UTC'),
    `position` UInt64
)
ENGINE = ReplacingMergeTree(position)
ORDER BY import_id;

CREATE TABLE import_run__0
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

CREATE TABLE late_batch
(
    `id` String,
    `topic` LowCardinality(String),
    `positions` Array(Tuple(
        UInt16,
        UInt16,
        UInt64)),
    `stored_at` DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree
ORDER BY id;

CREATE TABLE late_batch_taken
(
    `id` String,
    `taker` LowCardinality(String)
)
ENGINE = ReplacingMergeTree
ORDER BY (id, taker);

CREATE TABLE leaderboard__0
(
    `title_id` LowCardinality(String),
    `leaderboard_id` UInt32,
    `ts` DateTime64(3, 'UTC'),
    `name` String,
    `listed` Bool,
    `position` UInt64
)
ENGINE = ReplacingMergeTree(position)
ORDER BY (title_id, leaderboard_id, ts);

CREATE TABLE leaderboard_change__0
(
    `ts` DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `title_id` LowCardinality(String),
    `leaderboard_id` UInt32,
    `epoch` UInt16,
    `partition` UInt16,
    `offset` UInt64,
    `recorded_epoch` UInt16,
    `recorded_partition` UInt16,
    `recorded_offset` UInt64,
    `is_change` Bool,
    `change` LowCardinality(String),
    `player` String,
    `player_key` String,
    `occurrence` UInt16,
    `previous_rank` Nullable(Int64),
    `new_rank` Nullable(Int64),
    `previous_rating` Nullable(String),
    `new_rating` Nullable(String),
    `previous_time_ms` Nullable(UInt32),
    `new_time_ms` Nullable(UInt32),
    `is_time` Bool,
    `version` UInt64,
    INDEX by_player player_key TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (ts, title_id, leaderboard_id, epoch, partition, offset);

CREATE TABLE leaderboard_entry__0
(
    `title_id` LowCardinality(String),
    `leaderboard_id` UInt32,
    `player` String,
    `occurrence` UInt16,
    `player_key` String,
    `is_gone` Bool,
    `rank` Int64,
    `place` UInt32,
    `rating` String,
    `time_ms` Nullable(UInt32),
    `stated_rank` Nullable(Int32),
    `ord` Nullable(Int64),
    `step` Nullable(Int64),
    `details` String,
    `first_at` DateTime64(3, 'UTC'),
    `ts` DateTime64(3, 'UTC'),
    `version` UInt64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (title_id, leaderboard_id, player, occurrence)
SETTINGS index_granularity = 1024, min_compress_block_size = 16384;

CREATE TABLE leaderboard_feed__0
(
    `recorded_epoch` UInt16,
    `recorded_partition` UInt16,
    `recorded_offset` UInt64 CODEC(Delta(8), ZSTD(1)),
    `epoch` UInt16,
    `partition` UInt16,
    `offset` UInt64,
    `ts` DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `title_id` LowCardinality(String),
    `leaderboard_id` UInt32,
    `is_change` Bool,
    `change` LowCardinality(String),
    `player` String,
    `player_key` String,
    `occurrence` UInt16,
    `previous_rank` Nullable(Int64),
    `new_rank` Nullable(Int64),
    `previous_rating` Nullable(String),
    `new_rating` Nullable(String),
    `previous_time_ms` Nullable(UInt32),
    `new_time_ms` Nullable(UInt32),
    `is_time` Bool,
    `version` UInt64,
    INDEX by_player player_key TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (recorded_epoch, recorded_partition, recorded_offset, epoch, partition, offset);

CREATE TABLE leaderboard_history__0
(
    `title_id` LowCardinality(String),
    `leaderboard_id` UInt32,
    `player` String,
    `occurrence` UInt16,
    `ts` DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `content` UInt64,
    `player_key` String,
    `is_gone` Bool,
    `rating` String,
    `time_ms` Nullable(UInt32),
    `is_ascending` Bool,
    `stated_rank` Nullable(Int32),
    `ord` Nullable(Int64),
    `step` Nullable(Int64),
    `details` String,
    `epoch` UInt16,
    `partition` UInt16,
    `offset` UInt64,
    `position` UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
    `age` UInt64 MATERIALIZED bitNot(bitOr(bitShiftLeft(toUInt64(epoch), 48), offset))
)
ENGINE = ReplacingMergeTree(age)
ORDER BY (title_id, leaderboard_id, player, occurrence, ts, content);

CREATE TABLE log_gap
(
    `topic` LowCardinality(String),
    `epoch` UInt16,
    `partition` UInt16,
    `first` UInt64,
    `next` UInt64,
    `loaded_at` Nullable(DateTime64(3, 'UTC')),
    `accepted_at` DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(accepted_at)
ORDER BY (topic, epoch, partition, first);

CREATE TABLE match_latest__0
(
    `title_id` LowCardinality(String),
    `ts` DateTime64(3, 'UTC'),
    `hosts` Array(String),
    `players` Array(UInt32),
    `max_players` Array(UInt32),
    `version` UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY title_id;

CREATE TABLE match_list__0
(
    `title_id` LowCardinality(String),
    `ts` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `hosts` Array(String),
    `players` Array(UInt32),
    `max_players` Array(UInt32),
    `position` UInt64 CODEC(Delta(8), ZSTD(1))
)
ENGINE = ReplacingMergeTree(position)
PARTITION BY toYear(ts)
ORDER BY (title_id, ts);

CREATE TABLE match_list_hour__0
(
    `title_id` LowCardinality(String),
    `hour` DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
    `lists` UInt32,
    `lobbies` UInt64,
    `players` UInt64,
    `lobbies_max` UInt32,
    `lobbies_max_at` DateTime64(3, 'UTC'),
    `position` UInt64
)
ENGINE = ReplacingMergeTree(position)
PARTITION BY toYear(hour)
ORDER BY (title_id, hour);

CREATE TABLE match_session__0
(
    `title_id` LowCardinality(String),
    `first_seen` DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `host` String,
    `nth` UInt32,
    `is_void` Bool,
    `last_seen` DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `peak_players` UInt32,
    `max_players` UInt32,
    `players_sum` UInt64,
    `sightings` UInt32,
    `version` UInt64,
    INDEX seen_last last_seen TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (title_id, first_seen, host, nth)
SETTINGS index_granularity = 1024;

CREATE TABLE network_count__0
(
    `metric` LowCardinality(String),
    `ts` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `value` UInt32 CODEC(T64, ZSTD(1)),
    `position` UInt64 CODEC(DoubleDelta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(position)
PARTITION BY toYear(ts)
ORDER BY (metric, ts);

CREATE TABLE network_count_hour__0
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

CREATE TABLE player__0
(
    `player_key` String,
    `player` String
)
ENGINE = ReplacingMergeTree
ORDER BY (player_key, player)
SETTINGS index_granularity = 1024;

CREATE TABLE player_entry__0
(
    `player_key` String,
    `title_id` LowCardinality(String),
    `leaderboard_id` UInt32,
    `player` String,
    `occurrence` UInt16,
    `is_gone` Bool,
    `rank` Int64,
    `place` UInt32,
    `rating` String,
    `time_ms` Nullable(UInt32),
    `details` String,
    `first_at` DateTime64(3, 'UTC'),
    `ts` DateTime64(3, 'UTC'),
    `version` UInt64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (player_key, title_id, leaderboard_id, player, occurrence)
SETTINGS index_granularity = 1024, min_bytes_for_wide_part = 1000000000000;

CREATE TABLE presence__0
(
    `user_key` String,
    `ts` DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `is_online` Bool,
    `game` LowCardinality(String),
    `period_s` UInt32,
    `position` UInt64
)
ENGINE = ReplacingMergeTree(position)
PARTITION BY toYear(ts)
ORDER BY (user_key, ts)
SETTINGS index_granularity = 1024;

CREATE TABLE presence_day__0
(
    `user_key` String,
    `day` Date,
    `sightings` UInt32,
    `online_sightings` UInt32,
    `last_at` DateTime64(3, 'UTC'),
    `seconds` Map(String, UInt32),
    `position` UInt64
)
ENGINE = ReplacingMergeTree(position)
ORDER BY (user_key, day)
SETTINGS index_granularity = 256;

CREATE TABLE presence_latest__0
(
    `user_key` String,
    `field` LowCardinality(String),
    `value` String,
    `value_key` String,
    `ts` DateTime64(3, 'UTC'),
    `version` UInt128,
    INDEX by_value value_key TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (user_key, field)
SETTINGS index_granularity = 1024;

CREATE TABLE profile__0
(
    `user_key` String,
    `username` String,
    `avatar_url` String,
    `avatar_hue` Nullable(UInt16),
    `chat_profile_url` String,
    `display_name_override` Nullable(String),
    `linked_gamertag` String,
    `gamertag_key` String,
    `console_verified` Bool,
    `bio` String,
    `social_links` String,
    `ts` DateTime64(3, 'UTC'),
    `revision` UInt64,
    INDEX by_gamertag gamertag_key TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(revision)
ORDER BY user_key
SETTINGS index_granularity = 1024;

CREATE TABLE rank_reached__0
(
    `title_id` LowCardinality(String),
    `leaderboard_id` UInt32,
    `player_keys` Array(String),
    `goals` Array(UInt8),
    `reached_at` Array(DateTime64(3, 'UTC')),
    `version` UInt64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (title_id, leaderboard_id)
SETTINGS index_granularity = 64;

CREATE TABLE rating__0
(
    `user_key` String,
    `rater_key` String,
    `username` String,
    `rater` String,
    `stars` UInt8,
    `comment` Nullable(String),
    `ts` DateTime64(3, 'UTC'),
    `revision` UInt64
)
ENGINE = ReplacingMergeTree(revision)
ORDER BY (user_key, rater_key);

CREATE TABLE rating_given__0
(
    `rater_key` String,
    `user_key` String,
    `stars` UInt8,
    `ts` DateTime64(3, 'UTC'),
    `revision` UInt64
)
ENGINE = ReplacingMergeTree(revision)
ORDER BY (rater_key, user_key);

CREATE TABLE rebuild
(
    `id` UInt32,
    `record` String,
    `version` UInt64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY id;

CREATE TABLE rebuild_owner
(
    `id` UInt32,
    `process` String,
    `seen_at` DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(seen_at)
ORDER BY id;

CREATE TABLE record_history__0
(
    `title_id` LowCardinality(String),
    `leaderboard_id` UInt32,
    `players` Array(String),
    `occurrences` Array(UInt16),
    `ratings` Array(String),
    `times_ms` Array(Nullable(UInt32)),
    `set_at` Array(DateTime64(3, 'UTC')),
    `from_at` Array(DateTime64(3, 'UTC')),
    `to_at` Array(Nullable(DateTime64(3, 'UTC'))),
    `version` UInt64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (title_id, leaderboard_id);

CREATE TABLE schema_migration
(
    `name` String,
    `checksum` String,
    `applied_at` DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(applied_at)
ORDER BY name;

CREATE TABLE scrape__0
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

CREATE TABLE timed_entry__0
(
    `time_ms` UInt32,
    `title_id` LowCardinality(String),
    `leaderboard_id` UInt32,
    `player` String,
    `occurrence` UInt16,
    `is_live` Bool,
    `rank` Int64,
    `rating` String,
    `version` UInt64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (time_ms, title_id, leaderboard_id, player, occurrence)
SETTINGS index_granularity = 1024;

CREATE TABLE title__0
(
    `title_id` LowCardinality(String),
    `field` LowCardinality(String),
    `value` String,
    `name_key` String,
    `version` UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (title_id, field);

CREATE TABLE title_count__0
(
    `title_id` LowCardinality(String) CODEC(ZSTD(1)),
    `ts` DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `online` UInt32 CODEC(Delta(4), T64('bit'), ZSTD(9)),
    `sessions` Nullable(UInt32) CODEC(T64, ZSTD(1)),
    `lobby_players` Nullable(UInt32) CODEC(Delta(4), T64('bit'), ZSTD(9)),
    `position` UInt64 CODEC(Delta(8), T64, ZSTD(3))
)
ENGINE = ReplacingMergeTree(position)
PARTITION BY toYear(ts)
ORDER BY (title_id, ts);

CREATE TABLE title_count_day__0
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

CREATE TABLE title_count_hour__0
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

CREATE TABLE title_latest__0
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

CREATE TABLE title_status__0
(
    `title_id` LowCardinality(String),
    `on_network` Bool,
    `ts` DateTime64(3, 'UTC'),
    `version` UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY title_id;

CREATE TABLE user_gamertag__0
(
    `gamertag_key` String,
    `user_key` String
)
ENGINE = ReplacingMergeTree
ORDER BY (gamertag_key, user_key)
SETTINGS index_granularity = 1024;
