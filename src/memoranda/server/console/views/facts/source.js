// The facts of a person or topic over time: pages of chains of versions, as the server knows them as of a day.
import { useMemo } from "../../ui/core.js";
import { usePages } from "../../ui/pages.js";

/**
 * @typedef {import("../../types.js").Memory} Memory
 * @typedef {{ memory: Memory, begins: number, ends: number | null, holds: boolean }} Fact
 * @typedef {{ id: string, facts: Fact[] }} Chain
 * @typedef {import("../../types.js").Timeline} Timeline
 */

const PAGE = 15; // chains, of which each has its versions

/**
 * @param {string | null} scope without one, all that the key may see
 * @param {string | null} day as of its end; now without one
 * @param {string} topic words that a version contains
 */
export function useTimeline(scope, day, topic) {
  /** @type {import("../../ui/pages.js").Pages<import("../../types.js").FactChain>} */
  const pages = usePages("/v1/memories/timeline", { scopes: scope, at: day && `${day}T23:59:59.999Z`, text: topic }, { stays: true, size: PAGE });
  const chains = useMemo(() => pages.rows.map(chainOf), [pages.rows]);
  return { ...pages, chains, timeline: /** @type {Timeline | null} */ (pages.answer) };
}

/** @param {import("../../types.js").FactChain} chain @returns {Chain} */
function chainOf({ id, facts }) {
  const told = facts.map(({ memory, begins, ends, holds }) => ({ memory, begins: Date.parse(begins), ends: ends === null ? null : Date.parse(ends), holds }));
  return { id, facts: told.sort((a, b) => a.begins - b.begins) };
}
