ALTER TABLE run ADD COLUMN not_stated TEXT; -- a JSON array of paths; NULL for none
DROP VIEW runs;
CREATE VIEW runs AS
SELECT run.id, datetime(started / 1000, 'unixepoch') AS started_at, ended - started AS millis, outcome, message, source,
    key.name AS key, user, contract, digest, target, model, tags, attempts, input_tokens, output_tokens,
    micro_usd / 1e6 AS usd, cached, feedback, warnings, not_stated
FROM run LEFT JOIN key ON key.id = run.key;
