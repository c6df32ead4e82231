-- What a restore of an archive needs beside what the packages have.

-- name: unsettled_attachments (files in stores that a restore has put there; whether all of their chunks are there)
SELECT store_id, file_id, seq, chunk_count = (
    SELECT count(*) FROM chunks c WHERE c.tenant_id = store_files.tenant_id AND c.attached = store_files.seq
)
FROM store_files
WHERE tenant_id = ?1 AND store_id IN (SELECT value FROM {texts ?2} wanted) AND status = 'completed' AND writing = 1
ORDER BY seq LIMIT ?3

-- name: settle_attachment
UPDATE store_files SET writing = 0 WHERE tenant_id = ? AND store_id = ? AND file_id = ? AND seq = ?

-- name: read_attachment_again
UPDATE store_files SET status = 'in_progress' WHERE tenant_id = ? AND store_id = ? AND file_id = ? AND seq = ?

-- name: queries_by_id
SELECT q.id, q.seq FROM {texts ?2} wanted {join} query_log q ON q.tenant_id = ?1 AND q.id = wanted.value
