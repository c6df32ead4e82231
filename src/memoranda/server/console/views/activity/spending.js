// What was spent, summed by day and by purpose.

/**
 * @typedef {import("../../types.js").Spent} Spent
 * @typedef {import("../../types.js").UsageReport} UsageReport
 * @typedef {Omit<Spent, "day" | "purpose" | "cost"> & { cost: number }} Sum
 * @typedef {{ id: string, sum: Sum, parts: Spent[] }} Group
 * @typedef {"tokens" | "operations" | "model_calls" | "tokens_in" | "tokens_out" | "texts_embedded" | "tokens_embedded" | "cost"} Measure
 */

/** @type {Measure[]} */
export const COUNTS = ["tokens", "operations", "model_calls", "texts_embedded", "tokens_embedded"];
const BACKGROUND = ["facts", "sessions", "summaries.background", "upload_ask.summary"]; // purposes that `background_tokens_per_day` bounds
/** @type {Record<string, string>} */
const TONES = {
  write: "documents", embed: "strong", files: "sessions", search: "recent", embeddings: "good", responses: "memories", summaries: "system", "summaries.background": "system", sessions: "summary",
  facts: "warn", upload_ask: "question", "upload_ask.summary": "bad",
};

/** The colour of a purpose. @param {string} purpose */
export const toneOf = (purpose) => TONES[purpose] ?? "system";

/** @param {Sum | Spent} sum @param {Measure} measure */
export const valueOf = (sum, measure) => (measure === "tokens" ? sum.tokens_in + sum.tokens_out : sum[measure] ?? 0);

/** @param {Spent[]} rows @returns {Sum} */
function summed(rows) {
  const sum = { operations: 0, model_calls: 0, tokens_in: 0, tokens_out: 0, texts_embedded: 0, tokens_embedded: 0, cost: 0 };
  for (const row of rows) for (const name of /** @type {(keyof Sum)[]} */ (Object.keys(sum))) sum[name] += row[name] ?? 0;
  return sum;
}

/** Every day of the report, also those on which nothing was spent. @param {UsageReport} report @returns {Group[]} */
export function byDay({ data, since, until }) {
  /** @type {Group[]} */
  const days = [];
  for (let at = Date.parse(since); at <= Date.parse(until); at += 86_400_000) {
    const id = new Date(at).toISOString().slice(0, 10);
    const parts = data.filter((row) => row.day === id);
    days.push({ id, sum: summed(parts), parts });
  }
  return days;
}

/** What cost most comes first. @param {UsageReport} report @returns {Group[]} */
export function byPurpose({ data }) {
  const groups = [...new Set(data.map((row) => row.purpose))].map((id) => {
    const parts = data.filter((row) => row.purpose === id);
    return { id, sum: summed(parts), parts };
  });
  const cost = (/** @type {Group} */ { sum }) => sum.tokens_in + sum.tokens_out + sum.tokens_embedded;
  return groups.sort((a, b) => cost(b) - cost(a));
}

/** What was used today of each limit. @param {UsageReport} report @returns {Record<string, { value: number, most: number | null }>} */
export function used({ data, until, limits }) {
  const today = data.filter((row) => row.day === until);
  const all = summed(today);
  const background = summed(today.filter((row) => BACKGROUND.includes(row.purpose)));
  return {
    model_calls_per_day: { value: all.model_calls, most: limits.model_calls_per_day },
    model_tokens_per_day: { value: all.tokens_in + all.tokens_out, most: limits.model_tokens_per_day },
    background_tokens_per_day: { value: background.tokens_in + background.tokens_out, most: limits.background_tokens_per_day },
    embedded_tokens_per_day: { value: all.tokens_embedded, most: limits.embedded_tokens_per_day },
  };
}
