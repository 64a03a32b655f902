-- Which generation of each projection's tables, or of a topic's event table, is written and which is read: a row per change, the
-- newest of an owner counts. Owners without a row write and read generation 0. `reads_changed` rises with each change of `reads`
-- over all owners. Read before each pass and several times a second by processes that answer; some rows per swap.
CREATE TABLE IF NOT EXISTS generation_pointer (
  owner LowCardinality(String),
  tables Array(String),
  writes UInt32,
  reads UInt32,
  reads_changed UInt64,
  version UInt64
) ENGINE = ReplacingMergeTree(version) ORDER BY owner;

-- The statements that make each generation of a projection's tables, as JSON: a program whose statements differ continues with these
-- until a rebuild by its own is swapped in. Written once per generation.
CREATE TABLE IF NOT EXISTS generation_definition (
  name LowCardinality(String),
  generation UInt32,
  definition String
) ENGINE = ReplacingMergeTree ORDER BY (name, generation);

-- An interrupted swap has exchanged some of the tables that are renamed below: only the former program can complete it.
INSERT INTO generation_pointer (owner)
SELECT 'load:' FROM (
  SELECT b.id AS id, JSONExtractString(argMax(b.record, b.version), 'state') AS state FROM rebuild AS b GROUP BY b.id
) AS r
WHERE throwIf(r.state IN ('swapping', 'rolling-back'),
  'A swap of rebuilt tables was interrupted. Start the former version once, which completes it, then this one');

-- Statements named tables bare before they named them by parameters.
INSERT INTO generation_definition (name, generation, definition)
SELECT d.name, 0, replaceRegexpAll(argMax(d.definition, d.version), '\\b(FROM|JOIN) (achievement_score|achievement_unlock|achievement_unlock_feed|entry_time|event_achievement_unlock|event_import_retraction|event_import_run|event_leaderboard|event_leaderboard_entry|event_match_list|event_network_count|event_presence|event_profile|event_rating|event_scrape|event_title|event_title_count|event_title_status|import_retraction|import_run|leaderboard|leaderboard_change|leaderboard_entry|leaderboard_feed|leaderboard_history|match_latest|match_list|match_list_hour|match_session|network_count|network_count_hour|player|player_entry|presence|presence_day|presence_latest|profile|rank_reached|rating|rating_given|record_history|scrape|title|title_count|title_count_day|title_count_hour|title_latest|title_status|user_gamertag)\\b', '\\1 {\\2: Identifier}')
FROM projection_definition AS d GROUP BY d.name;

-- Rebuilds whose tables stand for those that are renamed below: those under way begin again, those that were swapped are final.
INSERT INTO rebuild (id, record, version)
SELECT r.id, replaceRegexpOne(replaceRegexpOne(r.newest, '"state":"[a-z]+"', concat('"state":"', if(r.state = 'swapped', 'dropped', 'cancelled'), '"')),
  '"version":[0-9]+', concat('"version":', toString(r.last + 1))), r.last + 1
FROM (
  SELECT b.id AS id, argMax(b.record, b.version) AS newest, max(b.version) AS last, JSONExtractString(newest, 'state') AS state
  FROM rebuild AS b GROUP BY b.id
) AS r
WHERE r.state IN ('filling', 'paused', 'failed', 'filled', 'swapped') AND JSONHas(r.newest, 'exchange');

-- A view on tables that are renamed; statements that need it say what it said.
DROP VIEW IF EXISTS user_player;

DROP TABLE IF EXISTS exchange;

-- The tables get the names of their first generation.
RENAME TABLE IF EXISTS achievement_score TO achievement_score__0;
RENAME TABLE IF EXISTS achievement_unlock TO achievement_unlock__0;
RENAME TABLE IF EXISTS achievement_unlock_feed TO achievement_unlock_feed__0;
RENAME TABLE IF EXISTS entry_time TO entry_time__0;
RENAME TABLE IF EXISTS event_achievement_unlock TO event_achievement_unlock__0;
RENAME TABLE IF EXISTS event_import_retraction TO event_import_retraction__0;
RENAME TABLE IF EXISTS event_import_run TO event_import_run__0;
RENAME TABLE IF EXISTS event_leaderboard TO event_leaderboard__0;
RENAME TABLE IF EXISTS event_leaderboard_entry TO event_leaderboard_entry__0;
RENAME TABLE IF EXISTS event_match_list TO event_match_list__0;
RENAME TABLE IF EXISTS event_network_count TO event_network_count__0;
RENAME TABLE IF EXISTS event_presence TO event_presence__0;
RENAME TABLE IF EXISTS event_profile TO event_profile__0;
RENAME TABLE IF EXISTS event_rating TO event_rating__0;
RENAME TABLE IF EXISTS event_scrape TO event_scrape__0;
RENAME TABLE IF EXISTS event_title TO event_title__0;
RENAME TABLE IF EXISTS event_title_count TO event_title_count__0;
RENAME TABLE IF EXISTS event_title_status TO event_title_status__0;
RENAME TABLE IF EXISTS import_retraction TO import_retraction__0;
RENAME TABLE IF EXISTS import_run TO import_run__0;
RENAME TABLE IF EXISTS leaderboard TO leaderboard__0;
RENAME TABLE IF EXISTS leaderboard_change TO leaderboard_change__0;
RENAME TABLE IF EXISTS leaderboard_entry TO leaderboard_entry__0;
RENAME TABLE IF EXISTS leaderboard_feed TO leaderboard_feed__0;
RENAME TABLE IF EXISTS leaderboard_history TO leaderboard_history__0;
RENAME TABLE IF EXISTS match_latest TO match_latest__0;
RENAME TABLE IF EXISTS match_list TO match_list__0;
RENAME TABLE IF EXISTS match_list_hour TO match_list_hour__0;
RENAME TABLE IF EXISTS match_session TO match_session__0;
RENAME TABLE IF EXISTS network_count TO network_count__0;
RENAME TABLE IF EXISTS network_count_hour TO network_count_hour__0;
RENAME TABLE IF EXISTS player TO player__0;
RENAME TABLE IF EXISTS player_entry TO player_entry__0;
RENAME TABLE IF EXISTS presence TO presence__0;
RENAME TABLE IF EXISTS presence_day TO presence_day__0;
RENAME TABLE IF EXISTS presence_latest TO presence_latest__0;
RENAME TABLE IF EXISTS profile TO profile__0;
RENAME TABLE IF EXISTS rank_reached TO rank_reached__0;
RENAME TABLE IF EXISTS rating TO rating__0;
RENAME TABLE IF EXISTS rating_given TO rating_given__0;
RENAME TABLE IF EXISTS record_history TO record_history__0;
RENAME TABLE IF EXISTS scrape TO scrape__0;
RENAME TABLE IF EXISTS title TO title__0;
RENAME TABLE IF EXISTS title_count TO title_count__0;
RENAME TABLE IF EXISTS title_count_day TO title_count_day__0;
RENAME TABLE IF EXISTS title_count_hour TO title_count_hour__0;
RENAME TABLE IF EXISTS title_latest TO title_latest__0;
RENAME TABLE IF EXISTS title_status TO title_status__0;
RENAME TABLE IF EXISTS user_gamertag TO user_gamertag__0;
