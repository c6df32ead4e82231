/**
 * Texts as the server takes them.
 *
 * @module
 */

const BYTES = 1 << 20; // of a message: the server's `limits.max_content_bytes`
const QUERY = 10_000; // characters of a query: its `limits.max_query_chars`

/**
 * The texts of a message as one that can be kept: without NUL, with U+FFFD for half a character, and its first MiB.
 *
 * @param {string[]} texts
 * @returns {string}
 */
export function joined(texts) {
  const clean = texts.map((text) => text.replaceAll('\0', '').replace(/\p{Surrogate}/gu, '\ufffd'));
  const whole = clean.filter((text) => text.trim()).join('\n\n');
  if (whole.length * 3 <= BYTES) return whole;
  return whole.slice(0, new TextEncoder().encodeInto(whole, new Uint8Array(BYTES)).read);
}

/**
 * The beginning of a text, as long as a query may be.
 *
 * @param {string} text
 */
export function queryOf(text) {
  return text.length <= QUERY ? text : [...text.slice(0, 2 * QUERY)].slice(0, QUERY).join('');
}
