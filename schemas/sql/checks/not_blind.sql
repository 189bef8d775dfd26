-- check: not_blind
-- grain: protocol
-- The protocol is a successor: more replicates were asked for when those before could be known.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    '' AS stack,
    '' AS condition,
    'warning' AS severity,
    false AS blocks,
    'Successor of ' || predecessor[:12] || ', not blind: ' || rtrim(why, '.')
    || '. Whoever stops or goes on by what the numbers say finds differences that are not there more often than alpha says;'
    || ' intervals and contrasts assume a number of replicates that was fixed beforehand.' AS sentence,
    NULL::DOUBLE AS value
FROM protocols
WHERE study = $study AND protocol = $protocol AND NOT blind;
