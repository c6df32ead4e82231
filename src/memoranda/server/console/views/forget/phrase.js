// Words in order, as the server looks for them when it forgets: case and white space do not matter, and they begin and
// end where words do.

/** A text as it is compared. @param {string} text */
const folded = (text) => text.normalize("NFC").toUpperCase().toLowerCase().replaceAll("ς", "σ");

/**
 * Answers whether a value holds the words: a text, or any text or key within.
 * @param {string} words
 * @returns {(value: unknown) => boolean}
 */
export function phraseOf(words) {
  const parts = folded(words).trim().split(/\s+/).map((part) => part.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
  const text = folded(words).trim();
  const before = /^[\p{L}\p{N}_]/u.test(text) ? "(?<![\\p{L}\\p{N}_])" : "";
  const after = /[\p{L}\p{N}_]$/u.test(text) ? "(?![\\p{L}\\p{N}_])" : "";
  const pattern = new RegExp(`${before}${parts.join("\\s+")}${after}`, "u");
  /** @param {unknown} value @returns {boolean} */
  const within = (value) => {
    if (typeof value === "string") return pattern.test(folded(value));
    if (Array.isArray(value)) return value.some(within);
    return typeof value === "object" && value !== null && Object.entries(value).some(([key, one]) => within(key) || within(one));
  };
  return within;
}
