-- Revisions of all changes of the write side: one sequence, so that they order the changes of a row whatever it is.
CREATE SEQUENCE revision;

-- What users say of themselves, one row a user; a user without one has a profile of defaults. `session_gamertag` is that
-- of the last verified session. `chat_*` is what the chat platform said of the linked account when it was verified.
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

-- One rating per rater and profile: a second one replaces the first. Asked for one profile, newest first.
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

-- Events of this write side on their way to the log, in the order of `id`; written in the transaction of the change that
-- they tell of, deleted when the log has them. `people` are the user_keys that the event is about.
CREATE TABLE outbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  topic text NOT NULL,
  people text[] NOT NULL,
  event jsonb NOT NULL
);
