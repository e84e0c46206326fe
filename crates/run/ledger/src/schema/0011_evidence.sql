ALTER TABLE run ADD COLUMN evidence TEXT; -- a JSON object: the number of leaves by their support in the text; NULL without a value or text
DROP VIEW runs;
CREATE VIEW runs AS
SELECT run.id, datetime(started / 1000, 'unixepoch') AS started_at, ended - started AS millis, outcome, message, source,
    key.name AS key, user, contract, digest, target, model, tags, attempts, input_tokens, output_tokens,
    micro_usd / 1e6 AS usd, cached, feedback, warnings, not_stated, trust, evidence
FROM run LEFT JOIN key ON key.id = run.key;
