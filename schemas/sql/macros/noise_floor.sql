-- macro: noise_floor(study_name)
-- grain: stack x condition of one protocol
-- The rows of the view noise_floor_all for one protocol: the newest complete one of a study, by its name, or the one whose digest begins
-- so, complete or not; an error if there is neither. The view noise_floor has the newest complete protocol of every study.
-- arguments:
--   study_name: A study's name, or the first digits of one protocol, at least 4.
-- columns of: noise_floor
CREATE MACRO noise_floor(study_name) AS TABLE
WITH chosen AS (
  SELECT p.study, p.protocol
  FROM protocols AS p
  -- Digits that several protocols begin with name none of them.
  WHERE
    (p.study = study_name AND p.status = 'complete')
    OR (
      length(study_name) >= 4
      AND starts_with(p.protocol, study_name)
      AND (SELECT count(*) FROM protocols AS q WHERE starts_with(q.protocol, study_name) OR q.study = study_name) = 1
    )
  ORDER BY p.study = study_name DESC, p.frozen_at DESC, p.protocol
  LIMIT 1
),

checked AS (
  SELECT
    CASE
      WHEN count(*) = 0
        THEN error(
          'noise_floor: no complete study ' || study_name || ', and not one protocol whose digest begins so; the view protocols lists them'
        )
      ELSE true
    END AS sound
  FROM chosen
)

SELECT n.*
FROM checked AS k
LEFT JOIN chosen AS c ON true
JOIN noise_floor_all AS n ON n.study = c.study AND n.protocol = c.protocol
WHERE k.sound;
