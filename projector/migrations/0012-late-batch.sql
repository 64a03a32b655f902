-- What was decided about parked messages: `dropped`, or `retried`, which means judged anew and stored. Asked for whole, beside
-- parked_message; a row a decision, the newest of a position counts.
CREATE TABLE IF NOT EXISTS parked_decision (
  topic LowCardinality(String),
  epoch UInt16,
  partition UInt16,
  offset UInt64,
  decision LowCardinality(String),
  decided_at DateTime64(3, 'UTC') DEFAULT now64(3)
) ENGINE = ReplacingMergeTree(decided_at) ORDER BY (topic, epoch, partition, offset);

-- Every message that was ever parked, with its state now: a dropped one stays dropped when the log is read again, a retried one
-- that was parked again since is parked.
CREATE VIEW IF NOT EXISTS parked_state AS
SELECT p.topic AS topic, p.epoch AS epoch, p.partition AS partition, p.offset AS offset, p.reason AS reason,
  p.parked_at AS parked_at, intDiv(length(p.value), 4) * 3 - length(extract(p.value, '=*$')) AS bytes,
  multiIf(d.decision = 'dropped', 'dropped', d.decision = 'retried' AND d.decided_at >= p.parked_at, 'retried', 'parked') AS state
FROM parked_message AS p FINAL
LEFT JOIN parked_decision AS d FINAL
ON d.topic = p.topic AND d.epoch = p.epoch AND d.partition = p.partition AND d.offset = p.offset;

-- Events that came into their event table behind the checkpoints of projections, as retried messages do: one row a batch, so
-- that a batch is there as a whole. Asked for by whoever takes events, whole and often; a few rows.
CREATE TABLE IF NOT EXISTS late_batch (
  id String,
  topic LowCardinality(String),
  positions Array(Tuple(UInt16, UInt16, UInt64)),
  stored_at DateTime64(3, 'UTC') DEFAULT now64(3)
) ENGINE = ReplacingMergeTree ORDER BY id;

-- Which batches of late events somebody has taken: a projection by the name of its checkpoint.
CREATE TABLE IF NOT EXISTS late_batch_taken (
  id String,
  taker LowCardinality(String)
) ENGINE = ReplacingMergeTree ORDER BY (id, taker);
