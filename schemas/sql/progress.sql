-- view: progress
-- grain: protocol x table that has sealed files
-- columns:
--   study: Name of the study.
--   protocol: SHA-256 of the frozen protocol.
--   status: complete, partial or damaged.
--   table_name: The table.
--   n_files: Sealed files in force.
--   n_rows: Rows in them.
--   n_bytes: Their size.
--   first_sealed_at: When the first of them was sealed.
--   last_sealed_at: When the last of them was sealed.
CREATE VIEW progress AS
SELECT
  p.study,
  p.protocol,
  p.status,
  f.table_name,
  count(*) AS n_files,
  sum(f.rows)::BIGINT AS n_rows,
  sum(f.bytes)::BIGINT AS n_bytes,
  min(f.sealed_at) AS first_sealed_at,
  max(f.sealed_at) AS last_sealed_at
FROM protocols AS p
JOIN partitions AS f ON f.study = p.study AND f.protocol = p.protocol
GROUP BY p.study, p.protocol, p.status, f.table_name;
