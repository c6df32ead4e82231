// What a turn of the conversation holds, and how events of a stream and stored responses become one.
import { unitsOf } from "../../ui/passage.js";

/**
 * @typedef {import("../../types.js").Answer} Answer
 * @typedef {import("../../types.js").Annotation} Annotation
 * @typedef {import("../../types.js").FileResult} FileResult
 * @typedef {import("../../types.js").RetrievedMemory} RetrievedMemory
 * @typedef {{ id: string, text: string, annotations: Annotation[] }} Part
 * @typedef {"waiting" | "searching" | "thinking" | "writing" | "done" | "incomplete" | "stopped" | "failed"} TurnState
 * @typedef {{ key: string, question: string, id: string | null, parts: Part[], results: FileResult[], memories: RetrievedMemory[], stores: string[], state: TurnState, error: import("../../api.js").ApiError | null, quoted: boolean, degraded: string[], evidence: { level: import("../../types.js").Evidence, probability: number } | null }} Turn
 */

const LEAST = 8; // letters of a quotation that is looked for in the document

/** A question that was just asked. @param {string} key @param {string} question @param {string[]} stores @returns {Turn} */
export const asked = (key, question, stores) => ({
  key, question, id: null, parts: [], results: [], memories: [], stores, state: "waiting", error: null, quoted: false, degraded: [], evidence: null,
});

/** @param {TurnState} state */
export const isOpen = (state) => state === "waiting" || state === "searching" || state === "thinking" || state === "writing";

/**
 * The turn after an event of the stream.
 * @param {Turn} turn
 * @param {any} event
 * @returns {Turn}
 */
export function after(turn, event) {
  switch (event.type) {
    case "response.created": return { ...turn, id: event.response.id };
    case "response.file_search_call.in_progress": return { ...turn, state: "searching" };
    case "response.reasoning_text.delta": return { ...turn, state: "thinking" };
    case "response.output_item.done": return { ...turn, results: [...turn.results, ...(event.item.results ?? [])] };
    case "response.output_text.delta": return { ...changed(turn, event.item_id, (part) => ({ ...part, text: part.text + event.delta })), state: "writing" };
    case "response.output_text.annotation.added": return changed(turn, event.item_id, (part) => ({ ...part, annotations: [...part.annotations, event.annotation] }));
    case "response.completed": case "response.incomplete": case "response.failed": return ended(turn, event.response);
    case "error": return failed(turn, event.error?.message ?? event.message ?? "");
    default: return turn;
  }
}

/** @param {Turn} turn @param {string} id @param {(part: Part) => Part} change @returns {Turn} */
function changed(turn, id, change) {
  const parts = turn.parts.some((part) => part.id === id) ? turn.parts : [...turn.parts, { id, text: "", annotations: [] }];
  return { ...turn, parts: parts.map((part) => (part.id === id ? change(part) : part)) };
}

/** @param {Turn} turn @param {string} message @returns {Turn} */
const failed = (turn, message) => ({ ...turn, state: "failed", error: { kind: "failed", status: 0, code: null, param: null, message } });

/**
 * The turn of a response that has ended.
 * @param {Turn} turn
 * @param {Answer} response
 * @returns {Turn}
 */
export function ended(turn, response) {
  const { extensions, output, status, error } = response;
  /** @type {Record<string, TurnState>} */
  const states = { completed: "done", incomplete: "incomplete", cancelled: "stopped" };
  const found = output.flatMap((item) => item.results ?? []);
  const whole = {
    ...turn, id: response.id, state: states[status] ?? "done", parts: output.filter((item) => item.type === "message").map(partOf),
    results: found.length > 0 ? found : turn.results, memories: extensions.memory?.retrieved ?? [], quoted: extensions.answered_by === "extractive",
    degraded: extensions.degraded ?? [],
    evidence: extensions.evidence ? { level: extensions.evidence, probability: extensions.evidence_probability ?? 0 } : null,
  };
  return status === "failed" ? failed(whole, error?.message ?? "") : whole;
}

/** @param {import("../../types.js").OutputItem} item @returns {Part} */
function partOf({ id, content }) {
  const first = (content ?? []).find((one) => one.type === "output_text") ?? (content ?? [])[0];
  return { id, text: first?.text ?? "", annotations: first?.annotations ?? [] };
}

/**
 * The passage that an annotation cites: by its number, or the one of its file that has its words.
 * @param {Annotation} annotation
 * @param {FileResult[]} results
 */
export function citedBy(annotation, results) {
  const number = Number(/^\[(\d+)\]$/.exec(annotation.text)?.[1]);
  const ofFile = results.filter((result) => result.file_id === annotation.file_id);
  return ofFile.find((result) => result.number === number) ?? ofFile.find((result) => result.text.includes(annotation.text)) ?? ofFile[0] ?? null;
}

/**
 * What an answer takes from a passage, as far as its words are the passage's: what stands before each marker, the
 * longest first.
 * @param {Turn} turn
 * @param {number} number
 * @returns {string[]}
 */
export function quotesOf(turn, number) {
  return turn.parts.flatMap(({ text, annotations }) => annotations.flatMap((annotation, i) => {
    if (citedBy(annotation, turn.results)?.number !== number) return [];
    if (!/^\[\d+\]$/.test(annotation.text)) return [annotation.text];
    const from = unitsOf(text, annotations[i - 1]?.end_index ?? 0);
    const before = text.slice(from, unitsOf(text, annotation.start_index)).trim();
    return [before, ...[...before.matchAll(/[.:!?\n]\s+/g)].map((end) => before.slice(end.index + end[0].length))];
  })).filter((quote) => quote.length >= LEAST);
}

/**
 * Which memory a text ends with a quotation of: its place among them. Null if it is none's.
 * @param {string} before
 * @param {string[]} contents
 */
export function memoryOf(before, contents) {
  const said = plain(before);
  const ends = [said, ...[...said.matchAll(/[.:!?]\s+/g)].map((end) => said.slice(end.index + end[0].length))].filter((end) => end.length >= LEAST);
  for (const end of ends) {
    const place = contents.findIndex((content) => plain(content).includes(end));
    if (place >= 0) return place;
  }
  return contents.length === 1 && contents[0] !== "" ? 0 : null;
}

/** A text on one line. @param {string} text */
const plain = (text) => text.replace(/\s+/g, " ").trim();
