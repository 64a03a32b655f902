-- The exchanges of tables that rebuilds make, where several processes read them: each state is a row, the highest counts. Asked
-- several times a second by every process that answers, always for the newest; some rows a rebuild.
CREATE TABLE IF NOT EXISTS exchange (
  id UInt32,
  state Enum8('announced' = 1, 'begun' = 2, 'ended' = 3),
  projections Array(String),
  at DateTime64(3, 'UTC') DEFAULT now64(3)
) ENGINE = MergeTree ORDER BY (id, state);
