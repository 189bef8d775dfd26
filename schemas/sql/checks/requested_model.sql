-- check: requested_model
-- grain: stack x condition x model that was asked for
-- Answers from a model whose name does not begin with the one that was asked for: another model, an alias, or a server that names
-- its models otherwise. Letter case, folders before a name and `-latest` at its end do not count.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    'warning' AS severity,
    false AS blocks,
    stack || ', ' || condition || ': ' || left(model, 80) || ' was asked for, and ' || count(*)
    || CASE WHEN count(*) = 1 THEN ' answer came' ELSE ' answers came' END || ' from '
    || left(string_agg(DISTINCT served_model, ', ' ORDER BY served_model), 200) || '.' AS sentence,
    count(*)::DOUBLE AS value
FROM calls
WHERE
    study = $study
    AND protocol = $protocol
    AND served_model <> ''
    AND NOT starts_with(lower(parse_filename(served_model)), regexp_replace(lower(parse_filename(model)), '-latest$', ''))
GROUP BY stack, condition, model;
