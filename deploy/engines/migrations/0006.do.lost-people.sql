-- People of whom the log has events and this database has no key, because it replaced a newer one: found when their numbers were
-- above all of its own. Their events cannot be loaded; only this row still shows it once the tables have read on.
CREATE TABLE lost_people (
  above bigint PRIMARY KEY,
  people bigint NOT NULL,
  found_at timestamptz NOT NULL DEFAULT now()
);
