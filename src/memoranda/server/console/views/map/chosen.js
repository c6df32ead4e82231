// The memories that are selected on the map; each is loaded when it comes in sight.
import { html, useEffect, useLoaded, useRef } from "../../ui/core.js";
import { get, part } from "../../api.js";
import { Kind } from "../../ui/badge.js";
import { IconButton } from "../../ui/form.js";
import { VirtualList } from "../../ui/list.js";
import { Time } from "../../ui/time.js";
import { address } from "../../router.js";
import { t } from "../../strings.js";

/**
 * @typedef {import("../../types.js").Memory} Memory
 * @typedef {import("../../types.js").Projection} Projection
 */

/** @param {{ shown: Projection, chosen: number[], onClose: () => void }} props */
export function Chosen({ shown, chosen, onClose }) {
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => heading.current?.focus({ preventScroll: true }), [chosen]);
  return html`<section class="detail" aria-label=${t.map.chosen}>
    <header class="detail-head">
      <h2 tabIndex=${-1} ref=${heading}>${t.memories.selected(chosen.length)}</h2>
      <${IconButton} icon="close" label=${t.close} onClick=${onClose} />
    </header>
    <${VirtualList} label=${t.map.chosen} rows=${chosen} height=${92} keyOf=${/** @param {number} at */ (at) => String(at)}
      row=${/** @param {number} at */ (at) => html`<${Row} shown=${shown} at=${at} />`} />
  </section>`;
}

/** @param {{ shown: Projection, at: number }} props */
function Row({ shown, at }) {
  const id = /** @type {string} */ (shown.ids[at]);
  const loaded = useLoaded(id, (abort) => /** @type {Promise<import("../../api.js").Result<Memory>>} */ (get(`/v1/memories/${part(id)}`, { abort })));
  const text = loaded.data?.content ?? loaded.error?.message ?? "…";
  return html`<div class="memory chosen-row"><div class="memory-main">
    <a class="memory-text" data-main href=${address("memories", { id })}>${text.slice(0, 600)}</a>
    <div class="memory-meta">
      <${Kind} kind=${shown.kinds[at] ?? ""} />
      <span class="scope" title=${shown.scopes[at]}>${shown.scopes[at]}</span>
      <${Time} at=${shown.occurred_at[at] ?? null} />
    </div>
  </div></div>`;
}
