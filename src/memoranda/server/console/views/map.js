// Map: memories as points of a plane; a lasso, or an entry of the legend, selects some for the list.
import { html, useEffect, useLoaded, useMemo, useState } from "../ui/core.js";
import { post } from "../api.js";
import { IconButton, Select } from "../ui/form.js";
import { Empty, Failed, Loading } from "../ui/states.js";
import { setQuery, usePlace } from "../router.js";
import { t } from "../strings.js";
import { Filters, selectionOf, wantedFilters } from "./memories/filters.js";
import { Chosen } from "./map/chosen.js";
import { COLOURINGS, groupsOf } from "./map/groups.js";
import { Plane } from "./map/plane.js";

/** @typedef {import("../types.js").Projection} Projection */

const FEW = 4_000; // points that are shown unless all are asked for
const MOST = 100_000; // as many as the API gives

export function View() {
  const { query } = usePlace();
  const selection = useMemo(() => selectionOf(query), [query.toString()]);
  const limit = query.get("points") === String(MOST) ? MOST : FEW;
  const key = JSON.stringify({ limit, ...selection });
  const loaded = useLoaded(key, (abort) => /** @type {Promise<import("../api.js").Result<Projection>>} */ (post("/v1/memories/projection", { limit, ...selection }, { abort })));
  const colour = COLOURINGS.find((one) => one === query.get("colour")) ?? "kind";
  const groups = useMemo(() => (loaded.data === null ? [] : groupsOf(loaded.data, colour)), [loaded.data, colour]);
  const [chosen, setChosen] = useState(/** @type {number[]} */ ([]));
  const [filtering, setFiltering] = useState(wantedFilters(query) > 0);
  useEffect(() => setChosen([]), [loaded.data]);
  const colours = COLOURINGS.map((value) => ({ value, label: t.map.colours[value] ?? value }));
  const shown = loaded.data;
  return html`<div class=${`page split map ${chosen.length ? "with-detail" : ""}`}>
    <section class="list-pane" aria-label=${t.map.title}>
      <header class="page-head"><h1>${t.map.title}</h1>
        <div class="status" role="status">${shown && html`<span class="quiet">${t.map.shown(shown.ids.length, shown.total, shown.explained)}</span>`}</div>
      </header>
      <div class="toolbar">
        <${Select} bare label=${t.map.colour} value=${colour} options=${colours} onChange=${/** @param {string} value */ (value) => setQuery({ colour: value })} />
        ${shown !== null && shown.total > FEW && html`<${Select} bare label=${t.map.points} value=${String(limit)} options=${[FEW, MOST].map((most) => ({ value: String(most), label: t.map.most(most) }))} onChange=${/** @param {string} value */ (value) => setQuery({ points: value })} />`}
        <span class="spring" />
        <${IconButton} icon="filter" label=${t.memories.filters} expanded=${filtering} pressed=${wantedFilters(query) > 0} onClick=${() => setFiltering(!filtering)} />
      </div>
      ${filtering && html`<${Filters} query=${query} ordered=${false} />`}
      ${loaded.error ? html`<div class="fill"><${Failed} error=${loaded.error} retry=${loaded.reload} /></div>`
        : shown === null ? html`<div class="fill pad"><${Loading} lines=${9} /></div>`
        : shown.ids.length === 0 ? html`<div class="fill"><${Empty} title=${t.map.emptyTitle} body=${t.map.emptyBody} /></div>`
        : html`<${Plane} shown=${shown} groups=${groups} chosen=${chosen} onChoose=${setChosen} />
          <ul class="legend" aria-label=${t.map.legend}>${groups.map((group) => html`<li key=${group.label}>
            <button type="button" class="legend-entry" title=${t.map.choose(group.label)} onClick=${() => setChosen(group.points)}>
              <span class=${`swatch ${group.swatch}`} /><span class="legend-label">${group.label}</span><span class="count">${t.number(group.points.length)}</span>
            </button></li>`)}</ul>`}
    </section>
    ${shown !== null && chosen.length > 0 && html`<${Chosen} shown=${shown} chosen=${chosen} onClose=${() => setChosen([])} />`}
  </div>`;
}
