-- Rebuilds of projections, each change of state a new version of its row: asked for whole, a few rows. `record` is JSON
-- (`rebuilding/rebuild-record.ts`), for nobody asks for a part of it.
CREATE TABLE IF NOT EXISTS rebuild (
  id UInt32,
  record String,
  version UInt64
) ENGINE = ReplacingMergeTree(version) ORDER BY id;

-- Which process works on a rebuild, and when it said so last.
CREATE TABLE IF NOT EXISTS rebuild_owner (
  id UInt32,
  process String,
  seen_at DateTime64(3, 'UTC') DEFAULT now64(3)
) ENGINE = ReplacingMergeTree(seen_at) ORDER BY id;

-- By which statements each read table was made, as JSON: a program whose statements differ goes on with these until a rebuild
-- by its own is swapped in. The newest of a projection serves.
CREATE TABLE IF NOT EXISTS projection_definition (
  name String,
  definition String,
  version UInt64
) ENGINE = ReplacingMergeTree(version) ORDER BY name;
