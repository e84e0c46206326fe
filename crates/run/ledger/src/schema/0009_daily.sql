-- The runs of each day (UTC) by each contract, model and key, and all of them, by duration: for shares and percentiles of any period.
CREATE TABLE daily_run (
    day INTEGER NOT NULL,
    dimension INTEGER NOT NULL, -- 0 all runs, 1 contract, 2 model, 3 key
    name TEXT NOT NULL, -- of the contract or the model, or the id of the key; empty for none
    bucket INTEGER NOT NULL, -- quarters of the binary logarithm of the milliseconds; -1 for runs that the cache answered
    runs INTEGER NOT NULL,
    first_try INTEGER NOT NULL, -- the runs that were accepted with at most one call
    failed INTEGER NOT NULL, -- the runs without an answer
    attempts INTEGER NOT NULL,
    micro_usd INTEGER NOT NULL,
    unpriced INTEGER NOT NULL, -- the runs of which no price is known
    PRIMARY KEY (day, dimension, name, bucket)
) STRICT, WITHOUT ROWID;
INSERT INTO daily_run
SELECT started / 86400000, dimension, name, iif(cached, -1, bucket(ended - started)), count(*),
    sum(NOT cached AND attempts <= 1 AND outcome = 'ok'), sum(outcome NOT IN ('ok', 'fallback')), sum(attempts),
    sum(coalesce(micro_usd, 0)), sum(micro_usd IS NULL)
FROM (
    SELECT *, 0 AS dimension, '' AS name FROM run
    UNION ALL SELECT *, 1, coalesce(contract, digest, '') FROM run
    UNION ALL SELECT *, 2, model FROM run
    UNION ALL SELECT *, 3, coalesce(key, '') FROM run
) GROUP BY 1, 2, 3, 4;
