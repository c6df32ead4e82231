-- The page that a chunk ends on; NULL for chunks of earlier versions.
ALTER TABLE chunks ADD COLUMN last_page INTEGER;
