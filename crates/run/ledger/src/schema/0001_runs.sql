-- What was asked of models and what came of it. Times are milliseconds since the Unix epoch, money is millionths of a US dollar.
CREATE TABLE run (
    id INTEGER PRIMARY KEY, -- ordered by the time at which the id was made
    started INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    message TEXT,
    source TEXT NOT NULL,
    key INTEGER,
    user TEXT,
    contract TEXT,
    digest TEXT,
    target TEXT NOT NULL,
    model TEXT NOT NULL,
    tags TEXT, -- a JSON array of strings
    attempts INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    estimated INTEGER NOT NULL,
    micro_usd INTEGER, -- NULL where no price is known
    cached INTEGER NOT NULL,
    feedback TEXT
) STRICT;
CREATE INDEX run_of_key ON run (key) WHERE key IS NOT NULL;
CREATE INDEX run_failed ON run (outcome) WHERE outcome <> 'ok';

CREATE TABLE attempt (
    run INTEGER NOT NULL,
    call INTEGER NOT NULL, -- from 1, in the order of the calls
    number INTEGER NOT NULL,
    target TEXT NOT NULL,
    model TEXT NOT NULL,
    mode TEXT NOT NULL,
    class TEXT NOT NULL,
    message TEXT,
    started INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    estimated INTEGER NOT NULL,
    micro_usd INTEGER,
    patched TEXT, -- a JSON array of paths
    PRIMARY KEY (run, call)
) STRICT, WITHOUT ROWID;

CREATE TABLE violation (
    run INTEGER NOT NULL,
    call INTEGER NOT NULL,
    nth INTEGER NOT NULL, -- from 1
    class TEXT NOT NULL,
    path TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (run, call, nth)
) STRICT, WITHOUT ROWID;

CREATE TABLE body (
    run INTEGER PRIMARY KEY,
    request TEXT,
    answers TEXT NOT NULL -- a JSON array: a string or null for each attempt
) STRICT;

CREATE TABLE hourly_run (
    hour INTEGER NOT NULL,
    contract TEXT NOT NULL,
    model TEXT NOT NULL,
    outcome TEXT NOT NULL,
    runs INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    micro_usd INTEGER NOT NULL,
    unpriced INTEGER NOT NULL, -- the runs of which no price is known
    millis INTEGER NOT NULL,
    PRIMARY KEY (hour, contract, model, outcome)
) STRICT, WITHOUT ROWID;

CREATE TABLE hourly_reason (
    hour INTEGER NOT NULL,
    class TEXT NOT NULL,
    path TEXT NOT NULL,
    model TEXT NOT NULL,
    contract TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (hour, class, path, model, contract)
) STRICT, WITHOUT ROWID;
