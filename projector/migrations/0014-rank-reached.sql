-- When players first stood where achievements ask for (goals, numbered in `schemas/src/nouns/rank-goal.ts`), in lists that run
-- side by side; one row a board, because a late event can move, undo or bring forward any of them. Read by the fold that
-- writes it, and for the boards of up to a thousand users.
CREATE TABLE IF NOT EXISTS rank_reached (
  title_id LowCardinality(String),
  leaderboard_id UInt32,
  player_keys Array(String),
  goals Array(UInt8),
  reached_at Array(DateTime64(3, 'UTC')),
  version UInt64
) ENGINE = ReplacingMergeTree(version) ORDER BY (title_id, leaderboard_id)
SETTINGS index_granularity = 64;

-- When an entry first stood on its board; 1970 when it never did.
ALTER TABLE leaderboard_entry ADD COLUMN IF NOT EXISTS first_at DateTime64(3, 'UTC') AFTER details;
ALTER TABLE player_entry ADD COLUMN IF NOT EXISTS first_at DateTime64(3, 'UTC') AFTER details;

-- Boards that are known already are projected anew, for their entries to have these instants.
DELETE FROM checkpoint WHERE name IN ('project:leaderboard-entry', 'project:player-entry');
