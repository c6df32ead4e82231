// Requests of both kinds in one shape: responses, and questions to uploaded documents.
import { t } from "../../strings.js";

/**
 * @typedef {import("../../types.js").ResponseEntry} ResponseEntry
 * @typedef {import("../../types.js").LogEntry} LogEntry
 * @typedef {{ id: string, asked: boolean, at: number, question: string, status: string, model: string, seconds: number | null, stages: { id: string, seconds: number }[], tokens: number, cost: import("../../types.js").Money | null, tools: number, failedTools: number, who: string | null, note: string | null }} Entry
 */

/** Statuses of requests that go on. */
export const OPEN = ["queued", "in_progress"];
/** @type {Record<string, "good" | "bad" | "warn" | "accent" | "">} */
export const TONES = {
  completed: "good", answered: "good", quoted: "", incomplete: "warn", fallback: "warn", empty: "", failed: "bad", cancelled: "", queued: "accent", in_progress: "accent",
};
const STAGES = ["retrieval", "model", "tools"];

/** @param {import("../../types.js").Timings | null} timings @returns {{ id: string, seconds: number }[]} */
export function stagesOf(timings) {
  if (timings === null) return [];
  const known = STAGES.map((id) => ({ id, seconds: timings[id] ?? 0 }));
  const rest = (timings.total ?? 0) - known.reduce((sum, one) => sum + one.seconds, 0);
  return [...known, { id: "other", seconds: Math.max(0, rest) }];
}

/** @param {ResponseEntry} row @returns {Entry} */
export function ofResponse(row) {
  return {
    id: row.id, asked: false, at: row.created_at * 1000, question: row.question, status: row.status, model: row.answered_by ?? row.model,
    seconds: row.timings?.total ?? null, stages: stagesOf(row.timings), tokens: row.usage.total_tokens, cost: row.cost,
    tools: Object.values(row.tool_calls).reduce((sum, n) => sum + n, 0), failedTools: row.failed_tool_calls, who: row.user_id,
    note: row.error?.message ?? (row.degraded.length ? t.degraded(row.degraded) : null),
  };
}

/** @param {LogEntry} row @returns {Entry} */
export function ofQuestion(row) {
  return {
    id: row.id, asked: true, at: Date.parse(row.createdAt), question: row.erasedAt === null ? row.question : t.activity.erased, status: row.status, model: row.model,
    seconds: row.latencyMs / 1000, stages: [], tokens: row.questionTokens + row.documentTokens + row.memoryTokens + row.historyTokens + row.answerTokens, cost: null,
    tools: 0, failedTools: 0, who: row.userId, note: null,
  };
}

/**
 * Two lists, each newest first, as one: down to where both are loaded.
 * @param {{ rows: ResponseEntry[], ended: boolean }} responses
 * @param {{ rows: LogEntry[], ended: boolean }} questions
 * @returns {Entry[]}
 */
export function merged(responses, questions) {
  const both = [{ rows: responses.rows.map(ofResponse), ended: responses.ended }, { rows: questions.rows.map(ofQuestion), ended: questions.ended }];
  const from = Math.max(...both.map(({ rows, ended }) => (ended ? -Infinity : rows.at(-1)?.at ?? -Infinity)));
  return both.flatMap(({ rows }) => rows).filter((one) => one.at >= from).sort((a, b) => b.at - a.at);
}
