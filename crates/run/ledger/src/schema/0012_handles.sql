-- `handle`: the name under which a provider's batch API or Restate has the call, which goes on without the process that wrote the
-- attempt. `served`: the model as the server names it, beside the configured one.
ALTER TABLE answer ADD COLUMN handle TEXT;
ALTER TABLE answer ADD COLUMN served TEXT;
CREATE INDEX answer_of_handle ON answer (handle) WHERE ended IS NULL AND handle IS NOT NULL;
DROP VIEW answers;
CREATE VIEW answers AS
SELECT id, batch, row, call, lower(hex(input)) AS input, target, name, model, served, prompt, sampling, sample, contract, version,
    coalesce(verdict, iif(handle IS NULL, 'uncertain', 'open')) AS verdict, rule, datetime(planned / 1000, 'unixepoch') AS planned_at,
    datetime(ended / 1000, 'unixepoch') AS ended_at, input_tokens, output_tokens, micro_usd / 1e6 AS usd,
    reserved / 1e6 AS reserved_usd, text, json_extract(line, '$.value') AS value, json_extract(line, '$.warnings') AS warnings,
    json_extract(line, '$.evidence') AS evidence
FROM answer;
