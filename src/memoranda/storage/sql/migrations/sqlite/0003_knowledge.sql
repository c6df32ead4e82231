-- Knowledge: uploaded files, vector stores, the files in them. A chunk is a row of `memories` of kind `chunk`, whose
-- channel is its store and whose source is its place in it; `chunks` says where in the file it stands.

-- What embeddings and words see of a chunk before its text.
ALTER TABLE memories ADD COLUMN header TEXT;

-- Jobs of one lane never wait behind another's: 0 is the house's, 1 the files'.
ALTER TABLE jobs ADD COLUMN lane INTEGER NOT NULL DEFAULT 0;
DROP INDEX jobs_due;
CREATE INDEX jobs_due ON jobs (lane, state, run_at, seq);
CREATE INDEX jobs_ended ON jobs (updated_at) WHERE state IN ('completed', 'failed', 'cancelled');

CREATE TABLE files (
    tenant_id  TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    seq        INTEGER NOT NULL,
    filename   TEXT    NOT NULL,
    bytes      INTEGER NOT NULL,
    purpose    TEXT    NOT NULL,
    media_type TEXT,
    sha256     TEXT    NOT NULL,
    user_id    TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX files_order ON files (tenant_id, seq);
CREATE INDEX files_bytes ON files (tenant_id, bytes);
CREATE INDEX files_expiry ON files (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE uploads (
    tenant_id       TEXT    NOT NULL,
    id              TEXT    NOT NULL,
    filename        TEXT    NOT NULL,
    bytes           INTEGER NOT NULL,
    purpose         TEXT    NOT NULL,
    media_type      TEXT,
    status          TEXT    NOT NULL,
    user_id         TEXT,
    file_id         TEXT,
    expires_seconds INTEGER,
    created_at      INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE INDEX uploads_expiry ON uploads (expires_at) WHERE status = 'pending';

CREATE TABLE upload_parts (
    tenant_id  TEXT    NOT NULL,
    upload_id  TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    bytes      INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, upload_id, id),
    FOREIGN KEY (tenant_id, upload_id) REFERENCES uploads (tenant_id, id) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE TABLE vector_stores (
    tenant_id      TEXT    NOT NULL,
    id             TEXT    NOT NULL,
    seq            INTEGER NOT NULL,
    name           TEXT    NOT NULL,
    description    TEXT,
    metadata       TEXT    NOT NULL,
    chunking       TEXT    NOT NULL,
    model          TEXT    NOT NULL,
    dim            INTEGER NOT NULL,
    user_id        TEXT,
    sharing        TEXT    NOT NULL,
    expires_days   INTEGER,
    expired        INTEGER NOT NULL DEFAULT 0,
    created_at     INTEGER NOT NULL,
    last_active_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX vector_stores_order ON vector_stores (tenant_id, seq);
CREATE INDEX vector_stores_shared ON vector_stores (id) WHERE sharing = 'everyone';
CREATE INDEX vector_stores_expiry ON vector_stores (last_active_at) WHERE expires_days IS NOT NULL AND expired = 0;

CREATE TABLE store_writers (
    tenant_id TEXT NOT NULL,
    store_id  TEXT NOT NULL,
    user_id   TEXT NOT NULL,
    PRIMARY KEY (tenant_id, store_id, user_id),
    FOREIGN KEY (tenant_id, store_id) REFERENCES vector_stores (tenant_id, id) ON DELETE CASCADE
) WITHOUT ROWID;

-- A file in a store. `seq` names the attachment: a file that is detached and attached again is another one.
-- `writing`: some of its chunks are stored and not all, so that no search may show them.
CREATE TABLE store_files (
    tenant_id     TEXT    NOT NULL,
    store_id      TEXT    NOT NULL,
    file_id       TEXT    NOT NULL,
    seq           INTEGER NOT NULL,
    status        TEXT    NOT NULL,
    error_code    TEXT,
    error_message TEXT,
    attributes    TEXT    NOT NULL,
    chunking      TEXT    NOT NULL,
    batch_id      TEXT,
    writing       INTEGER NOT NULL DEFAULT 0,
    chunk_count   INTEGER NOT NULL DEFAULT 0,
    usage_bytes   INTEGER NOT NULL DEFAULT 0,
    title         TEXT,
    notes         TEXT    NOT NULL DEFAULT '[]',
    created_at    INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, store_id, file_id),
    FOREIGN KEY (tenant_id, store_id) REFERENCES vector_stores (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, file_id) REFERENCES files (tenant_id, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX store_files_order ON store_files (tenant_id, store_id, seq);
CREATE UNIQUE INDEX store_files_seq ON store_files (tenant_id, seq);
CREATE INDEX store_files_status ON store_files (tenant_id, store_id, status, usage_bytes);
CREATE INDEX store_files_file ON store_files (tenant_id, file_id);
CREATE INDEX store_files_batch ON store_files (tenant_id, batch_id, status) WHERE batch_id IS NOT NULL;
CREATE INDEX store_files_writing ON store_files (tenant_id, store_id) WHERE writing = 1;

CREATE TABLE file_batches (
    tenant_id  TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    store_id   TEXT    NOT NULL,
    cancelled  INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, store_id) REFERENCES vector_stores (tenant_id, id) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX file_batches_store ON file_batches (tenant_id, store_id);

-- Where a chunk stands: the number of its file's attachment, its place there, its characters of the extracted text.
CREATE TABLE chunks (
    tenant_id TEXT    NOT NULL,
    seq       INTEGER NOT NULL,
    attached  INTEGER NOT NULL,
    idx       INTEGER NOT NULL,
    start     INTEGER NOT NULL,
    stop      INTEGER NOT NULL,
    tokens    INTEGER NOT NULL,
    page      INTEGER,
    heading   TEXT,
    PRIMARY KEY (tenant_id, seq),
    FOREIGN KEY (tenant_id, seq) REFERENCES memories (tenant_id, seq) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE UNIQUE INDEX chunks_place ON chunks (tenant_id, attached, idx);

-- What was taken out of a store and still has chunks: no search shows it. `attached` 0 is the whole store.
CREATE TABLE removing (
    tenant_id TEXT    NOT NULL,
    store_id  TEXT    NOT NULL,
    attached  INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, store_id, attached)
) WITHOUT ROWID;

-- What a tenant may hold, where it is not what the configuration says.
CREATE TABLE quotas (
    tenant_id TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    value     INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, name)
) WITHOUT ROWID;

-- Bytes of files, where the database keeps them. A head is `writing`, `complete` or `going`; only a complete one is
-- seen. Its pieces are 1 MiB, the last one less.
CREATE TABLE blobs (
    tenant_id  TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    bytes      INTEGER NOT NULL,
    state      TEXT    NOT NULL,
    touched_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;

CREATE TABLE blob_pieces (
    tenant_id TEXT    NOT NULL,
    id        TEXT    NOT NULL,
    piece     INTEGER NOT NULL,
    data      BLOB    NOT NULL,
    PRIMARY KEY (tenant_id, id, piece),
    FOREIGN KEY (tenant_id, id) REFERENCES blobs (tenant_id, id)
);

-- What the planner should expect of a large tenant, as for memories.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('files', 'files', '100000 100000 1'),
    ('files', 'files_order', '100000 100000 1'),
    ('files', 'files_bytes', '100000 100000 2'),
    ('store_files', 'store_files', '100000 100000 1000 1'),
    ('store_files', 'store_files_order', '100000 100000 1000 1'),
    ('store_files', 'store_files_seq', '100000 100000 1'),
    ('store_files', 'store_files_status', '100000 100000 1000 500 2'),
    ('store_files', 'store_files_file', '100000 100000 2'),
    ('store_files', 'store_files_batch', '100000 100000 100 50'),
    ('store_files', 'store_files_writing', '10 10 2'),
    ('file_batches', 'file_batches', '100000 100000 1'),
    ('file_batches', 'file_batches_store', '100000 100000 100'),
    ('chunks', 'chunks', '1000000 1000000 1'),
    ('chunks', 'chunks_place', '1000000 1000000 20 1');
ANALYZE sqlite_schema;
