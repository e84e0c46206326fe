CREATE TABLE key (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    hash BLOB NOT NULL UNIQUE, -- SHA-256 of the secret
    hint TEXT NOT NULL, -- the first characters of the secret
    role TEXT NOT NULL,
    budget INTEGER, -- NULL where spending is not limited
    spent INTEGER NOT NULL DEFAULT 0,
    held INTEGER NOT NULL DEFAULT 0, -- reserved and not settled
    rpm INTEGER,
    models TEXT, -- a JSON array of names; NULL allows all
    created INTEGER NOT NULL,
    expires INTEGER,
    revoked INTEGER
) STRICT;

CREATE TABLE spending (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key INTEGER NOT NULL,
    run INTEGER,
    reserved INTEGER NOT NULL,
    actual INTEGER, -- NULL while it is not settled: all that was reserved counts as spent
    reserved_at INTEGER NOT NULL
) STRICT;
CREATE INDEX spending_of_key ON spending (key);

CREATE TABLE cache (
    key INTEGER NOT NULL, -- 0 for requests without a key
    digest TEXT NOT NULL,
    value TEXT NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (key, digest)
) STRICT;
CREATE INDEX cache_created ON cache (created, bytes);
CREATE INDEX cache_expires ON cache (expires);
