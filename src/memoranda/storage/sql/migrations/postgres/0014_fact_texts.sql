-- Facts by their text: a text that is stored already joins its fact.
CREATE INDEX memories_fact_texts ON memories (tenant_id, content_hash) WHERE kind = 'fact';
