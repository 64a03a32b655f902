-- Of whom these tables were cleaned, by the hash of their name under a salt that PostgreSQL has, and of which forgetting.
-- Compared as a whole with PostgreSQL's ledger when a service starts: tables that were put back from an older copy lack
-- the newest rows. As many rows as people were ever forgotten.
CREATE TABLE IF NOT EXISTS forgotten (
  name_hash String,
  forgotten_at DateTime64(3, 'UTC')
) ENGINE = ReplacingMergeTree(forgotten_at) ORDER BY name_hash;
