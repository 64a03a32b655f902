-- Whose turn it is to be visited: one row a board, and one with leaderboard_id -1 for the board list of a title. Asked for
-- the most overdue rows that nobody holds; a few thousand rows, each written twice a visit.
--
-- due_at       when the next visit may be
-- period_s     how long a visit keeps: shorter after one that found changes, longer after a quiet one
-- lease_*      who visits the row now, and until when nobody else does
-- is_unclean   a visit began and did not say how it ended: what it appended to the log is not known
-- appended     where the log's partitions ended when the last visit had appended: [{epoch, partition, next}]
-- etag, last_modified, content, seen_version   validators of the page and a hash of what it shows of the board, and the
--              version of the board's entries in the read tables that it was found equal to
CREATE TABLE board_turn (
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
CREATE INDEX board_turn_due_at ON board_turn (due_at);
