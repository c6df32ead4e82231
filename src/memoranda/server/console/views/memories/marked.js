// A text with the words of a search marked in it.
import { html } from "../../ui/core.js";

const WORDS = /[\p{L}\p{N}]+/gu;
const LEAST = 3; // letters that two words share at their beginning to be taken for one

/**
 * Marks the words of `text` that begin as a word of `query` does, or are the beginning of one.
 * @param {string} text
 * @param {string} query
 * @returns {import("../../vendor/htm-preact.js").Child}
 */
export function marked(text, query) {
  const asked = (query.toLowerCase().match(WORDS) ?? []).filter((word) => word.length >= LEAST);
  if (asked.length === 0) return text;
  return withMarks(text, (word) => asked.some((one) => word.startsWith(one) || (word.length >= LEAST && one.startsWith(word))));
}

/**
 * Marks the words of `text` that `other` does not have.
 * @param {string} text
 * @param {string} other
 * @returns {import("../../vendor/htm-preact.js").Child}
 */
export function unlike(text, other) {
  const there = new Set(other.toLowerCase().match(WORDS) ?? []);
  return withMarks(text, (word) => !there.has(word));
}

/**
 * The text with marks around its words, in lower case, for which `wanted` is true.
 * @param {string} text
 * @param {(word: string) => boolean} wanted
 */
function withMarks(text, wanted) {
  /** @type {import("../../vendor/htm-preact.js").Child[]} */
  const parts = [];
  let at = 0;
  for (const { 0: word, index } of text.matchAll(WORDS)) {
    if (!wanted(word.toLowerCase())) continue;
    parts.push(text.slice(at, index), html`<mark>${word}</mark>`);
    at = index + word.length;
  }
  return [...parts, text.slice(at)];
}

/**
 * The text from its first passage that matches, for a line of the list.
 * @param {import("../../types.js").Memory} memory
 * @param {import("../../types.js").Hit | null} hit
 */
export function beginning({ content }, hit) {
  const first = hit?.highlights[0];
  return first && first.start > 80 ? `… ${first.text}` : content.slice(0, 600);
}
