// Who said something: one colour for each name, everywhere.
import { html } from "./core.js";

const TONES = 6;

/**
 * Who said a memory: the name of the speaker, else the user or agent for whose role it has, else its role, its user or its agent.
 * @param {import("../types.js").Memory} memory
 * @returns {string | null} null if it names nobody
 */
export function speakerOf({ metadata, role, user_id: user, agent_id: agent }) {
  const speaker = typeof metadata.speaker === "string" ? metadata.speaker : null;
  return speaker ?? (role === "user" ? user : role === "assistant" ? agent : null) ?? role ?? user ?? agent;
}

/** The first letters of a name in a colour of its own. @param {{ name: string }} props */
export function Avatar({ name }) {
  let sum = 0;
  for (const letter of name) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 9973;
  const letters = name.split(/[\s._-]+/).filter(Boolean).slice(0, 2).map((word) => [...word][0]).join("");
  return html`<span class=${`avatar tone-${sum % TONES}`} aria-hidden="true">${letters.toUpperCase() || "?"}</span>`;
}
