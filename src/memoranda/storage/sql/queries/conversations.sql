-- Conversations and the items in them. Lists are composed in code (`responses/conversations.py`), for their order.

-- name: add_conversation
INSERT INTO conversations (tenant_id, id, seq, user_id, metadata, created_at) VALUES (?, ?, ?, ?, ?, ?)

-- name: get_conversation
SELECT tenant_id, id, seq, user_id, metadata, summary, created_at FROM conversations WHERE tenant_id = ? AND id = ?

-- name: set_conversation
UPDATE conversations SET metadata = ? WHERE tenant_id = ? AND id = ?

-- name: drop_conversation
DELETE FROM conversations WHERE tenant_id = ? AND id = ?

-- name: summarize_conversation
UPDATE conversations SET summary = ? WHERE tenant_id = ? AND id = ?

-- name: get_item
SELECT seq, id, item FROM conversation_items WHERE tenant_id = ? AND conversation_id = ? AND id = ?

-- name: items_there (which of these ids are in the conversation)
SELECT i.id FROM {texts ?3} wanted
{join} conversation_items i ON i.tenant_id = ?1 AND i.conversation_id = ?2 AND i.id = wanted.value

-- name: items_after
SELECT seq, id, item FROM conversation_items WHERE tenant_id = ? AND conversation_id = ? AND seq > ? ORDER BY seq

-- name: drop_item
DELETE FROM conversation_items WHERE tenant_id = ? AND conversation_id = ? AND id = ?

-- name: item_sizes (the first items of a conversation, and their characters)
SELECT seq, length(item) FROM conversation_items WHERE tenant_id = ? AND conversation_id = ? ORDER BY seq LIMIT ?

-- name: drop_items
DELETE FROM conversation_items
WHERE tenant_id = ? AND conversation_id = ? AND seq IN (SELECT value FROM {seqs ?} wanted)

-- name: sizes_of_conversations (how many items there are, and their characters)
SELECT i.conversation_id, count(*), CAST(sum(length(i.item)) AS BIGINT) FROM {texts ?2} wanted
{join} conversation_items i ON i.tenant_id = ?1 AND i.conversation_id = wanted.value GROUP BY i.conversation_id

-- name: items_of_conversations
SELECT i.conversation_id, i.id FROM {texts ?2} wanted
{join} conversation_items i ON i.tenant_id = ?1 AND i.conversation_id = wanted.value

-- name: items_of_responses (what responses added to their conversation, and how many characters it has)
SELECT i.conversation_id, i.id, length(i.item) FROM {texts ?2} wanted
{join} conversation_items i ON i.tenant_id = ?1 AND i.response_id = wanted.value ORDER BY i.conversation_id, i.seq

-- name: responses_there (which of these ids are responses)
SELECT r.id FROM {texts ?2} wanted {join} responses r ON r.tenant_id = ?1 AND r.id = wanted.value

-- name: drop_later_summaries (those of a chain that may tell of the response at this place)
UPDATE responses SET summary = NULL, summarized_to = NULL
WHERE tenant_id = ? AND session_id = ? AND seq > ? AND summary IS NOT NULL
