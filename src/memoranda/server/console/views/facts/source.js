// The facts of a person or topic: all versions, joined into the chains in which one superseded another.
import { get } from "../../api.js";
import { exported } from "../../ui/export.js";

/**
 * @typedef {import("../../types.js").Memory} Memory
 * @typedef {{ memory: Memory, begins: number, ends: number | null }} Fact
 * @typedef {{ id: string, facts: Fact[] }} Chain
 * @typedef {{ chains: Chain[], count: number, people: string[], first: number, truncated: boolean }} Loaded
 */

export const MOST = 5000;
const PAGE = 1000;
const FIRST = 100; // facts that are shown at once; then twice as many, and so on

/**
 * The facts of a scope, or all that the key may see, superseded ones too. `part` shows those that have arrived.
 * @param {string | null} scope
 * @param {AbortSignal} abort
 * @param {(loaded: Loaded) => void} part
 * @returns {Promise<import("../../api.js").Result<Loaded>>}
 */
export async function factsOf(scope, abort, part) {
  /** @type {Fact[]} */
  const facts = [];
  let truncated = false;
  let next = FIRST;
  const done = await exported({ kinds: ["fact"], ...(scope ? { scopes: [scope] } : {}) }, abort, (memory) => {
    truncated = facts.length === MOST;
    if (truncated) return false;
    if (facts.length === next) {
      part(loadedOf(facts, false));
      next *= 2;
    }
    facts.push({ memory, begins: Date.parse(memory.valid_from ?? memory.occurred_at), ends: memory.invalid_at === null ? null : Date.parse(memory.invalid_at) });
    return true;
  });
  return done.ok ? { ok: true, data: loadedOf(facts, truncated) } : done;
}

/** @param {Fact[]} facts @param {boolean} truncated @returns {Loaded} */
function loadedOf(facts, truncated) {
  const people = [...new Set(facts.map(({ memory }) => (memory.user_id === null ? null : `user:${memory.user_id}`)))].filter((one) => one !== null).sort();
  const first = facts.reduce((least, fact) => Math.min(least, fact.begins), Date.now());
  return { chains: chainsOf(facts), count: facts.length, people, first, truncated };
}

/** Facts that are linked by `superseded_by`, the chain that changed last at the top. @param {Fact[]} facts @returns {Chain[]} */
function chainsOf(facts) {
  const byId = new Map(facts.map((fact) => [fact.memory.id, fact]));
  /** @type {Map<string, Fact[]>} */
  const chains = new Map();
  for (const fact of facts) {
    let last = fact;
    for (let steps = 0; steps < facts.length; steps += 1) { // a bound, should links ever make a ring
      const next = last.memory.superseded_by === null ? undefined : byId.get(last.memory.superseded_by);
      if (next === undefined) break;
      last = next;
    }
    chains.set(last.memory.id, [...(chains.get(last.memory.id) ?? []), fact]);
  }
  const newest = /** @param {Chain} chain */ (chain) => /** @type {Fact} */ (chain.facts[chain.facts.length - 1]).begins;
  return [...chains].map(([id, all]) => ({ id, facts: all.sort((a, b) => a.begins - b.begins) })).sort((a, b) => newest(b) - newest(a));
}

/**
 * The ids of the facts that hold at a moment, as the server says; now without one.
 * @param {string | null} scope
 * @param {string | null} moment
 * @param {AbortSignal} abort
 * @returns {Promise<import("../../api.js").Result<Set<string>>>}
 */
export async function holdingAt(scope, moment, abort) {
  /** @type {Set<string>} */
  const ids = new Set();
  /** @type {string | null} */
  let after = null;
  for (;;) {
    /** @type {import("../../api.js").Result<import("../../types.js").Page<Memory>>} */
    const page = await get("/v1/memories", { query: { kinds: "fact", scopes: scope, as_of: moment, limit: PAGE, after }, abort });
    if (!page.ok) return page;
    for (const memory of page.data.data) ids.add(memory.id);
    if (!page.data.has_more || ids.size >= MOST) return { ok: true, data: ids };
    after = page.data.last_id;
  }
}

/**
 * The chains in which a version holds all words of a topic, in its text or as a tag.
 * @param {Chain[]} chains
 * @param {string} topic
 */
export function about(chains, topic) {
  const words = topic.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return chains;
  return chains.filter(({ facts }) => facts.some(({ memory }) => {
    const text = `${memory.content} ${memory.tags.join(" ")}`.toLowerCase();
    return words.every((word) => text.includes(word));
  }));
}
