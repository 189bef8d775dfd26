-- table: partitions
-- grain: sealed file in force
-- Made from the manifests when the catalog is built: the lineage of every number.
-- columns:
--   study: Name of the study.
--   protocol: SHA-256 of the frozen protocol.
--   shard: Shard that the file belongs to.
--   table_name: Table whose rows it holds.
--   path: Where it lies, relative to the protocol's folder.
--   rows: Rows in it.
--   bytes: Its size.
--   sha256: Its digest, as sealed.
--   inputs: What it was made from.
--   package_version: Package version that made it.
--   git_commit: Commit that made it, or empty.
--   sealed_at: When it was sealed.
--   inherited_from: SHA-256 of the protocol that it was inherited from, whose run paid for it; null: made under this one.
CREATE TABLE partitions (
  study VARCHAR,
  protocol VARCHAR,
  shard VARCHAR,
  table_name VARCHAR,
  path VARCHAR,
  rows BIGINT,
  bytes BIGINT,
  sha256 VARCHAR,
  inputs VARCHAR[],
  package_version VARCHAR,
  git_commit VARCHAR,
  sealed_at TIMESTAMP WITH TIME ZONE,
  inherited_from VARCHAR
);
