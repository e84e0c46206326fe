-- The batch itself, and what its engine keeps.
CREATE TABLE batch (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- The rows in the order of the input. `state`: 0 open, 1 accepted, 2 rejected. `bad`: the row cannot be asked about. A row with a
-- `leader` has the same input as that row and gets its result. `era` counts how often the row was started anew.
CREATE TABLE rows (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  state INTEGER NOT NULL,
  bad INTEGER NOT NULL DEFAULT 0,
  leader INTEGER,
  era INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX rows_by_id ON rows (id) WHERE bad = 0;
CREATE INDEX open_rows ON rows (number) WHERE state = 0 AND leader IS NULL;
CREATE INDEX rows_by_leader ON rows (leader) WHERE leader IS NOT NULL;

-- Apart from the rows, so that a change of a row's state does not write its input again.
CREATE TABLE inputs (number INTEGER PRIMARY KEY, input TEXT NOT NULL);
CREATE TABLE states (number INTEGER PRIMARY KEY, state TEXT NOT NULL);
CREATE TABLE results (number INTEGER PRIMARY KEY, line TEXT NOT NULL);

-- Every call whose result is known.
CREATE TABLE attempts (
  number INTEGER NOT NULL,
  era INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  started INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  target TEXT NOT NULL,
  result TEXT NOT NULL,
  rule TEXT,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  micro_usd INTEGER,
  PRIMARY KEY (number, era, attempt)
) WITHOUT ROWID;

-- Sums, so that nobody has to count.
CREATE TABLE totals (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  rows INTEGER NOT NULL,
  accepted INTEGER NOT NULL,
  rejected INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  micro_usd INTEGER NOT NULL,
  unpriced INTEGER NOT NULL
);
INSERT INTO totals VALUES (1, 0, 0, 0, 0, 0, 0, 0, 0);
CREATE TABLE reasons (reason TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;

-- The files of results. `open`: rows of the file without a result. `written`: the file has the results of all its rows.
CREATE TABLE parts (part INTEGER PRIMARY KEY, open INTEGER NOT NULL, written INTEGER NOT NULL);
