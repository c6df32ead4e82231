// The points of a map by colour: the most frequent kinds or scopes, or fifths by age.
import { dayOf } from "../../ui/time.js";
import { t } from "../../strings.js";

/**
 * @typedef {import("../../types.js").Projection} Projection
 * @typedef {{ label: string, swatch: string, points: number[] }} Group points are numbers of columns; `swatch` is the class of the colour
 */

export const COLOURINGS = /** @type {const} */ (["kind", "scope", "age"]);
const COLOURS = 7; // colours of the style sheet; the last is that of all other values
const FIFTHS = 5;

/**
 * @param {Projection} shown
 * @param {"kind" | "scope" | "age"} by
 * @returns {Group[]} groups with points, those with the most points or the oldest first
 */
export function groupsOf(shown, by) {
  return by === "age" ? byAge(shown) : byValue(by === "kind" ? shown.kinds.map((kind) => t.kinds[kind] ?? kind) : shown.scopes);
}

/** @param {string[]} values @returns {Group[]} */
function byValue(values) {
  /** @type {Map<string, number[]>} */
  const points = new Map();
  values.forEach((value, at) => {
    const of = points.get(value);
    if (of) of.push(at);
    else points.set(value, [at]);
  });
  const sorted = [...points].sort((a, b) => b[1].length - a[1].length || (a[0] < b[0] ? -1 : 1));
  const named = sorted.length > COLOURS ? sorted.slice(0, COLOURS - 1) : sorted;
  const groups = named.map(([label, own], at) => ({ label, swatch: `colour-${at}`, points: own }));
  const rest = sorted.slice(named.length).flatMap(([, own]) => own);
  return rest.length ? [...groups, { label: t.map.others, swatch: `colour-${COLOURS - 1}`, points: rest }] : groups;
}

/** @param {Projection} shown @returns {Group[]} */
function byAge({ occurred_at: times }) {
  const order = times.map((_, at) => at).sort((a, b) => (/** @type {string} */ (times[a]) < /** @type {string} */ (times[b]) ? -1 : 1));
  const size = Math.ceil(order.length / FIFTHS);
  /** @type {Group[]} */
  const groups = [];
  for (let from = 0; from < order.length; from += size) {
    const points = order.slice(from, from + size);
    const ends = [points[0], points[points.length - 1]].map((at) => dayOf(new Date(/** @type {string} */ (times[/** @type {number} */ (at)]))));
    groups.push({ label: [...new Set(ends)].join(" – "), swatch: `age-${groups.length}`, points });
  }
  return groups;
}
