-- view: costs
-- grain: protocol x stack x condition x purpose
-- What was sent and what it cost, failed and lost sendings too. A sum leaves out what is unknown, and a count says how many that were.
-- A successor has the calls that it inherited, and its predecessor has them as well: over several protocols, add up
-- `sendings - inherited_sendings` and `cost_usd - inherited_usd`, which counts each sending once.
-- columns:
--   study: Name of the study.
--   protocol: SHA-256 of the frozen protocol.
--   benchmark: Name of the benchmark.
--   stack: Name of the stack.
--   condition: Name of the condition, or of the judge condition.
--   purpose: generate, judge or probe.
--   calls: Requests of cells, each with all its sendings.
--   sendings: Times that a request was sent.
--   failed_sendings: Of the sendings, those that got no response: refused, cut off, not legible, too late.
--   lost_sendings: Of the sendings, those whose answer was lost when a run was killed; they may have been billed.
--   input_tokens: Sum over the sendings that say it; cached ones are in it. Null: none says it.
--   cached_tokens: Of the input tokens, those read from a prompt cache; null: no sending says it.
--   cache_write_tokens: Of the input tokens, those written to a prompt cache; null: no sending says it.
--   output_tokens: Sum over the sendings that say it, reasoning too; null: none says it.
--   reasoning_tokens: Of the output tokens, those of reasoning; null: no sending says it.
--   cost_usd: US dollars: the sum of what is known; null: nothing is known.
--   cost_unknown: Sendings whose cost is unknown; they are not in `cost_usd`.
--   inherited_sendings: Of the sendings, those that an earlier protocol has in its own rows.
--   inherited_usd: Of `cost_usd`, what those cost: it was paid once, under the earlier protocol. 0: nothing that is known.
--   prices: Where the prices came from, one after the other.
CREATE VIEW costs AS
WITH sent AS (
  SELECT
    c.*,
    -- One sending has one cell, request, number and time, whichever protocols have it.
    row_number() OVER (
      PARTITION BY c.study, c.stack, c.condition, c.replicate, c.task_id, c.attempt, c.request_key, c.sending, c.sent_at
      ORDER BY p.frozen_at, c.protocol
    ) > 1 AS inherited
  FROM calls AS c
  LEFT JOIN protocols AS p ON p.study = c.study AND p.protocol = c.protocol
)

SELECT
  study,
  protocol,
  benchmark,
  stack,
  condition,
  purpose,
  count(DISTINCT (task_id, replicate, attempt, request_key)) AS calls,
  count(*) AS sendings,
  count(*) FILTER (WHERE answered AND response_class IN ('infrastructure', 'malformed')) AS failed_sendings,
  count(*) FILTER (WHERE NOT answered) AS lost_sendings,
  sum(input_tokens)::BIGINT AS input_tokens,
  sum(cached_tokens)::BIGINT AS cached_tokens,
  sum(cache_write_tokens)::BIGINT AS cache_write_tokens,
  sum(output_tokens)::BIGINT AS output_tokens,
  sum(reasoning_tokens)::BIGINT AS reasoning_tokens,
  sum(cost_usd) AS cost_usd,
  count(*) FILTER (WHERE cost_usd IS NULL) AS cost_unknown,
  count(*) FILTER (WHERE inherited) AS inherited_sendings,
  coalesce(sum(cost_usd) FILTER (WHERE inherited), 0) AS inherited_usd,
  coalesce(string_agg(DISTINCT nullif(prices, ''), '; ' ORDER BY nullif(prices, '')), '') AS prices
FROM sent
GROUP BY study, protocol, benchmark, stack, condition, purpose;
