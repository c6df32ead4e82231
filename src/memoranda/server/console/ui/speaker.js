// Who said something: one colour for each name, everywhere.
import { html } from "./core.js";

const TONES = 6;

/** The first letters of a name in a colour of its own. @param {{ name: string }} props */
export function Avatar({ name }) {
  let sum = 0;
  for (const letter of name) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 9973;
  const letters = name.split(/[\s._-]+/).filter(Boolean).slice(0, 2).map((word) => [...word][0]).join("");
  return html`<span class=${`avatar tone-${sum % TONES}`} aria-hidden="true">${letters.toUpperCase() || "?"}</span>`;
}
