-- The answers are in the store. `key`: the row of its answers, which stays where rows are added before it. `digest`: SHA-256 of the
-- input. `answer`: the attempt with the result of the row.
ALTER TABLE rows ADD COLUMN key INTEGER NOT NULL DEFAULT 0;
ALTER TABLE rows ADD COLUMN digest BLOB;
ALTER TABLE rows ADD COLUMN answer INTEGER;
UPDATE rows SET key = number;
-- The further columns of the row, as a JSON object, for exports.
ALTER TABLE inputs ADD COLUMN columns TEXT;
