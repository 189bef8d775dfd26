-- view: answer_counts
-- grain: stack x condition or judge condition with answers
-- How many answers were of which class. Every attempt counts, also of replays, whose answers are recorded ones; a request that was
-- sent several times has one answer, the last.
-- columns:
--   study: Name of the study.
--   protocol: SHA-256 of the frozen protocol.
--   benchmark: Name of the benchmark.
--   stack: Name of the stack.
--   condition: Name of the condition or judge condition.
--   n_answers: Answers, those of the following classes and complete ones.
--   n_truncated: Ended at the token limit, or thinking that does not end.
--   n_refused: The model declined.
--   n_filtered: A filter of the provider took them away.
--   n_empty: Nothing, or white space.
--   n_malformed: No answer, but something else.
--   n_infrastructure: The server would not take the request.
CREATE VIEW answer_counts AS
SELECT
  study,
  protocol,
  benchmark,
  stack,
  condition,
  count(*) AS n_answers,
  count(*) FILTER (WHERE response_class = 'truncated') AS n_truncated,
  count(*) FILTER (WHERE response_class = 'refusal') AS n_refused,
  count(*) FILTER (WHERE response_class = 'filtered') AS n_filtered,
  count(*) FILTER (WHERE response_class = 'empty') AS n_empty,
  count(*) FILTER (WHERE response_class = 'malformed') AS n_malformed,
  count(*) FILTER (WHERE response_class = 'infrastructure') AS n_infrastructure
FROM (
  SELECT study, protocol, benchmark, stack, condition, response_class
  FROM generations
  UNION ALL
  SELECT study, protocol, benchmark, stack, condition, response_class
  FROM verdicts
)
GROUP BY study, protocol, benchmark, stack, condition;
