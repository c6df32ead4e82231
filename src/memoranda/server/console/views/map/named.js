// Names on the map: a region by the beginning of the memory in its middle, and the text of the point under the pointer.
import { html, useDebounced, useLoaded } from "../../ui/core.js";
import { get, part } from "../../api.js";
import { Kind } from "../../ui/badge.js";
import { Time } from "../../ui/time.js";
import { t } from "../../strings.js";
import { WIDTH } from "./regions.js";

/**
 * @typedef {import("../../types.js").Memory} Memory
 * @typedef {import("../../types.js").Projection} Projection
 */

const PAUSE = 80; // milliseconds that the pointer stays at a point before its text is loaded
const BEGINNING = 60; // characters of a label
const TEXT = 240;

/** The text of a memory; null until it is loaded. @param {string | null} id */
function useText(id) {
  const loaded = useLoaded(id, (abort) => /** @type {Promise<import("../../api.js").Result<Memory>>} */ (get(`/v1/memories/${part(id ?? "")}`, { abort })));
  return loaded.data?.id === id ? loaded.data?.content ?? null : loaded.error?.message ?? null;
}

/** @param {{ id: string, region: import("./regions.js").Region, onShow: (at: number | null) => void, onChoose: (points: number[]) => void }} props */
export function Label({ id, region, onShow, onChoose }) {
  const text = useText(id);
  return text && html`<button type="button" class="region" style=${{ left: `${region.left}px`, top: `${region.top}px`, width: `${WIDTH}px` }}
    onPointerDown=${/** @param {Event} event */ (event) => event.stopPropagation()} onClick=${() => onChoose(region.points)}
    onFocus=${() => onShow(region.at)} onBlur=${() => onShow(null)} onPointerEnter=${() => onShow(region.at)} onPointerLeave=${() => onShow(null)}>
    <span class="region-text" title=${text.slice(0, TEXT)}>${text.slice(0, BEGINNING)}</span>${region.points.length > 1 && html`<span class="region-count">${t.number(region.points.length)}</span>`}
  </button>`;
}

/** @param {{ shown: Projection, at: number, x: number, y: number, box: { width: number, height: number } }} props */
export function Tip({ shown, at, x, y, box }) {
  const id = /** @type {string} */ (shown.ids[at]);
  const text = useText(useDebounced(id, PAUSE));
  const style = { [x > box.width / 2 ? "right" : "left"]: `${(x > box.width / 2 ? box.width - x : x) + 12}px`, [y > box.height / 2 ? "bottom" : "top"]: `${(y > box.height / 2 ? box.height - y : y) + 12}px` };
  return html`<div class="tip" role="status" style=${style}>
    <p class="tip-text">${text === null ? "…" : text.slice(0, TEXT)}</p>
    <p class="tip-meta"><${Kind} kind=${shown.kinds[at] ?? ""} /><span>${shown.scopes[at]}</span><${Time} at=${shown.occurred_at[at] ?? null} /></p>
  </div>`;
}
