-- table: protocols
-- grain: frozen protocol of a study
-- Made from the manifests and the frozen protocols when the catalog is built.
-- columns:
--   study: Name of the study.
--   protocol: SHA-256 of the frozen protocol.
--   protocol12: Its first twelve digits, the name of its folder.
--   benchmark: Name of the benchmark.
--   frozen_at: When it was frozen.
--   replicates: Replicates per condition that the protocol asks for.
--   task_limit: The first so many tasks only; null: all.
--   n_tasks: Tasks of the benchmark in this protocol.
--   night: Label of the night of a nightly study; null: none.
--   status: complete: every planned shard is sealed and analysed. partial: not yet. damaged: see problem.
--   n_planned: Shards of the whole study; 0 before the plan is written.
--   n_shards: Shards that are sealed.
--   host: Host that froze it.
--   package_version: Package version that froze it.
--   git_commit: Commit that froze it, or empty.
--   problem: What is damaged, in words; empty if nothing is.
--   predecessor: SHA-256 of the protocol whose sealed shards it inherited; null: none.
--   why: Of a successor, why it was made; null: it is none.
--   blind: Whether it was planned before anything of it was known; false for a successor; null: its file cannot be read.
CREATE TABLE protocols (
  study VARCHAR,
  protocol VARCHAR,
  protocol12 VARCHAR,
  benchmark VARCHAR,
  frozen_at TIMESTAMP WITH TIME ZONE,
  replicates BIGINT,
  task_limit BIGINT,
  n_tasks BIGINT,
  night VARCHAR,
  status VARCHAR,
  n_planned BIGINT,
  n_shards BIGINT,
  host VARCHAR,
  package_version VARCHAR,
  git_commit VARCHAR,
  problem VARCHAR,
  predecessor VARCHAR,
  why VARCHAR,
  blind BOOLEAN
);
