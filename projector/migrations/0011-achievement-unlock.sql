-- Event table of unlocked achievements; see 0002.
CREATE TABLE IF NOT EXISTS event_achievement_unlock (
  epoch UInt16 CODEC(Delta, ZSTD(1)),
  partition UInt16 CODEC(Delta, ZSTD(1)),
  offset UInt64 CODEC(DoubleDelta, ZSTD(1)),
  source LowCardinality(String),
  import_id LowCardinality(String),
  observed_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  user_key String,
  username String,
  achievement_id UInt16,
  points UInt16,
  position UInt64 ALIAS bitOr(bitShiftLeft(toUInt64(epoch), 48), offset),
  version UInt128 ALIAS bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64), toUInt128(position))
) ENGINE = ReplacingMergeTree ORDER BY (epoch, partition, offset);

-- Who unlocked what, once and for good: of several events the one that the log had first counts (`age` is the complement
-- of its position). Asked for one user, and whole by achievement.
CREATE TABLE IF NOT EXISTS achievement_unlock (
  user_key String,
  achievement_id UInt16,
  username String,
  points UInt16,
  ts DateTime64(3, 'UTC'),
  age UInt64
) ENGINE = ReplacingMergeTree(age) ORDER BY (user_key, achievement_id)
SETTINGS index_granularity = 1024;

-- The same, time first, for the newest unlocks of all. One row an event: whether it is the one that counts is looked up in
-- achievement_unlock for the few that are shown.
CREATE TABLE IF NOT EXISTS achievement_unlock_feed (
  ts DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  user_key String,
  achievement_id UInt16,
  age UInt64
) ENGINE = ReplacingMergeTree(age) ORDER BY (ts, user_key, achievement_id, age);

-- What every user's unlocks come to; recomputed whole for touched users. Asked for the highest scores.
CREATE TABLE IF NOT EXISTS achievement_score (
  user_key String,
  username String,
  score UInt32,
  achievements UInt32,
  version UInt64
) ENGINE = ReplacingMergeTree(version) ORDER BY user_key;

-- By which names on boards a user is known for certain: gamertags that presence saw, and one that is linked and verified.
CREATE VIEW IF NOT EXISTS user_player AS
SELECT u.user_key AS user_key, u.gamertag_key AS player_key FROM user_gamertag AS u
UNION DISTINCT
SELECT p.user_key AS user_key, p.gamertag_key AS player_key FROM profile AS p FINAL
WHERE p.console_verified AND p.gamertag_key != '';
