// What the API answers, as far as the console reads it (docs/http.md).
export interface Memory {
  id: string; kind: string; content: string; user_id: string | null; agent_id: string | null;
  channel_id: string | null; session_id: string | null; scope: string; role: string | null; source: string | null;
  tags: string[]; metadata: Record<string, unknown>; importance: number; confidence: number; access_count: number;
  last_accessed_at: string | null; valid_from: string | null; invalid_at: string | null; superseded_by: string | null;
  archived_at: string | null; source_refs: string[]; occurred_at: string; created_at: string; updated_at: string;
}
export interface Page<T> { data: T[]; first_id: string | null; last_id: string | null; has_more: boolean }
export interface Highlight { text: string; start: number; end: number }
export interface Explanation {
  cosine: number | null; similarity: number | null; bm25: number | null; dense_normalised: number | null;
  words_normalised: number | null; dense_rank: number | null; words_rank: number | null; weights: Record<string, number>;
  scope: string | null; scope_weight: number; fused: number; preset: string | null; added: Record<string, number>;
  factors: Record<string, number>; model_rank: number | null; rank_before: number; rank_after: number; formula: string;
}
export interface Hit {
  memory: Memory; score: number; similarity: number | null; highlights: Highlight[]; explanation: Explanation | null;
}
export type Evidence = "strong" | "weak" | "none";
export interface SearchAnswer {
  results: Hit[]; total_count: number; query_time: number; evidence: Evidence; evidence_probability: number; degraded: string[];
}
export type SessionStatus = "open" | "closed" | "summarized" | "failed";
export interface Session {
  id: string; named: boolean; channel_id: string | null; user_id: string | null; agent_id: string | null;
  started_at: string; ended_at: string; message_count: number; participants: string[]; status: SessionStatus;
  summary: string | null; topics: string[]; decisions: string[]; open_questions: string[]; action_items: string[];
  entities: string[]; summary_id: string | null; summary_model: string | null; summary_created_at: string | null;
  failure: string | null; attempts: number; extraction: string; facts_failure: string | null;
}
export interface Message {
  id: string; session_id: string; channel_id: string | null; user_id: string | null; role: string; speaker: string | null;
  content: string; indexed: boolean; occurred_at: string;
}
export interface Receipt {
  tombstone: string; memories: number; vectors: number; erased_at: string; note: string; counts: Record<string, number>;
}
export interface FactChange { at: string; what: string; ids: string[]; why: string | null }
export interface Version { memory: Memory; begins: string | null; ends: string | null; live: boolean; changes: FactChange[] }
export interface Citation {
  mark: string | null; ids: string[]; kind: string | null; source: string | null; session_id: string | null;
  channel_id: string | null; started_at: string | null; ended_at: string | null; vector_store_id: string | null;
  file_id: string | null; filename: string | null; chunk_index: number | null; page: number | null;
}
export interface Piece {
  part: string; id: string; kind: string; text: string; tokens: number; cut: boolean; score: number;
  scores: Record<string, number>; citation: Citation | null; explanation: Explanation | null;
}
export interface LeftOut { part: string; id: string; kind: string; why: string; of: string | null; score: number }
export interface Context {
  query: string; text: string; tokens: number; messages: { role: string; content: string }[];
  parts: Record<string, { text: string; tokens: number }>; pieces: Piece[]; left_out: LeftOut[]; evidence: Evidence;
  evidence_probability: number; degraded: string[]; query_time: number;
}
export interface VectorStore { id: string; name: string | null }
