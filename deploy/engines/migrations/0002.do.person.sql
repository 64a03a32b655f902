-- Who the events of people are about. Events travel sealed with `seal_key`; without it nobody can read them, in this log,
-- in any copy of it, at any time. Forgetting a person deletes the row.
CREATE TABLE person (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_key text NOT NULL UNIQUE,
  seal_key bytea NOT NULL
);

-- Who asked to be forgotten, as a hash that only this service can make (its salt is in `forgetting_salt`): sources that still
-- name the person are not listened to. `done_at` is set when the tables are clean, too; until then it is tried again.
CREATE TABLE forgotten (
  name_hash bytea PRIMARY KEY,
  person_id bigint,
  forgotten_at timestamptz NOT NULL,
  done_at timestamptz
);
CREATE TABLE forgetting_salt (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  salt bytea NOT NULL
);
