-- The entries of all boards by time, with the columns that a search shows: a search by time is one read. It replaces entry_time, of which
-- each found entry was looked up in player_entry. Rows have the version of their board, as in leaderboard_entry.
CREATE TABLE IF NOT EXISTS timed_entry__0 (
  time_ms UInt32,
  title_id LowCardinality(String),
  leaderboard_id UInt32,
  player String,
  occurrence UInt16,
  is_live Bool,
  rank Int64,
  rating String,
  version UInt64
) ENGINE = ReplacingMergeTree(version) ORDER BY (time_ms, title_id, leaderboard_id, player, occurrence)
SETTINGS index_granularity = 1024;

-- An interrupted swap has exchanged some of the tables that are dropped below: only the former program can complete it.
INSERT INTO generation_pointer (owner)
SELECT 'load:' FROM (
  SELECT b.id AS id, argMax(b.record, b.version) AS newest FROM rebuild AS b GROUP BY b.id
) AS r
WHERE throwIf(JSONExtractString(r.newest, 'state') IN ('swapping', 'rolling-back')
    AND hasAny(JSONExtract(r.newest, 'unit', 'Array(String)'), ['entry-time', 'leaderboard-entry']),
  'A swap of rebuilt tables was interrupted. Start the former version once, which completes it, then this one');

-- Rebuilds that fill entry_time, or the ranks without timed_entry, begin again; those that were swapped are final.
INSERT INTO rebuild (id, record, version)
SELECT r.id, replaceRegexpOne(replaceRegexpOne(r.newest, '"state":"[a-z]+"', concat('"state":"', if(r.state = 'swapped', 'dropped', 'cancelled'), '"')),
  '"version":[0-9]+', concat('"version":', toString(r.last + 1))), r.last + 1
FROM (
  SELECT b.id AS id, argMax(b.record, b.version) AS newest, max(b.version) AS last, JSONExtractString(newest, 'state') AS state
  FROM rebuild AS b GROUP BY b.id
) AS r
WHERE r.state IN ('filling', 'paused', 'failed', 'filled', 'swapped') AND hasAny(JSONExtract(r.newest, 'unit', 'Array(String)'), ['entry-time', 'leaderboard-entry']);

DELETE FROM checkpoint WHERE match(name, '^(project|slices):entry-time(__[0-9]+)?$');
INSERT INTO generation_pointer (owner, tables, writes, reads, reads_changed, version)
SELECT p.owner, [], 0, 0, p.reads_changed, p.version + 1 FROM generation_pointer AS p FINAL WHERE p.owner = 'project:entry-time';
DROP VIEW IF EXISTS entry_time;
DROP TABLE IF EXISTS entry_time__* SYNC;
