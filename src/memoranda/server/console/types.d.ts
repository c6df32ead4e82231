// What the API answers, as far as the console reads it (docs/guides/http.md).
export interface Memory {
  id: string; kind: string; content: string; user_id: string | null; agent_id: string | null;
  channel_id: string | null; session_id: string | null; scope: string; role: string | null; source: string | null;
  tags: string[]; metadata: Record<string, unknown>; importance: number; confidence: number; access_count: number;
  last_accessed_at: string | null; valid_from: string | null; invalid_at: string | null; superseded_by: string | null;
  archived_at: string | null; source_refs: string[]; occurred_at: string; created_at: string; updated_at: string;
}
export interface NearDuplicate { first: string; second: string; cosine: number | null; jaccard: number; reason: string }
export interface NearDuplicatePage { data: NearDuplicate[]; compared: number; last_id: string | null; has_more: boolean }
export interface FacetValue {
  value: string;
  count: number;
}

export interface Facets {
  total: number;
  kinds: FacetValue[];
  scopes: FacetValue[];
  sources: FacetValue[];
  tags: FacetValue[];
  months: FacetValue[];
}

export interface FactChain {
  id: string;
  facts: { memory: Memory; begins: string; ends: string | null; holds: boolean }[];
}

export interface Timeline {
  data: FactChain[];
  total: number;
  holding: number;
  since: string | null;
}

