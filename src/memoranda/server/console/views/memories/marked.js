// A text with what matches a search marked in it.
import { html } from "../../ui/core.js";

/**
 * The highlights are places in the text, counted in characters as the server counts them: code points.
 * @param {string} text
 * @param {import("../../types.js").Highlight[]} highlights
 * @returns {import("../../vendor/htm-preact.js").Child}
 */
export function marked(text, highlights) {
  if (highlights.length === 0) return text;
  const characters = Array.from(text);
  /** @type {import("../../vendor/htm-preact.js").Child[]} */
  const parts = [];
  let at = 0;
  for (const { start, end } of [...highlights].sort((a, b) => a.start - b.start)) {
    if (start < at || end > characters.length) continue;
    parts.push(characters.slice(at, start).join(""), html`<mark>${characters.slice(start, end).join("")}</mark>`);
    at = end;
  }
  return [...parts, characters.slice(at).join("")];
}
