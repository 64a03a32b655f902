-- The first schema of the write side.

-- Leases of board visits: one row per board, and one with leaderboard_id -1 for the board list of a title. Queried for
-- the most overdue rows without a holder; a few thousand rows, each written twice per visit.
--
-- due_at       earliest instant of the next visit
-- period_s     interval between visits: shorter after a visit that found changes, longer after one that found none
-- lease_*      the process that visits the row now, and the end of its lease
-- is_unclean   a visit began and did not record its end: the events that it appended to the log are unknown
-- appended     the heads of the log's partitions after the last visit had appended: [{epoch, partition, next}]
-- etag, last_modified, content, seen_version
--              validators of the page, a hash of what it shows of the board, and the version of the board's entries in
--              the read tables that the page was found equal to
CREATE TABLE board_lease (
  title_id text NOT NULL,
  leaderboard_id bigint NOT NULL,
  due_at timestamptz NOT NULL,
  period_s double precision NOT NULL,
  failures integer NOT NULL DEFAULT 0,
  tried_at timestamptz,
  lease_holder text,
  lease_until timestamptz,
  is_unclean boolean NOT NULL DEFAULT true,
  appended jsonb NOT NULL DEFAULT '[]',
  etag text,
  last_modified text,
  content text,
  seen_version text,
  PRIMARY KEY (title_id, leaderboard_id)
);
CREATE INDEX board_lease_due_at ON board_lease (due_at);

-- The subjects of events. Events are sealed with `seal_key`: without the key no copy of the log reveals them. An
-- erasure deletes the row.
CREATE TABLE person (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_key text NOT NULL UNIQUE,
  seal_key bytea NOT NULL
);

-- The erasure ledger: a hash per erased user, which only this installation can compute (with the salt below). Events of
-- sources that still name such a user are ignored. `done_at` is set when the tables are clean; until then the erasure
-- is retried. `returned_at` is set when the user signs in again: the user gets a new person, and the row stays, because
-- an older copy of the tables still has the erased rows.
CREATE TABLE erasure (
  name_hash bytea PRIMARY KEY,
  person_ids bigint[] NOT NULL DEFAULT '{}',
  erased_at timestamptz NOT NULL,
  done_at timestamptz,
  returned_at timestamptz
);

-- The salt exists from the first day on, so that every copy of this database computes the same hashes. 244 of its 256
-- bits are random.
CREATE TABLE erasure_salt (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  salt bytea NOT NULL
);
INSERT INTO erasure_salt (salt)
SELECT decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex');

-- Revisions of all changes of the write side: one sequence, so that revisions order the changes of a row.
CREATE SEQUENCE revision;

-- Profiles that users edited; a user without a row has a profile of defaults. `session_gamertag` is that of the last
-- verified session. `chat_*` is what the chat platform answered about the linked account when it was verified.
CREATE TABLE profile (
  user_key text PRIMARY KEY,
  username text NOT NULL,
  avatar_url text NOT NULL DEFAULT '',
  avatar_hue integer,
  display_name_override text,
  linked_gamertag text NOT NULL DEFAULT '',
  session_gamertag text NOT NULL DEFAULT '',
  bio text NOT NULL DEFAULT '',
  chat_profile_url text NOT NULL DEFAULT '',
  chat_id text,
  chat_avatar text,
  social_links jsonb NOT NULL DEFAULT '[]',
  revision bigint NOT NULL,
  changed_at timestamptz NOT NULL
);

-- One rating per rater and profile: a second one replaces the first. Queried for one profile, newest first.
CREATE TABLE rating (
  user_key text NOT NULL,
  rater_key text NOT NULL,
  username text NOT NULL,
  rater text NOT NULL,
  stars smallint NOT NULL CHECK (stars BETWEEN 1 AND 5),
  comment text,
  rated_at timestamptz NOT NULL,
  revision bigint NOT NULL,
  PRIMARY KEY (user_key, rater_key)
);
CREATE INDEX rating_newest ON rating (user_key, rated_at DESC, revision DESC);
CREATE INDEX rating_of_rater ON rating (rater_key);

-- Events of the write side that wait for the log, in the order of `id`: written in the transaction of their change,
-- deleted when the log has them. `people` are the user_keys of the event's subjects.
CREATE TABLE outbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  topic text NOT NULL,
  people text[] NOT NULL,
  event jsonb NOT NULL
);

-- Positions up to which achievements were evaluated: per partition of each topic that rules read, the first offset
-- whose events may concern users who were not evaluated since. A few rows; `next` only rises.
CREATE TABLE achievement_evaluation (
  topic text NOT NULL,
  epoch integer NOT NULL,
  partition integer NOT NULL,
  next bigint NOT NULL,
  PRIMARY KEY (topic, epoch, partition)
);

-- The last day (since 1970) on which users were evaluated whose achievements depend on time alone. One row.
CREATE TABLE achievement_day (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  day integer NOT NULL DEFAULT 0
);
INSERT INTO achievement_day DEFAULT VALUES;

-- Work that one process does at a time: the evaluation of achievements, and the scraping of each source except boards.
-- It expires when its holder dies.
CREATE TABLE work_lease (
  work text PRIMARY KEY,
  holder text NOT NULL,
  lease_until timestamptz NOT NULL
);

-- The highest numbers of people and of revisions in the tables when an operator accepted this database as older than
-- they. One row.
CREATE TABLE accepted_older (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  person bigint NOT NULL,
  revision bigint NOT NULL,
  accepted_at timestamptz NOT NULL DEFAULT now()
);