export interface Projection {
  ids: string[]; points: [number, number][]; kinds: string[]; scopes: string[]; occurred_at: string[]; total: number; explained: number;
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
  results: Hit[]; total_count: number; query_time: number; searched: number | null; evidence: Evidence; evidence_probability: number; degraded: string[];
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
export interface ForgetPreview {
  counts: Record<string, number>;
  kinds: { kind: string; count: number; ended: number; examples: Memory[] }[];
  files: string[];
}

export interface Receipt {
  tombstone: string; memories: number; vectors: number; erased_at: string; note: string; counts: Record<string, number>;
}
export interface FactChange { at: string; what: string; ids: string[]; why: string | null; quote: string | null }
export interface Version { memory: Memory; begins: string | null; ends: string | null; live: boolean; changes: FactChange[] }
export interface Citation {
  mark: string | null; ids: string[]; kind: string | null; source: string | null; session_id: string | null;
  channel_id: string | null; started_at: string | null; ended_at: string | null; vector_store_id: string | null;
  file_id: string | null; filename: string | null; chunk_index: number | null; page: number | null; last_page: number | null;
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
export interface EvaluatedAnswer { ids: string[]; scores: number[]; rank: number | null; recall: number; degraded: string[] }
export interface EvaluatedQuestion { query: string; category: string; relevant: string[]; misleading: string[]; answers: EvaluatedAnswer[] }
export interface Evaluation {
  set: string; limit: number; configurations: { name: string; scores: Record<string, Record<string, number>>; degraded: number }[];
  questions: EvaluatedQuestion[]; texts: Record<string, string>;
}
export type FileStatus = "in_progress" | "completed" | "failed" | "cancelled";
export interface VectorStore {
  id: string; name: string | null; description: string | null; created_at: number; usage_bytes: number; status: string;
  file_counts: Record<FileStatus | "total", number>; last_active_at: number | null; expires_at: number | null;
  model: string; dimension: number; owner: string | null; sharing: string; metadata: Record<string, string>;
  chunking_strategy: { type: string; strategy?: string; chunk_size?: number; chunk_overlap?: number };
}
export interface StoreFile {
  id: string; created_at: number; usage_bytes: number; vector_store_id: string; status: FileStatus;
  last_error: { code: string; message: string } | null; attributes: Record<string, string | number | boolean>;
  filename: string; bytes: number; chunk_count: number; title: string | null; notes: string[];
}
export interface Chunk {
  id: string; index: number; start: number; end: number; page: number | null; last_page: number | null; heading: string | null; tokens: number; content: string;
}
export interface FileContent { data: { type: string; text: string }[] }
export interface Passage {
  file_id: string; filename: string; score: number; attributes: Record<string, unknown>; content: { type: string; text: string }[];
  chunk_index: number; chunk_id: string; vector_store_id: string; page: number | null; last_page: number | null; heading: string | null;
  title: string | null; start: number; end: number; similarity: number | null;
}
export interface PassagePage {
  data: Passage[]; evidence: Evidence; evidence_probability: number; degraded: string[]; has_more: boolean;
}
export interface Model { id: string; dimensions: number | null }
export interface FileResult {
  file_id: string; filename: string; score: number; text: string; page: number | null; last_page: number | null; heading: string | null; number: number;
}
export interface Annotation {
  type: string; file_id: string; filename: string; text: string; start_index: number; end_index: number;
}
export interface OutputItem {
  id: string; type: string; status: string; role?: string; queries?: string[]; results?: FileResult[] | null;
  content?: { type: string; text: string; annotations?: Annotation[] }[];
}
export interface RetrievedMemory { id: string; kind: string; score: number; similarity: number | null; used: boolean }
export interface Answer {
  id: string; status: string; model: string; output: OutputItem[]; previous_response_id: string | null;
  error: { code: string; message: string } | null; incomplete_details: { reason: string } | null;
  tools: { type: string; vector_store_ids?: string[] }[];
  extensions: {
    memory?: { retrieved: RetrievedMemory[] }; answered_by?: string; degraded?: string[];
    evidence?: Evidence; evidence_probability?: number; timings?: Timings; cost?: Money;
  };
}
export interface UploadedDocument {
  id: string; filename: string; status: FileStatus; error: { code: string; message: string } | null;
}
export interface TokenUsage {
  input_tokens: number; input_tokens_details: { cached_tokens: number }; output_tokens: number;
  output_tokens_details: { reasoning_tokens: number }; total_tokens: number;
}
export type Timings = Record<string, number>;
export interface ResponseEntry {
  id: string; created_at: number; completed_at: number | null; status: string; background: boolean; model: string;
  user_id: string | null; agent_id: string | null; conversation_id: string | null; previous_response_id: string | null;
  question: string; tool_calls: Record<string, number>; failed_tool_calls: number; usage: TokenUsage;
  timings: Timings | null; cost: Money | null; answered_by: string | null; degraded: string[]; error: { code: string; message: string } | null;
}
export interface ToolCall {
  id: string; type: string; status?: string; name?: string; server_label?: string; arguments?: string; queries?: string[];
  results?: unknown[] | null; output?: string | null; error?: unknown;
}
export interface StoredResponse extends Answer {
  created_at: number; completed_at: number | null; background: boolean; agent_id: string | null; usage: TokenUsage;
  conversation: { id: string } | null;
}
export interface LogEntry extends AskedEntry {
  userId: string | null; model: string; latencyMs: number; questionTokens: number; answerTokens: number;
  documentTokens: number; memoryTokens: number; historyTokens: number; createdAt: string; erasedAt: string | null;
}
export interface Spent {
  day: string; purpose: string; operations: number; model_calls: number; tokens_in: number; tokens_out: number;
  texts_embedded: number; tokens_embedded: number; cost: number | null;
}
export interface Money { amount: number; currency: string }
export interface Spending {
  model_calls_per_day: number | null; model_tokens_per_day: number | null; background_tokens_per_day: number | null;
  embedded_tokens_per_day: number | null;
}
export interface UsageReport { tenant: string; since: string; until: string; data: Spent[]; limits: Spending; currency: string; cost: number | null }
export interface Quotas {
  tenant: string; max_storage_bytes: number; max_files_per_store: number; max_file_bytes: number; max_stores: number;
  max_entries: number; auto_archive_days: number;
}
export interface Holdings { tenant: string; storage_bytes: number; files: number; stores: number; chunks: number; memories: number }
export type SwitchName = "extraction" | "session_summaries" | "conversation_summaries";
export interface Switches extends Record<SwitchName, boolean | null> {
  tenant: string; channel_id: string | null; in_force: Record<SwitchName, boolean>;
}
export interface Tenant { name: string; created_at: string }
export type JobState = "queued" | "running" | "completed" | "failed" | "cancelled";
export interface Job {
  id: string; kind: string; state: JobState; done: number; total: number | null; attempts: number; error: string | null;
  result: Record<string, unknown> | null; created_at: string; updated_at: string;
}
export interface Stats {
  memories: number; characters: number; by_kind: Record<string, number>; chunks: number; vectors: number;
  indexed_vectors: number; indexed_words: number; unembedded: number; behind: string[]; model: string; dimension: number;
  embedder_note: string | null;
  jobs: Record<JobState, number> | null; database: Record<string, unknown> | null; index: Record<string, unknown> | null;
  words: Record<string, unknown> | null;
}
export interface Missing { unembedded: number; summaries: number; query_logs: number }
export interface Restored {
  imported: Record<string, { read: number; created: number; present: number }>;
  skipped: { kind: string; reason: string; count: number; places: string[]; failed: boolean }[];
}
export interface AskedEntry {
  id: string; sessionId: string; question: string; answer: string; status: string; degraded?: string[];
  sources: { documentId: string; filename: string; chunkIndex: number; citation?: string; preview?: string; heading?: string | null; cited?: boolean }[];
  memories: { id: string; source: string; preview?: string }[];
}
