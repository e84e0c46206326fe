-- The runs of each day (UTC), by contract, model, key and duration: for shares and percentiles of any period.
CREATE TABLE daily_run (
    day INTEGER NOT NULL,
    contract TEXT NOT NULL,
    model TEXT NOT NULL,
    key INTEGER NOT NULL, -- 0 for runs without a key
    bucket INTEGER NOT NULL, -- quarters of the binary logarithm of the milliseconds; -1 for runs that the cache answered
    runs INTEGER NOT NULL,
    first_try INTEGER NOT NULL, -- the runs that were accepted with at most one call
    failed INTEGER NOT NULL, -- the runs without an answer
    attempts INTEGER NOT NULL,
    micro_usd INTEGER NOT NULL,
    unpriced INTEGER NOT NULL, -- the runs of which no price is known
    PRIMARY KEY (day, contract, model, key, bucket)
) STRICT, WITHOUT ROWID;
INSERT INTO daily_run
SELECT started / 86400000, coalesce(contract, digest, ''), model, coalesce(key, 0), iif(cached, -1, bucket(ended - started)), count(*),
    sum(NOT cached AND attempts <= 1 AND outcome = 'ok'), sum(outcome NOT IN ('ok', 'fallback')), sum(attempts),
    sum(coalesce(micro_usd, 0)), sum(micro_usd IS NULL)
FROM run GROUP BY 1, 2, 3, 4, 5;
