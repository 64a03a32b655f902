-- Users who read datasets and nothing else. `gamenet migrate --analyst` runs these statements on a ClickHouse server,
-- with the hash of SQL_PASSWORD for analysts. The embedded ClickHouse gets the same users.
-- `readonly = 2`: drivers set formats and time zones. Constants cannot be changed. Those without a value would name a
-- file that the engine writes or reads, or an address.

-- Analysts: views of the datasets. The limits are those of one statement, and of all statements of an hour. A hash
-- table that grows is copied, and the copy is not counted: a statement takes up to 60 MiB more than its limit.
CREATE USER OR REPLACE gamenet_analyst IDENTIFIED WITH sha256_hash BY '{sha256}'
  DEFAULT DATABASE gamenet_analyst SETTINGS
  readonly = 2 CONST,
  allow_ddl = 0 CONST,
  allow_introspection_functions = 0 CONST,
  add_http_cors_header = 0 CONST,
  http_response_headers = '' CONST,
  output_format_schema = '' CONST,
  format_schema = '' CONST,
  format_template_row = '' CONST,
  format_template_resultset = '' CONST,
  format_avro_schema_registry_url = '' CONST,
  priority = 10 CONST,
  max_threads = 2 CONST,
  max_query_size = 262144 CONST,
  max_execution_time = {seconds} CONST,
  max_memory_usage = 201326592 CONST,
  max_memory_usage_for_user = 536870912 CONST,
  max_untracked_memory = 4194304 CONST,
  max_temporary_data_on_disk_size_for_user = 1073741824 CONST,
  max_concurrent_queries_for_user = 16 CONST,
  max_result_rows = 1000000 CONST,
  max_result_bytes = 67108864 CONST,
  cancel_http_readonly_queries_on_client_close = 1 CONST,
  do_not_merge_across_partitions_select_final = 1;
CREATE QUOTA OR REPLACE gamenet_analyst FOR INTERVAL 1 HOUR MAX queries = 2000, execution_time = {hourSeconds}
  TO gamenet_analyst;
GRANT SELECT ON gamenet_analyst.* TO gamenet_analyst;

-- Saved questions: every generation of the datasets' tables. A question states its own limits, up to these. The service
-- derives the password from the one of its own user (CLICKHOUSE_URL).
CREATE USER OR REPLACE gamenet_questions IDENTIFIED WITH sha256_hash BY '{questionsSha256}'
  DEFAULT DATABASE gamenet SETTINGS
  readonly = 2 CONST,
  allow_ddl = 0 CONST,
  allow_introspection_functions = 0 CONST,
  add_http_cors_header = 0 CONST,
  http_response_headers = '' CONST,
  output_format_schema = '' CONST,
  format_schema = '' CONST,
  format_template_row = '' CONST,
  format_template_resultset = '' CONST,
  format_avro_schema_registry_url = '' CONST,
  max_execution_time = 30 MIN 1 MAX 30,
  max_memory_usage = 536870912 MIN 1 MAX 536870912,
  max_untracked_memory = 4194304 CONST,
  cancel_http_readonly_queries_on_client_close = 1 CONST;
GRANT
  SELECT ON gamenet.network_count__*,
  SELECT ON gamenet.title_count__*,
  SELECT ON gamenet.title__*,
  SELECT ON gamenet.leaderboard_change__*,
  SELECT ON gamenet.leaderboard_history__*,
  SELECT ON gamenet.record_history__*,
  SELECT ON gamenet.match_session__*,
  SELECT ON gamenet.scrape__*
TO gamenet_questions;
