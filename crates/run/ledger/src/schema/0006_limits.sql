ALTER TABLE key ADD COLUMN period TEXT; -- day, week or month, after which the budget is whole again; NULL is never
ALTER TABLE key ADD COLUMN period_start INTEGER NOT NULL DEFAULT 0;
ALTER TABLE key ADD COLUMN spent_before INTEGER NOT NULL DEFAULT 0; -- spent before the period began
ALTER TABLE key ADD COLUMN tpm INTEGER;
ALTER TABLE key ADD COLUMN max_open INTEGER;
ALTER TABLE spending ADD COLUMN process TEXT; -- that reserved it
