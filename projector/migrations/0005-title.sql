-- What is known of a title, one row a field, because each field folds by itself: a source that does not know one
-- changes nothing of it. Fields: name, title, publisher, release_date, image, product_code, features (comma-separated).
-- `name_key` is set on the field name. A few thousand rows, read whole.
CREATE TABLE IF NOT EXISTS title (
  title_id LowCardinality(String),
  field LowCardinality(String),
  value String,
  name_key String,
  version UInt128
) ENGINE = ReplacingMergeTree(version) ORDER BY (title_id, field);
