// The rows of the list: pages of the listing that are fetched as the list is scrolled, or the results of a search.
import { useLayoutEffect, useRef, useState } from "../../ui/core.js";
import { get, post } from "../../api.js";

/**
 * @typedef {import("../../types.js").Memory} Memory
 * @typedef {{ memory: Memory, hit: import("../../types.js").Hit | null }} Row
 * @typedef {{ rows: Row[], total: number | null, answer: import("../../types.js").SearchAnswer | null, loading: boolean, error: import("../../api.js").ApiError | null }} State
 * @typedef {State & { more: () => void, reload: () => void, changed: (memory: Memory) => void, removed: (id: string) => void }} Source
 */

const PAGE = 100;
const RESULTS = 50;
/** @type {State} */
const NOTHING = { rows: [], total: null, answer: null, loading: true, error: null };

/**
 * @param {string} text what is searched for; "" lists
 * @param {import("./filters.js").Selection} selection
 * @param {"asc" | "desc"} order
 * @returns {Source}
 */
export function useMemories(text, selection, order) {
  const [state, setState] = useState(NOTHING);
  const [round, again] = useState(0);
  const cursor = useRef(/** @type {string | null} */ (null));
  const running = useRef(/** @type {AbortController | null} */ (null));
  const key = JSON.stringify([text, selection, order, round]);

  useLayoutEffect(() => {
    const abort = new AbortController();
    running.current = abort;
    cursor.current = null;
    setState((before) => ({ ...before, total: null, loading: true, error: null }));
    void (text === "" ? listed(abort, null) : found(abort));
    return () => abort.abort();
  }, [key]);

  /** @param {AbortController} abort @param {string | null} after */
  async function listed(abort, after) {
    const query = { limit: PAGE, order, after, ...selection };
    /** @type {import("../../api.js").Result<import("../../types.js").Page<Memory>>} */
    const page = await get("/v1/memories", { query, abort: abort.signal });
    if (abort.signal.aborted) return;
    if (!page.ok) {
      setState({ ...NOTHING, loading: false, error: page.error });
      return;
    }
    cursor.current = page.data.has_more ? page.data.last_id : null;
    const rows = page.data.data.map((memory) => ({ memory, hit: null }));
    setState((before) => ({
      rows: after === null ? rows : [...before.rows, ...rows],
      total: before.total, answer: null, loading: false, error: null,
    }));
    if (after === null) await counted(abort);
  }

  /** Counts the selection, which takes longer than its first page. @param {AbortController} abort */
  async function counted(abort) {
    /** @type {import("../../api.js").Result<{ count: number }>} */
    const count = await post("/v1/memories/count", selection, { abort: abort.signal });
    if (!abort.signal.aborted) setState((before) => ({ ...before, total: count.ok ? count.data.count : null }));
  }

  /** @param {AbortController} abort */
  async function found(abort) {
    /** @type {import("../../api.js").Result<import("../../types.js").SearchAnswer>} */
    const answer = await post("/v1/memories/search", { query: text, limit: RESULTS, explain: true, highlights: true, ...selection }, { abort: abort.signal });
    if (abort.signal.aborted) return;
    if (!answer.ok) setState({ ...NOTHING, loading: false, error: answer.error });
    else {
      const rows = answer.data.results.map((hit) => ({ memory: hit.memory, hit }));
      setState({ rows, total: rows.length, answer: answer.data, loading: false, error: null });
    }
  }

  return {
    ...state,
    more: () => {
      const after = cursor.current;
      cursor.current = null;
      if (after !== null && running.current) void listed(running.current, after);
    },
    reload: () => again((n) => n + 1),
    changed: (memory) => setState((before) => ({ ...before, rows: before.rows.map((row) => (row.memory.id === memory.id ? { ...row, memory } : row)) })),
    removed: (id) => setState((before) => ({ ...before, total: before.total && before.total - 1, rows: before.rows.filter((row) => row.memory.id !== id) })),
  };
}
