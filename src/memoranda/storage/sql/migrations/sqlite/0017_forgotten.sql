-- What was forgotten by request, so that importing an older export does not bring it back: digests, no ids and no text.
-- `mark` is keyed with `salt`, which an export has as well.
CREATE TABLE forgotten (
    tenant_id    TEXT NOT NULL,
    salt         TEXT NOT NULL,
    mark         TEXT NOT NULL,
    forgotten_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, salt, mark, forgotten_at)
) WITHOUT ROWID;
