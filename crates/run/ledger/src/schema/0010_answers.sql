-- Attempts at the rows of batches. An attempt is written before its call leaves and completed afterwards; only `formwork store prune`
-- deletes it. An attempt without an end is uncertain if no process works on it, or its row made another one.
CREATE TABLE answer (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    batch TEXT NOT NULL,
    row INTEGER NOT NULL, -- the key of the row in its batch
    era INTEGER NOT NULL, -- grows when the row starts over
    call INTEGER, -- from 0, in the order of the calls of the era; NULL while it is open, and where no call was made
    input BLOB NOT NULL, -- SHA-256 of the text
    target TEXT NOT NULL, -- the identity of the target that was asked, else its name
    name TEXT NOT NULL, -- the name of the target
    model TEXT, -- NULL where it is not known
    prompt TEXT NOT NULL, -- a digest of the instructions and examples
    sampling TEXT NOT NULL, -- JSON
    sample INTEGER NOT NULL,
    contract TEXT NOT NULL, -- a digest
    version TEXT, -- of the prompt, where the contract names it
    planned INTEGER NOT NULL,
    reserved INTEGER, -- the most that the call costs; NULL where no price is known
    ended INTEGER,
    verdict TEXT, -- NULL while the call is open
    rule TEXT, -- the first violated rule
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    micro_usd INTEGER,
    text TEXT, -- the answer
    outcome INTEGER, -- of the row that ended with this attempt: 1 a value, 2 none
    line TEXT, -- the result of the row: the value with its origin, warnings and evidence, or the reasons why there is none
    state TEXT -- the run of an open row after this attempt
) STRICT;
CREATE INDEX answer_of_row ON answer (batch, row, era);
CREATE INDEX answer_of_input ON answer (input, prompt) WHERE outcome = 1;
CREATE INDEX answer_open ON answer (batch, row) WHERE ended IS NULL;
CREATE INDEX answer_state ON answer (batch, row) WHERE state IS NOT NULL;

-- The sums of the attempts of each batch.
CREATE TABLE spent (
    batch TEXT PRIMARY KEY,
    calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    micro_usd INTEGER NOT NULL,
    unpriced INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE VIEW answers AS
SELECT id, batch, row, call, lower(hex(input)) AS input, target, name, model, prompt, sampling, sample, contract, version,
    coalesce(verdict, 'uncertain') AS verdict, rule, datetime(planned / 1000, 'unixepoch') AS planned_at,
    datetime(ended / 1000, 'unixepoch') AS ended_at, input_tokens, output_tokens, micro_usd / 1e6 AS usd,
    reserved / 1e6 AS reserved_usd, text, json_extract(line, '$.value') AS value, json_extract(line, '$.warnings') AS warnings,
    json_extract(line, '$.evidence') AS evidence
FROM answer;
