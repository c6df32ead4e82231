// A list of the API that comes in pages.
import { useEffect, useLayoutEffect, useRef, useState } from "./core.js";
import { get } from "../api.js";

/**
 * @template R
 * @typedef {{ rows: R[], answer: AnyPage<R> | null, loading: boolean, error: import("../api.js").ApiError | null, ended: boolean, more: () => void, reload: () => void, refresh: () => void, latest: () => Promise<import("../api.js").ApiError | null> }} Pages
 */

const SIZE = 100;

/**
 * A page in either spelling of the API.
 * @template R
 * @typedef {{ data: R[], last_id?: string | null, has_more?: boolean, hasMore?: boolean }} AnyPage
 */

/** Whether there are rows after a page. @param {AnyPage<unknown>} page */
const more = (page) => page.has_more ?? page.hasMore ?? false;

/**
 * The rows of `path` as far as they are loaded. `more` fetches the next page, `reload` begins again, and `refresh`
 * fetches what is loaded once more while it stays shown, after the answer to a request that is under way. `latest`
 * fetches the first page once more, for a list whose newest rows come first, and answers what went wrong; what is shown
 * stays. With `path` null nothing is loaded. `answer` is the latest page with what it has beside its rows. With `stays`
 * the rows of another query are shown until those of this one arrive. `size` is the number of rows of a page.
 * @template {{ id: string }} R
 * @param {string | null} path
 * @param {import("../api.js").Query} [query]
 * @param {{ stays?: boolean, size?: number }} [options]
 * @returns {Pages<R>}
 */
export function usePages(path, query = {}, { stays = false, size = SIZE } = {}) {
  const key = JSON.stringify([path, query]);
  const [round, again] = useState(0);
  const [state, setState] = useState(
    /** @returns {{ key: string, rows: R[], answer: AnyPage<R> | null, loading: boolean, error: import("../api.js").ApiError | null, ended: boolean }} */
    () => ({ key, rows: [], answer: null, loading: path !== null, error: null, ended: false }),
  );
  const current = useRef({ abort: new AbortController(), busy: false, stale: false }); // stale: to be fetched once more after this

  /** @param {string | undefined} after @param {AbortSignal} abort @returns {Promise<import("../api.js").Result<AnyPage<R>>>} */
  const fetchPage = (after, abort) => get(/** @type {string} */ (path), { query: { ...query, limit: size, after }, abort });

  /** @param {R[]} before @param {number} wanted */
  const fetchOnto = async (before, wanted) => {
    const mine = current.current;
    mine.busy = true;
    let rows = before;
    let ended = false;
    /** @type {AnyPage<R> | null} */
    let answer = null;
    while (!ended && rows.length < wanted) {
      const result = await fetchPage(answer?.last_id ?? rows[rows.length - 1]?.id, mine.abort.signal);
      if (mine.abort.signal.aborted) return;
      if (!result.ok) {
        mine.busy = mine.stale = false;
        setState((old) => ({ ...old, loading: false, error: result.error }));
        return;
      }
      answer = result.data;
      rows = [...rows, ...answer.data];
      ended = !more(result.data);
    }
    setState({ key, rows, answer, loading: false, error: null, ended });
    answered(mine, rows.length);
  };

  /** @param {typeof current.current} mine @param {number} shown */
  const answered = (mine, shown) => {
    const { stale } = mine;
    mine.busy = mine.stale = false;
    if (stale) void fetchOnto([], Math.max(1, shown));
  };

  useLayoutEffect(() => {
    if (path === null) return undefined;
    const mine = { abort: new AbortController(), busy: false, stale: false };
    current.current = mine;
    setState((old) => ({ key, rows: stays || old.key === key ? old.rows : [], answer: old.answer, loading: true, error: null, ended: false }));
    void fetchOnto([], 1);
    return () => mine.abort.abort();
  }, [key, round]);

  return {
    ...state,
    more: () => {
      if (!state.ended && !state.error && !current.current.busy && state.rows.length > 0) void fetchOnto(state.rows, state.rows.length + 1);
    },
    reload: () => again((n) => n + 1),
    refresh: () => {
      if (current.current.busy) current.current.stale = true;
      else void fetchOnto([], Math.max(1, state.rows.length));
    },
    latest: async () => {
      const mine = current.current;
      if (path === null || mine.busy) return null;
      mine.busy = true;
      const result = await fetchPage(undefined, mine.abort.signal);
      if (mine.abort.signal.aborted) return null;
      answered(mine, state.rows.length);
      if (!result.ok) return result.error;
      const { data } = result.data;
      const seen = new Set(data.map((row) => row.id));
      setState((old) => {
        const last = Math.max(...old.rows.map((row, i) => (seen.has(row.id) ? i : -1)), -1);
        if (!more(result.data) || last < 0) return { ...old, rows: data, ended: !more(result.data), error: null }; // all, or rows between may be missing
        return { ...old, rows: [...data, ...old.rows.slice(last + 1)] };
      });
      return null;
    },
  };
}

/**
 * Calls `look` as long as `wanted` is true: soon at first, then with growing pauses; from the beginning when `wanted` turns true again.
 * @param {boolean} wanted
 * @param {() => Promise<void>} look
 * @param {number} [longest] milliseconds of a pause
 */
export function usePoll(wanted, look, longest = 5000) {
  const latest = useRef(look);
  latest.current = look;
  useEffect(() => {
    if (!wanted) return undefined;
    let timer = 0;
    let pause = 400;
    const round = async () => {
      await latest.current();
      pause = Math.min(pause * 1.4, longest);
      if (timer !== -1) timer = setTimeout(round, pause);
    };
    timer = setTimeout(round, pause);
    return () => {
      clearTimeout(timer);
      timer = -1;
    };
  }, [wanted]);
}
