// A place in a text. The API counts characters; a string of the browser counts UTF-16 units.
import { html, useEffect, useRef } from "./core.js";

/**
 * The index in the string of character `count`.
 * @param {string} text
 * @param {number} count
 */
export function unitsOf(text, count) {
  let at = 0;
  for (let seen = 0; seen < count && at < text.length; seen++) at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  return at;
}

/**
 * Where a passage stands in a text from a place on, in units of the string; null where it does not.
 * @param {string} text
 * @param {string} passage
 * @param {number} [from]
 * @returns {[number, number] | null}
 */
export function placeOf(text, passage, from = 0) {
  const wanted = passage.trim();
  const at = wanted === "" ? -1 : text.indexOf(wanted, from);
  return at < 0 ? null : [at, at + wanted.length];
}

/**
 * A document's text with a passage marked, and a quotation in it marked more; it is scrolled to where they are.
 * @param {{ text: string, span: [number, number] | null, quote?: [number, number] | null, label: string }} props
 */
export function DocumentText({ text, span, quote = null, label }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    const marks = box.current?.querySelectorAll("mark") ?? [];
    const first = [...marks].find((mark) => !mark.classList.contains("around")) ?? marks[0];
    first?.scrollIntoView({ block: first.getBoundingClientRect().height > 240 ? "start" : "center" });
  }, [text, span?.[0], span?.[1], quote?.[0]]);
  return html`<div class="document-text" role="region" aria-label=${label} tabIndex=${0} ref=${box}>${cut(text, span, quote)}</div>`;
}

/** @param {string} text @param {[number, number] | null} span @param {[number, number] | null} quote */
function cut(text, span, quote) {
  const inside = span !== null && quote !== null && span[0] <= quote[0] && quote[1] <= span[1];
  const [start, end] = (inside ? quote : span ?? quote) ?? [0, 0];
  const [from, to] = inside ? span : [start, end];
  return html`${text.slice(0, from)}${from < start && html`<mark class="around">${text.slice(from, start)}</mark>`}${start < end && html`<mark>${text.slice(start, end)}</mark>`}${end < to && html`<mark class="around">${text.slice(end, to)}</mark>`}${text.slice(to)}`;
}
