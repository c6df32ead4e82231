-- What was forgotten beside memories: how much of what, as JSON.
ALTER TABLE tombstones ADD COLUMN counts TEXT NOT NULL DEFAULT '{}';
