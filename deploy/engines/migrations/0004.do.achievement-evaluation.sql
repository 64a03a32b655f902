-- How far achievements have been evaluated: of each topic that rules look at, the first offset of a partition whose events
-- touch users who have not been looked at since. A handful of rows; it only rises.
CREATE TABLE achievement_evaluation (
  topic text NOT NULL,
  epoch integer NOT NULL,
  partition integer NOT NULL,
  next bigint NOT NULL,
  PRIMARY KEY (topic, epoch, partition)
);

-- Who evaluates now, and until when nobody else does; and the last day (since 1970) on which those were looked at whom time
-- alone brings further. One row.
CREATE TABLE achievement_turn (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  holder text,
  lease_until timestamptz NOT NULL DEFAULT '-infinity',
  day integer NOT NULL DEFAULT 0
);
INSERT INTO achievement_turn DEFAULT VALUES;
