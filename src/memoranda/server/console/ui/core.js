// What every component imports: Preact with htm, signals, and the hooks of the console.
import { useEffect, useLayoutEffect, useRef, useState } from "../vendor/htm-preact.js";
import { signal } from "../vendor/signals-core.js";

export { html, render, useCallback, useEffect, useErrorBoundary, useLayoutEffect, useMemo, useRef, useState } from "../vendor/htm-preact.js";
export { batch, computed, effect, signal } from "../vendor/signals-core.js";

/**
 * The value of a signal; the component renders again when it changes.
 * @template T
 * @param {{ readonly value: T, peek(): T, subscribe(listener: (value: T) => void): () => void }} source
 * @returns {T}
 */
export function useSignal(source) {
  const [, changed] = useState(0);
  const rendered = source.peek();
  useEffect(() => {
    let seen = rendered; // the source may have changed between rendering and this
    return source.subscribe((value) => {
      if (value !== seen) {
        seen = value;
        changed((n) => n + 1);
      }
    });
  }, [source]);
  return rendered;
}

/**
 * A value as it was when it had not changed for `delay` milliseconds.
 * @template T
 * @param {T} value
 * @param {number} delay
 * @returns {T}
 */
export function useDebounced(value, delay) {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(() => value), delay);
    return () => clearTimeout(timer);
  }, [value, delay]);
  return settled;
}

/**
 * What an API call answers. `load` runs when `key` changes, and its predecessor is aborted. While it runs again,
 * `data` is the last answer. With `key` null nothing is loaded. `load` may show a part of what a new key answers, before
 * it has all. The request begins with the rendering, not after the next frame.
 * @template T
 * @param {string | null} key
 * @param {(abort: AbortSignal, part: (data: T) => void) => Promise<import("../api.js").Result<T>>} load
 * @returns {{ data: T | null, error: import("../api.js").ApiError | null, loading: boolean, reload: () => void, set: (data: T) => void }}
 */
export function useLoaded(key, load) {
  const [round, again] = useState(0);
  const answered = useRef(/** @type {string | null} */ (null));
  const [state, setState] = useState(
    /** @returns {{ data: T | null, error: import("../api.js").ApiError | null, loading: boolean }} */
    () => ({ data: null, error: null, loading: key !== null }),
  );
  useLayoutEffect(() => {
    if (key === null) {
      setState({ data: null, error: null, loading: false });
      return undefined;
    }
    const abort = new AbortController();
    setState((before) => ({ ...before, loading: true }));
    /** @param {T} data */
    const part = (data) => {
      if (!abort.signal.aborted && answered.current !== key) setState({ data, error: null, loading: true });
    };
    load(abort.signal, part).then((result) => {
      if (abort.signal.aborted) return;
      if (result.ok) answered.current = key;
      setState({ data: result.ok ? result.data : null, error: result.ok ? null : result.error, loading: false });
    });
    return () => abort.abort();
  }, [key, round]);
  return {
    ...state,
    reload: () => again((n) => n + 1),
    set: (data) => setState({ data, error: null, loading: false }),
  };
}

/**
 * Calls `action` when a key is pressed outside of form controls.
 * @param {string} key
 * @param {(event: KeyboardEvent) => void} action
 */
export function useHotkey(key, action) {
  const latest = useRef(action);
  latest.current = action;
  useEffect(() => {
    /** @param {KeyboardEvent} event */
    const listen = (event) => {
      if (event.key !== key || event.ctrlKey || event.metaKey || event.altKey) return;
      const target = event.target instanceof Element ? event.target : null;
      if (key !== "Escape" && target?.closest("input, textarea, select, [contenteditable]")) return;
      if (document.querySelector("dialog[open]")) return;
      latest.current(event);
    };
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, [key]);
}

/**
 * Whether a media query matches.
 * @param {string} query
 * @returns {boolean}
 */
export function useMedia(query) {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const listen = () => setMatches(media.matches);
    listen();
    media.addEventListener("change", listen);
    return () => media.removeEventListener("change", listen);
  }, [query]);
  return matches;
}

/**
 * A signal whose value is kept in this browser.
 * @param {string} name
 * @param {string} initial
 */
export function kept(name, initial) {
  const setting = signal(localStorage.getItem(name) ?? initial);
  setting.subscribe((value) => localStorage.setItem(name, value));
  return setting;
}

let lastId = 0;
/** An id for an element of this component, the same at every rendering. */
export function useId() {
  const id = useRef("");
  if (!id.current) id.current = `id${++lastId}`;
  return id.current;
}
