-- The rights of the service's user on the database `gamenet` of a ClickHouse server.
-- The embedded ClickHouse gives its user the same.
GRANT
  SELECT, INSERT, ALTER, CREATE TABLE, CREATE VIEW, DROP TABLE, DROP VIEW, CHECK ON gamenet.*,
  TABLE ENGINE ON *,
  SYSTEM MERGES, SYSTEM CLEANUP ON *.*,
  SELECT ON system.parts,
  SELECT ON system.detached_parts,
  SELECT ON system.mutations,
  SELECT ON system.processes,
  SELECT ON system.disks,
  SELECT ON system.dropped_tables
TO gamenet;
