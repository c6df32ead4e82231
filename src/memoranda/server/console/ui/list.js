// A list of any length of which only the rows in sight are in the document. Rows have one height.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./core.js";

/** @typedef {import("../vendor/htm-preact.js").Child} Child */

const BEYOND = 6; // rows kept above and below those in sight

/**
 * Arrow keys, Home, End and Page keys move the focus between the rows' links or buttons with `data-main`.
 * @template R
 * @param {{ label: string, rows: R[], height: number, keyOf: (row: R) => string, row: (row: R, index: number) => Child, total?: number | null, onEnd?: () => void, onKey?: (event: KeyboardEvent, row: R) => void, current?: string | null }} props
 * `onEnd` is called when the last rows come in sight; `total` is how many there are with those not loaded yet.
 */
export function VirtualList({ label, rows, height, keyOf, row, total, onEnd, onKey, current = null }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const wanted = useRef(/** @type {number | null} */ (null));
  const [view, setView] = useState({ top: 0, size: 800 });

  useLayoutEffect(() => {
    const element = /** @type {HTMLElement} */ (box.current);
    const measure = () => setView({ top: element.scrollTop, size: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    measure();
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", measure);
    };
  }, []);

  const first = Math.max(0, Math.min(Math.floor(view.top / height), rows.length) - BEYOND);
  const last = Math.min(rows.length, Math.ceil((view.top + view.size) / height) + BEYOND);
  useEffect(() => {
    if (last >= rows.length && onEnd) onEnd();
  }, [last, rows]);
  useEffect(() => {
    if (wanted.current !== null && focusRow(wanted.current)) wanted.current = null;
  });

  /** @param {number} index */
  function focusRow(index) {
    const main = box.current?.querySelector(`[data-index="${index}"] [data-main]`);
    if (main instanceof HTMLElement) main.focus({ preventScroll: true });
    return main instanceof HTMLElement;
  }

  /** @param {number} index */
  function moveTo(index) {
    const element = /** @type {HTMLElement} */ (box.current);
    const at = Math.max(0, Math.min(rows.length - 1, index));
    if (at * height < element.scrollTop) element.scrollTop = at * height;
    else if ((at + 1) * height > element.scrollTop + element.clientHeight) element.scrollTop = (at + 1) * height - element.clientHeight;
    wanted.current = at;
    if (focusRow(at)) wanted.current = null;
    else setView({ top: element.scrollTop, size: element.clientHeight });
  }

  /** @param {KeyboardEvent} event */
  function keyed(event) {
    const holder = event.target instanceof Element ? event.target.closest("[data-index]") : null;
    const at = holder instanceof HTMLElement ? Number(holder.dataset.index) : -1;
    const page = Math.max(1, Math.floor(view.size / height) - 1);
    /** @type {Record<string, number>} */
    const moves = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: rows.length - 1 };
    const to = moves[event.key];
    if (to !== undefined) {
      event.preventDefault();
      moveTo(to);
    } else if (at >= 0 && onKey && rows[at] !== undefined) onKey(event, /** @type {R} */ (rows[at]));
  }

  return html`<div class="vlist" ref=${box} onKeyDown=${keyed}>
    <div class="vlist-space" role="list" aria-label=${label} style=${{ height: `${rows.length * height}px` }}>
      ${rows.slice(first, last).map((one, i) => {
        const index = first + i;
        const key = keyOf(one);
        return html`<div key=${key} role="listitem" class=${`vrow ${key === current ? "current" : ""}`} data-index=${index} aria-setsize=${total ?? rows.length} aria-posinset=${index + 1}
          style=${{ top: `${index * height}px`, height: `${height}px` }}>${row(one, index)}</div>`;
      })}
    </div>
  </div>`;
}

/** Moves the focus to the first row of a list. @param {string} selector */
export function focusFirst(selector) {
  const main = document.querySelector(`${selector} [data-main]`);
  if (main instanceof HTMLElement) main.focus();
}
