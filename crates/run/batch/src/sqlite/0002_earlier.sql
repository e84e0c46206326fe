-- The results that a new contract or `retry` set aside, with the contract under which they were made. Nothing deletes them.
CREATE TABLE contracts (id INTEGER PRIMARY KEY, contract TEXT NOT NULL UNIQUE);
CREATE TABLE earlier (id INTEGER PRIMARY KEY, number INTEGER NOT NULL, contract INTEGER NOT NULL, line TEXT NOT NULL);
