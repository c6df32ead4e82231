-- Knowledge: uploaded files, vector stores, the files in them. A chunk is a row of `memories` of kind `chunk`, whose
-- channel is its store and whose source is its place in it; `chunks` says where in the file it stands.

-- What embeddings and words see of a chunk before its text.
ALTER TABLE memories ADD COLUMN header TEXT COLLATE "C";

-- Jobs of one lane never wait behind another's: 0 is the house's, 1 the files'.
ALTER TABLE jobs ADD COLUMN lane BIGINT NOT NULL DEFAULT 0;
DROP INDEX jobs_due;
CREATE INDEX jobs_due ON jobs (lane, state, run_at, seq);
CREATE INDEX jobs_ended ON jobs (updated_at) WHERE state IN ('completed', 'failed', 'cancelled');

CREATE TABLE files (
    tenant_id  TEXT COLLATE "C"    NOT NULL,
    id         TEXT COLLATE "C"    NOT NULL,
    seq        BIGINT NOT NULL,
    filename   TEXT COLLATE "C"    NOT NULL,
    bytes      BIGINT NOT NULL,
    purpose    TEXT COLLATE "C"    NOT NULL,
    media_type TEXT COLLATE "C",
    sha256     TEXT COLLATE "C"    NOT NULL,
    user_id    TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX files_order ON files (tenant_id, seq);
CREATE INDEX files_bytes ON files (tenant_id, bytes);
CREATE INDEX files_expiry ON files (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE uploads (
    tenant_id       TEXT COLLATE "C"    NOT NULL,
    id              TEXT COLLATE "C"    NOT NULL,
    filename        TEXT COLLATE "C"    NOT NULL,
    bytes           BIGINT NOT NULL,
    purpose         TEXT COLLATE "C"    NOT NULL,
    media_type      TEXT COLLATE "C",
    status          TEXT COLLATE "C"    NOT NULL,
    user_id         TEXT COLLATE "C",
    file_id         TEXT COLLATE "C",
    expires_seconds BIGINT,
    created_at      BIGINT NOT NULL,
    expires_at      BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX uploads_expiry ON uploads (expires_at) WHERE status = 'pending';

CREATE TABLE upload_parts (
    tenant_id  TEXT COLLATE "C"    NOT NULL,
    upload_id  TEXT COLLATE "C"    NOT NULL,
    id         TEXT COLLATE "C"    NOT NULL,
    bytes      BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, upload_id, id),
    FOREIGN KEY (tenant_id, upload_id) REFERENCES uploads (tenant_id, id) ON DELETE CASCADE
);

CREATE TABLE vector_stores (
    tenant_id      TEXT COLLATE "C"    NOT NULL,
    id             TEXT COLLATE "C"    NOT NULL,
    seq            BIGINT NOT NULL,
    name           TEXT COLLATE "C"    NOT NULL,
    description    TEXT COLLATE "C",
    metadata       TEXT COLLATE "C"    NOT NULL,
    chunking       TEXT COLLATE "C"    NOT NULL,
    model          TEXT COLLATE "C"    NOT NULL,
    dim            BIGINT NOT NULL,
    user_id        TEXT COLLATE "C",
    sharing        TEXT COLLATE "C"    NOT NULL,
    expires_days   BIGINT,
    expired        BIGINT NOT NULL DEFAULT 0,
    created_at     BIGINT NOT NULL,
    last_active_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX vector_stores_order ON vector_stores (tenant_id, seq);
CREATE INDEX vector_stores_shared ON vector_stores (id) WHERE sharing = 'everyone';
CREATE INDEX vector_stores_expiry ON vector_stores (last_active_at) WHERE expires_days IS NOT NULL AND expired = 0;

CREATE TABLE store_writers (
    tenant_id TEXT COLLATE "C" NOT NULL,
    store_id  TEXT COLLATE "C" NOT NULL,
    user_id   TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, store_id, user_id),
    FOREIGN KEY (tenant_id, store_id) REFERENCES vector_stores (tenant_id, id) ON DELETE CASCADE
);

-- A file in a store. `seq` names the attachment: a file that is detached and attached again is another one.
-- `writing`: some of its chunks are stored and not all, so that no search may show them.
CREATE TABLE store_files (
    tenant_id     TEXT COLLATE "C"    NOT NULL,
    store_id      TEXT COLLATE "C"    NOT NULL,
    file_id       TEXT COLLATE "C"    NOT NULL,
    seq           BIGINT NOT NULL,
    status        TEXT COLLATE "C"    NOT NULL,
    error_code    TEXT COLLATE "C",
    error_message TEXT COLLATE "C",
    attributes    TEXT COLLATE "C"    NOT NULL,
    chunking      TEXT COLLATE "C"    NOT NULL,
    batch_id      TEXT COLLATE "C",
    writing       BIGINT NOT NULL DEFAULT 0,
    chunk_count   BIGINT NOT NULL DEFAULT 0,
    usage_bytes   BIGINT NOT NULL DEFAULT 0,
    title         TEXT COLLATE "C",
    notes         TEXT COLLATE "C"    NOT NULL DEFAULT '[]',
    created_at    BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, store_id, file_id),
    FOREIGN KEY (tenant_id, store_id) REFERENCES vector_stores (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, file_id) REFERENCES files (tenant_id, id)
);
CREATE UNIQUE INDEX store_files_order ON store_files (tenant_id, store_id, seq);
CREATE UNIQUE INDEX store_files_seq ON store_files (tenant_id, seq);
CREATE INDEX store_files_status ON store_files (tenant_id, store_id, status, usage_bytes);
CREATE INDEX store_files_file ON store_files (tenant_id, file_id);
CREATE INDEX store_files_batch ON store_files (tenant_id, batch_id, status) WHERE batch_id IS NOT NULL;
CREATE INDEX store_files_writing ON store_files (tenant_id, store_id) WHERE writing = 1;

CREATE TABLE file_batches (
    tenant_id  TEXT COLLATE "C"    NOT NULL,
    id         TEXT COLLATE "C"    NOT NULL,
    store_id   TEXT COLLATE "C"    NOT NULL,
    cancelled  BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, store_id) REFERENCES vector_stores (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX file_batches_store ON file_batches (tenant_id, store_id);

-- Where a chunk stands: the number of its file's attachment, its place there, its characters of the extracted text.
CREATE TABLE chunks (
    tenant_id TEXT COLLATE "C"    NOT NULL,
    seq       BIGINT NOT NULL,
    attached  BIGINT NOT NULL,
    idx       BIGINT NOT NULL,
    start     BIGINT NOT NULL,
    stop      BIGINT NOT NULL,
    tokens    BIGINT NOT NULL,
    page      BIGINT,
    heading   TEXT COLLATE "C",
    PRIMARY KEY (tenant_id, seq),
    FOREIGN KEY (tenant_id, seq) REFERENCES memories (tenant_id, seq) ON DELETE CASCADE
);
CREATE UNIQUE INDEX chunks_place ON chunks (tenant_id, attached, idx);

-- What was taken out of a store and still has chunks: no search shows it. `attached` 0 is the whole store.
CREATE TABLE removing (
    tenant_id TEXT COLLATE "C"    NOT NULL,
    store_id  TEXT COLLATE "C"    NOT NULL,
    attached  BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, store_id, attached)
);

-- What a tenant may hold, where it is not what the configuration says.
CREATE TABLE quotas (
    tenant_id TEXT COLLATE "C"    NOT NULL,
    name      TEXT COLLATE "C"    NOT NULL,
    value     BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, name)
);

