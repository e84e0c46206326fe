ALTER TABLE attempt ADD COLUMN finish TEXT; -- the reason why the model stopped, as the provider names it; NULL if it is not known
ALTER TABLE attempt ADD COLUMN answered TEXT; -- the model that answered, as the provider names it; NULL if it is not known
