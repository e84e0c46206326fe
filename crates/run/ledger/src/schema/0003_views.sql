-- The views are public: the crate's README documents every column.
CREATE VIEW runs AS
SELECT run.id, datetime(started / 1000, 'unixepoch') AS started_at, ended - started AS millis, outcome, message, source,
    key.name AS key, user, contract, digest, target, model, tags, attempts, input_tokens, output_tokens,
    micro_usd / 1e6 AS usd, cached, feedback
FROM run LEFT JOIN key ON key.id = run.key;

CREATE VIEW attempts AS
SELECT run, call, number, target, model, mode, class, message, datetime(started / 1000, 'unixepoch') AS started_at,
    ended - started AS millis, input_tokens, output_tokens, micro_usd / 1e6 AS usd, patched
FROM attempt;

CREATE VIEW violations AS
SELECT violation.run, violation.call, class, path, violation.message, run.model, coalesce(run.contract, run.digest) AS contract
FROM violation JOIN run ON run.id = violation.run;

CREATE VIEW reasons AS
SELECT datetime(hour * 3600, 'unixepoch') AS hour, class, path, model, contract, count FROM hourly_reason;

CREATE VIEW hours AS
SELECT datetime(hour * 3600, 'unixepoch') AS hour, contract, model, outcome, runs, attempts, input_tokens, output_tokens,
    micro_usd / 1e6 AS usd, unpriced, millis
FROM hourly_run;

CREATE VIEW spend AS
SELECT name AS key, role, budget / 1e6 AS budget_usd, spent / 1e6 AS spent_usd, held / 1e6 AS held_usd,
    (budget - spent - held) / 1e6 AS left_usd, datetime(expires / 1000, 'unixepoch') AS expires_at,
    revoked IS NOT NULL AS is_revoked
FROM key;
