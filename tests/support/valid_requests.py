"""Requests that the HTTP server accepts, by the names of their routes."""

from __future__ import annotations

from typing import Any


def valid_requests(ids: dict[str, str]) -> dict[str, dict[str, Any]]:
    """What to send to each route where an empty body is not enough; `ids` are those of `House.stock`."""
    attach = {"file_id": ids["file_id"]}
    upload = {"filename": "a.txt", "bytes": 5, "purpose": "assistants", "mime_type": "text/plain"}
    store = "/v1/vector_stores/{store_id}"
    learn = {"json": {"messages": [{"content": "I like green kettles."}], "user_id": ids["user_id"]}}
    find = {"json": {"query": "kettle", "filters": {"user_id": ids["user_id"]}}}
    return {
        "POST /v1/memories": {"json": {"content": "more", "embedding": [0.25] * 64}},
        "POST /v1/memories/batch": {"json": {"memories": [{"content": "most", "embedding": [0.25] * 64}]}},
        "POST /v1/memories/forgotten": {
            "json": {"memories": [{"content": "most"}], "exported_at": "2026-05-01T00:00:00Z"}
        },
        "POST /v1/memories/search": {"json": {"query": "something", "explain": True, "limit": 50}},
        "POST /v1/memories/entries": {"json": {"entries": [{"content": "another"}]}},
        "POST /v1/memories/entries/search": {"json": {"query": "something"}},
        "POST /v1/memories/count_access": {"json": {"ids": ["x"]}},
        "POST /v1/memories/forget": {"json": {"ids": ["x"]}},
        "POST /v1/memories/forget/preview": {"json": {"ids": ["x"]}},
        "POST /v1/context": {
            "json": {
                "query": "something of a kettle",
                "stores": [ids["store_id"]],
                "system": "Be brief.",
                "explain": True,
                "recent": [{"role": "user", "content": "hello"}],
            }
        },
        "POST /v1/evaluations": {
            "json": {"set": "assistant", "configurations": [{"mode": "keyword"}], "limit": 2}
        },
        "POST /v1/backfills": {"json": {"what": "summaries"}},
        "POST /v1/embeddings": {"json": {"model": "hash-64", "input": "a"}},
        "POST /v1/memories/move_index": {"json": {"to": "memory:?engine=float"}},
        "POST /v1/files": {"files": {"file": ("a.txt", b"a")}, "data": {"purpose": "assistants"}},
        "POST /v1/uploads": {"json": upload},
        "POST /v1/uploads/{upload_id}/parts": {"files": {"data": ("a", b"12345")}},
        "POST /v1/uploads/{upload_id}/complete": {"json": {"part_ids": [ids.get("part_id", "")]}},
        "POST /v1/vector_stores": {
            "json": {"name": "n", "expires_after": {"anchor": "last_active_at", "days": 3}}
        },
        "POST /v1/vector_stores/search": {"json": {"vector_store_ids": [ids["store_id"]], "query": "kettle"}},
        "POST /v1/responses": {"json": {"input": "kettle?", "metadata": {"a": "b"}}},
        "POST /v1/responses/input_tokens": {"json": {"input": "kettle?"}},
        "POST /v1/responses/compact": {"json": {"model": "extractive", "input": "The kettle is green."}},
        "POST /v1/chat/completions": {"json": {"messages": [{"role": "user", "content": "kettle?"}]}},
        "POST /v1/conversations": {
            "json": {"items": [{"role": "user", "content": "a"}], "metadata": {"a": "b"}}
        },
        "POST /v1/conversations/{conversation_id}": {"json": {"metadata": {"a": "c"}}},
        "POST /v1/conversations/{conversation_id}/items": {
            "json": {"items": [{"role": "assistant", "content": "b"}]}
        },
        "POST /v1/messages": {
            "json": {"messages": [{"content": "a", "speaker": "Ana"}], "channel_id": "said"}
        },
        "POST /v1/sessions/{session_id}/messages": {"json": {"messages": [{"content": "b"}]}},
        "POST /v1/sessions/{session_id}/messages/{message_id}": {"json": {"content": "c"}},
        "POST /v1/sessions/{session_id}/summary": {"json": {"summary": "Kettles."}},
        "POST /v1/sessions/{session_id}/summary/failure": {"json": {"reason": "too long"}},
        "POST /v1/agents": {"json": {"name": "n", "memory": {"episodic": True, "min_score": 0.5}}},
        "POST /api/v1/upload-ask/documents": {"json": {"title": "a", "text": "The kettle is green."}},
        "POST /api/v1/upload-ask/query": {"json": {"question": "kettle?", "topKMems": 3}},
        "POST /api/v1/upload-ask/qa/query": {
            "json": {"query": "kettle?", "sessionId": ids["ask_session_id"]}
        },
        "POST /api/v1/upload-ask/memories": {"json": {"content": "The kettle is loud."}},
        **dict.fromkeys(("POST /v3/memories/add/", "POST /v1/memories/", "POST /memories"), learn),
        **{
            f"POST {path}": find
            for path in ("/v3/memories/search/", "/v2/memories/search/", "/v1/memories/search/", "/search")
        },
        "PUT /v1/memories/{memory_id}/": {"json": {"metadata": {"a": 1}}},
        "PUT /memories/{memory_id}": {"json": {"metadata": {"a": 1}}},
        "PUT /v1/batch/": {"json": {"memories": [{"memory_id": ids["memory_id"], "metadata": {"a": 2}}]}},
        "DELETE /v1/batch/": {"json": {"memories": [{"memory_id": "nope"}]}},
        "POST /v1/memory_stores": {"json": {"name": "n", "metadata": {"a": "b"}}},
        "POST /v1/memory_stores/{memory_store_id}": {"json": {"metadata": {"a": "c"}}},
        "POST /v1/memory_stores/{memory_store_id}/memories": {"json": {"path": "/a/b.md", "content": "more"}},
        "POST /v1/memory_stores/{memory_store_id}/memories/{store_memory_id}": {"json": {"path": "/c.md"}},
        "POST /retrieval": {"json": {"knowledge_id": ids["store_id"], "query": "kettle"}},
        f"POST {store}/search": {"json": {"query": "kettle", "explain": True, "expand": {"neighbours": 1}}},
        f"POST {store}/files": {"json": attach},
        f"POST {store}/files/{{file_id}}": {"json": {"attributes": {"a": 1}}},
        f"POST {store}/file_batches": {"json": {"files": [attach]}},
    }