DO $$
DECLARE name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'files', 'uploads', 'upload_parts', 'vector_stores', 'store_writers', 'store_files', 'file_batches', 'chunks',
        'removing', 'quotas'
    ]
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY own_tenant ON %I USING ('
            'tenant_id = (SELECT current_setting(''memoranda.tenant'', true))'
            ' OR (SELECT current_setting(''memoranda.house'', true)) = ''on'')',
            name
        );
    END LOOP;
END $$;

-- Bytes of files, where the database keeps them. A head is `writing`, `complete` or `going`; only a complete one is
-- seen. Its pieces are 1 MiB, the last one less, and are not compressed: most files are already.
CREATE TABLE blobs (
    tenant_id  TEXT COLLATE "C"    NOT NULL,
    id         TEXT COLLATE "C"    NOT NULL,
    bytes      BIGINT NOT NULL,
    state      TEXT COLLATE "C"    NOT NULL,
    touched_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

CREATE TABLE blob_pieces (
    tenant_id TEXT COLLATE "C"    NOT NULL,
    id        TEXT COLLATE "C"    NOT NULL,
    piece     BIGINT NOT NULL,
    data      BYTEA  NOT NULL,
    PRIMARY KEY (tenant_id, id, piece),
    FOREIGN KEY (tenant_id, id) REFERENCES blobs (tenant_id, id)
);
ALTER TABLE blob_pieces ALTER COLUMN data SET STORAGE EXTERNAL;

DO $$
DECLARE name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY['blobs', 'blob_pieces']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY own_tenant ON %I USING ('
            'tenant_id = (SELECT current_setting(''memoranda.tenant'', true))'
            ' OR (SELECT current_setting(''memoranda.house'', true)) = ''on'')',
            name
        );
    END LOOP;
END $$;
